"""The two shapes of a number in an answer: uncertainty (`Range`), spread over requests (`Percentiles`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import SupportsFloat


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A prediction: `mid` is its median, `low..high` is meant to hold 80 % of measurements like it.

    >>> Range.around(10.0, factor=1.25)
    Range(low=8.0, mid=10.0, high=12.5)
    """

    low: float
    mid: float
    high: float

    @staticmethod
    def around(mid: float, *, factor: float) -> Range:
        """The range from `mid / factor` to `mid * factor`."""
        return Range(low=mid / factor, mid=mid, high=mid * factor)

    def scaled(self, by: float) -> Range:
        """Every bound times a positive number.

        >>> Range(low=1.0, mid=2.0, high=4.0).scaled(2.0)
        Range(low=2.0, mid=4.0, high=8.0)
        """
        return Range(low=self.low * by, mid=self.mid * by, high=self.high * by)

    def inverse(self, numerator: float = 1.0) -> Range:
        """`numerator / x`: the low bound comes from the high one.

        >>> Range(low=1.0, mid=2.0, high=4.0).inverse(8.0)
        Range(low=2.0, mid=4.0, high=8.0)
        """
        return Range(low=numerator / self.high, mid=numerator / self.mid, high=numerator / self.low)

    def widened(self, factor: float) -> Range:
        """The same middle with both ends moved out by `factor`.

        >>> Range(low=1.0, mid=2.0, high=4.0).widened(2.0)
        Range(low=0.5, mid=2.0, high=8.0)
        """
        return Range(low=self.low / factor, mid=self.mid, high=self.high * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles:
    """How a quantity is spread over requests. None where the method does not give the figure."""

    mean: float | None
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None


def finite(value: SupportsFloat) -> float | None:
    """The number, or None for one that is not finite: a saturated load has no TTFT.

    >>> finite(2), finite(float("inf"))
    (2.0, None)
    """
    number = float(value)
    return number if math.isfinite(number) else None
