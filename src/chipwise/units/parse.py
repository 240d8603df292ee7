"""Text to base units. Every parser refuses what it does not understand, NaN, infinities and negatives too."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction

from chipwise.errors import InputError

_NUMBER = re.compile(r"^\s*([+-]?\d[\d_,]*\.?\d*(?:[eE][+-]?\d+)?|[+-]?\.\d+(?:[eE][+-]?\d+)?)\s*([^\d\s].*?)?\s*$")

_COUNT = {"": 1.0, "k": 1e3, "K": 1e3, "m": 1e6, "M": 1e6, "b": 1e9, "B": 1e9, "G": 1e9, "t": 1e12, "T": 1e12}
_TOKENS = {**_COUNT, "k": 1024.0, "K": 1024.0, "m": 1024.0**2, "M": 1024.0**2}
_SECONDS = {
    "": 1.0, "s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "min": 60.0, "m": 60.0, "h": 3600.0,
    "hr": 3600.0, "hours": 3600.0, "d": 86400.0, "days": 86400.0, "w": 604800.0, "weeks": 604800.0,
}  # fmt: skip
_BYTES = {
    "": 1.0, "b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "pb": 1e15,
    "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30, "tib": 2.0**40, "pib": 2.0**50,
}  # fmt: skip


def _scaled(text: str, scales: Mapping[str, float], kind: str, example: str, *, fold: bool = False) -> float:
    match = _NUMBER.match(text) if len(text) <= 64 else None
    suffix = (match.group(2) or "") if match else ""
    suffix = suffix.lower() if fold else suffix
    if match is None or suffix not in scales:
        raise InputError(f"{text[:64]!r} is not a {kind}", why="number or unit not understood", fix=example)
    value = float(match.group(1).replace(",", "").replace("_", "")) * scales[suffix]
    if not 0 <= value < math.inf:
        raise InputError(f"{text[:64]!r} is no {kind}", why="it is below zero or too large", fix=example)
    return value


def parse_count(text: str, *, binary: bool = False) -> int:
    """A whole number with an optional k, M, B or T; `binary` reads k and M as 1,024 and 1,048,576.

    Token lengths use `binary` (a context of 8k is 8,192 tokens); users, parameters, training tokens do not.

    Raises:
        InputError: not a number, an unknown suffix, or not whole.

    >>> parse_count("8k", binary=True), parse_count("70b"), parse_count("1_000")
    (8192, 70000000000, 1000)
    """
    scales = _TOKENS if binary else _COUNT
    _scaled(text, scales, "count", "write a number such as 64, 8k or 2T")  # refuses what is no number
    found = _NUMBER.match(text)
    digits, suffix = found.groups() if found else ("0", "")
    # Exact: 2.07 x 1e9 is 2069999999.9999998 in binary floating point.
    value = Fraction(digits.replace("_", "").replace(",", "")) * int(scales[suffix or ""])
    if value.denominator != 1:
        raise InputError(f"{text!r} is not whole", why="a count has no fraction", fix="write 64, 8k or 2T")
    return int(value)


def parse_seconds(text: str) -> float:
    """A duration: `500ms`, `1s`, `2h`, `3d`, `2w`; a bare number is seconds.

    >>> parse_seconds("500ms"), parse_seconds("3d")
    (0.5, 259200.0)
    """
    return _scaled(text, _SECONDS, "duration", "write a duration such as 500ms, 1s, 2h or 3d")


def parse_bytes(text: str) -> float:
    """A size: `40GB` is 40 x 10^9, `40GiB` is 40 x 2^30; a bare number is bytes.

    >>> parse_bytes("40GB"), parse_bytes("1GiB")
    (40000000000.0, 1073741824.0)
    """
    return _scaled(text, _BYTES, "size", "write a size such as 40GB or 40GiB", fold=True)


def parse_rate(text: str) -> float:
    """Something per second: `5000tok/s`, `2.5/s`, `120/min`, `3rps`; a bare number is per second.

    >>> parse_rate("5000tok/s"), parse_rate("120/min"), parse_rate("5k tok/s")
    (5000.0, 2.0, 5000.0)
    """
    body, slash, per = text.partition("/")
    body = re.sub(r"(tokens|token|tok|requests|request|req|images|image|rps|qps|tps)\s*$", "", body.strip())
    fix = "write a rate such as 5000tok/s, 2.5/s or 120/min"
    if slash and (per.strip() or "?") not in _SECONDS:
        raise InputError(f"{text[:64]!r} is not a rate", why=f"per {per[:64]!r} is no unit of time", fix=fix)
    per_s = {suffix: scale / _SECONDS[per.strip()] for suffix, scale in _COUNT.items()}
    return _scaled(body, per_s, "rate", fix)


def parse_usd(text: str) -> float:
    """Dollars: `$50k`, `12.50`, `USD 3`.

    >>> parse_usd("$50k"), parse_usd("12.5")
    (50000.0, 12.5)
    """
    body = re.sub(r"^\s*(usd|\$)\s*|\s*(usd|\$)\s*$", "", text, flags=re.IGNORECASE)
    return _scaled(body, _COUNT, "price", "write a price such as $50k or 12.50")
