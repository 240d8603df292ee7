"""Figures of an answer as text for people. What is unknown is said, never shown as 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from chipwise.report.document import Line, Word, dim, good, line, warn
from chipwise.units import SMALL, show_bytes, show_seconds, show_usd

UNKNOWN = "unknown"
DASH = "\u2013"
TIMES = "\u00d7"
Figures = Mapping[str, Any]
"""A range as JSON holds it: `low`, `mid`, `high`."""


def spread(figures: Figures | None, show: Callable[[float], str]) -> Line:
    """The middle, then low to high in brackets; a unit that all three share is said once.

    >>> [word.text for word in spread({"low": 0.41, "mid": 0.41, "high": 0.41}, show_seconds)]
    ['410 ms']
    """
    if figures is None:
        return (dim(UNKNOWN),)
    low, mid, high = (show(figures[name]) for name in ("low", "mid", "high"))
    if low == mid == high:
        return (Word(text=mid),)
    number, _, unit = mid.rpartition(" ")
    if number and all(text.endswith(f" {unit}") for text in (low, high)):
        low, high = (text.removesuffix(f" {unit}") for text in (low, high))
    return line(mid, dim(f" ({low}{DASH}{high})"))


def seconds(figures: Figures | None) -> Line:
    """A range of time."""
    return spread(figures, show_seconds)


def usd(figures: Figures | None) -> Line:
    """A range of money: never a bare number, so that an unknown price is said."""
    return spread(figures, show_usd)


def rate(figures: Figures | None, unit: str) -> Line:
    """A range of something per second.

    >>> [word.text for word in rate({"low": 2300.0, "mid": 2900.0, "high": 3600.0}, "tok/s")][::2]
    ['2,900', ' tok/s']
    """
    shown = spread(figures, amount)
    return shown if figures is None else (*shown, Word(text=f" {unit}"))


def percent(figures: Figures | None) -> Line:
    """A range of a share."""
    return spread(figures, share)


def share(value: float) -> str:
    """A share in per cent.

    >>> share(0.56)
    '56 %'
    """
    return f"{value * 100:.0f} %"


_GRADES = {
    **dict.fromkeys(("excellent", "good", "high", "best-in-class"), good),
    **dict.fromkeys(("risky", "low", "inefficient"), warn),
}


def graded(grade: str | None) -> Line:
    """The guide's grade, in the tone of what it says."""
    return (_GRADES.get(grade, dim)(grade),) if grade else ()


def amount(value: float) -> str:
    """A number with at most three digits that matter, thousands parted.

    >>> amount(12345.6), amount(3.14159), amount(64), amount(0.00123)
    ('12,346', '3.14', '64', '0.0012')
    """
    if 0 < abs(value) < SMALL:
        return f"{value:.2g}"
    if value == round(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def decimal(value: float, unit: str) -> str:
    """A number with the decimal prefix that reads best.

    >>> decimal(3.35e12, "B/s"), decimal(9.89e14, "FLOP/s")
    ('3.35 TB/s', '989 TFLOP/s')
    """
    size, prefix = next(
        ((size, prefix) for size, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")) if abs(value) >= size),
        (1.0, ""),
    )
    return f"{value / size:.3g} {prefix}{unit}"


def maybe(value: float | None, show: Callable[[float], str]) -> str:
    """The shown value, or that it is unknown."""
    return UNKNOWN if value is None else show(value)


def gib(size_bytes: float) -> str:
    """A size in binary units."""
    return show_bytes(size_bytes)


def times(count: int, name: str) -> str:
    """How many of what.

    >>> times(2, "p5.48xlarge").split(TIMES)
    ['2 ', ' p5.48xlarge']
    """
    return f"{count} {TIMES} {name}"


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "replica"), plural(1834, "configuration")
    ('1 replica', '1,834 configurations')
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def split_text(parallelism: Mapping[str, int]) -> str:
    """The axes above one; `tp1` where there is none.

    >>> split_text({"tp": 4, "pp": 2, "ep": 1, "dp": 1, "cp": 1})
    'tp4 pp2'
    """
    axes = [f"{axis}{size}" for axis, size in parallelism.items() if size > 1]
    return " ".join(axes) or f"tp{parallelism.get('tp', 1)}"


def listing(names: list[str], most: int = 8) -> str:
    """Names with commas; beyond `most` the count of the others.

    >>> listing(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
