"""Base units to text for people: at most three digits that matter, and the unit always there."""

from __future__ import annotations

_BINARY = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_SECONDS = (
    (1e-3, 1e6, "us"),
    (1.0, 1e3, "ms"),
    (120.0, 1.0, "s"),
    (7200.0, 1 / 60, "min"),
    (172800.0, 1 / 3600, "h"),
)
CENT = 0.01
_COUNT = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))


SMALL = 0.1
"""Below it, two digits that matter are shown however many zeros stand before them."""


def _digits(value: float) -> str:
    size = abs(value)
    if 0 < size < SMALL:
        return f"{value:.2g}"
    return f"{value:.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def show_bytes(size_bytes: float) -> str:
    """Binary units.

    >>> show_bytes(151397597184), show_bytes(512)
    ('141 GiB', '512 B')
    """
    for scale, unit in _BINARY:
        if abs(size_bytes) >= scale:
            return f"{_digits(size_bytes / scale)} {unit}"
    return f"{size_bytes:.0f} B"


def show_count(count: float) -> str:
    """Decimal suffixes.

    >>> show_count(70_553_706_496), show_count(64)
    ('70.6B', '64')
    """
    for scale, unit in _COUNT:
        if abs(count) >= scale:
            return f"{_digits(count / scale)}{unit}"
    return f"{count:.0f}" if count == round(count) else _digits(count)


def show_seconds(duration_s: float) -> str:
    """The unit that reads best.

    >>> show_seconds(0.0123), show_seconds(1.5), show_seconds(7200), show_seconds(259200)
    ('12.3 ms', '1.50 s', '2.00 h', '3.00 d')
    """
    for below, scale, unit in _SECONDS:
        if abs(duration_s) < below:
            return f"{_digits(duration_s * scale)} {unit}"
    return f"{_digits(duration_s / 86400)} d"


def show_usd(amount_usd: float) -> str:
    """Dollars: cents below a hundred.

    >>> show_usd(63.296), show_usd(1234567.8), show_usd(0.000136)
    ('$63.30', '$1,234,568', '$0.00014')
    """
    if 0 < abs(amount_usd) < CENT:
        return f"${amount_usd:.2g}"
    return f"${amount_usd:,.2f}" if abs(amount_usd) < 100 else f"${amount_usd:,.0f}"
