"""Axes: from a span of values to ticks at round numbers and to places on the sheet."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 5.0, 10.0)
"""Round steps within a power of ten."""
_TICKS = 6
_NEAR = 1e-9
_PADDED = re.compile(r"(?:(\.\d*?[1-9])|\.)0+(?!\d)")
"""Zeros at the end of a fraction, and the point where nothing is left of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis: its title, the span it shows (`low`, `high`), even or logarithmic, how a value is written."""

    title: str
    low: float
    high: float
    log: bool = False
    shown: Callable[[float], str] = str

    def place(self, value: float) -> float:
        """Where a value stands: 0 at `low`, 1 at `high`; what lies beyond is at the edge.

        >>> Axis(title="", low=1.0, high=100.0, log=True).place(10.0)
        0.5
        """
        if self.log:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return min(1.0, max(0.0, share))

    def ticks(self) -> list[float]:
        """Round values within the span.

        >>> Axis(title="", low=0.0, high=10.0).ticks()
        [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
        >>> Axis(title="", low=1.0, high=1000.0, log=True).ticks()
        [1.0, 10.0, 100.0, 1000.0]
        """
        return _powers(self.low, self.high) if self.log else _even(self.low, self.high)

    def told(self, value: float) -> str:
        """A tick in words: round, so without the zeros that `shown` pads with; zero needs no unit.

        >>> axis = Axis(title="", low=0.0, high=10.0, shown="{:.2f} s".format)
        >>> axis.told(2.0), axis.told(2.5), axis.told(0.0)
        ('2 s', '2.5 s', '0')
        """
        return "0" if value == 0 else _PADDED.sub(r"\1", self.shown(value))


def _even(low: float, high: float) -> list[float]:
    rough = (high - low) / (_TICKS - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(one * power for one in _STEPS if one * power >= rough * (1.0 - _NEAR))
    first, last = math.ceil(low / step - _NEAR), math.floor(high / step + _NEAR)
    return [count * step for count in range(first, last + 1)]


def _powers(low: float, high: float) -> list[float]:
    first, last = math.ceil(math.log10(low) - _NEAR), math.floor(math.log10(high) + _NEAR)
    tens = [10.0**power for power in range(first, last + 1)]
    if len(tens) > 2:
        return tens
    finer = [step * 10.0**power for power in range(first - 1, last + 1) for step in _STEPS[:-1]]
    inside = [one for one in finer if low * (1.0 - _NEAR) <= one <= high * (1.0 + _NEAR)]
    return inside if len(inside) > 1 else _even(low, high)


def spanning(title: str, values: Sequence[float], *, shown: Callable[[float], str], log: bool = False) -> Axis:
    """An axis that shows all values; an even one starts at zero. Without values it shows 1 to 10, or 0 to 1.

    >>> axis = spanning("s", [0.2, 0.9], shown=str)
    >>> axis.low, axis.high
    (0.0, 1.0)
    """
    if log:
        known = [one for one in values if one > 0] or [1.0, 10.0]
        low, high = min(known), max(known)
        return Axis(title=title, low=low / 1.15, high=max(high, low * 2.0) * 1.15, log=True, shown=shown)
    high = max([one for one in values if one > 0], default=1.0)
    axis = Axis(title=title, low=0.0, high=high, shown=shown)
    ticks = axis.ticks()
    step = ticks[1] - ticks[0] if len(ticks) > 1 else high
    return Axis(title=title, low=0.0, high=math.ceil(high / step - _NEAR) * step, shown=shown)
