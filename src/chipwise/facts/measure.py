"""The units a fact may be printed in, and the step from there to chipwise's one unit a quantity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.facts.fact import Fact, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """`base_value = printed value x factor`; `whole` quantities come out as integers."""

    base: str
    factor: float
    whole: bool


UNITS: Mapping[str, Unit] = {
    "count": Unit(base="count", factor=1, whole=True),
    "tokens": Unit(base="tokens", factor=1, whole=True),
    "fraction": Unit(base="fraction", factor=1, whole=False),
    "percent": Unit(base="fraction", factor=0.01, whole=False),
    "bytes": Unit(base="bytes", factor=1, whole=True),
    "MB": Unit(base="bytes", factor=10**6, whole=True),
    "GB": Unit(base="bytes", factor=10**9, whole=True),
    "MiB": Unit(base="bytes", factor=2**20, whole=True),
    "GiB": Unit(base="bytes", factor=2**30, whole=True),
    "GB/s": Unit(base="bytes/s", factor=1e9, whole=False),
    "GiB/s": Unit(base="bytes/s", factor=2.0**30, whole=False),
    "Gbps": Unit(base="bytes/s", factor=1e9 / 8, whole=False),
    "TFLOPS": Unit(base="FLOP/s", factor=1e12, whole=False),
    "W": Unit(base="W", factor=1, whole=False),
    "s": Unit(base="s", factor=1, whole=False),
    "ms": Unit(base="s", factor=1e-3, whole=False),
    "us": Unit(base="s", factor=1e-6, whole=False),
    "USD/h": Unit(base="USD/h", factor=1, whole=False),
}
"""TFLOPS also carries integer operations (TOPS): both count the multiplications and additions of matrices."""


def to_base(value: Value, unit: str | None) -> Value:
    """A printed value in chipwise's own unit: bytes, seconds, FLOP/s; text and yes or no pass unchanged.

    Raises:
        KeyError: a unit that `UNITS` does not hold; the loader refuses such rows first.

    >>> to_base(144384, "MiB"), to_base(3200, "Gbps"), to_base("hopper", None)
    (151397597184, 400000000000.0, 'hopper')
    """
    if unit is None or isinstance(value, (str, bool)):
        return value
    known = UNITS[unit]
    scaled = value * known.factor
    return round(scaled) if known.whole else float(scaled)


def base_value(fact: Fact) -> Value:
    """`to_base` of a fact."""
    return to_base(fact.value, fact.unit)
