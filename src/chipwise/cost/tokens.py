"""From a price by the hour to a price by the token. Array-first: floats or arrays that broadcast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.units import Range

if TYPE_CHECKING:
    from chipwise.parallelism import Number

SECONDS_PER_HOUR = 3600.0
MILLION = 1e6


def usd_per_million(*, usd_per_hour: Number, tokens_per_s: Number) -> Number:
    """USD for a million tokens: `usd_per_hour / 3600 / tokens_per_s * 10^6`.

    Args:
        usd_per_hour: what the deployment costs.
        tokens_per_s: what the deployment makes, above 0.

    >>> usd_per_million(usd_per_hour=36.0, tokens_per_s=1000.0)
    10.0
    """
    return usd_per_hour / SECONDS_PER_HOUR / tokens_per_s * MILLION


def usd_per_million_tokens(usd_per_hour: Range | None, tokens_per_s: Range | None) -> Range | None:
    """The range of `usd_per_million`: cheapest price at the highest rate up to dearest at the lowest.

    Returns:
        None where the price or the rate is unknown or zero.

    >>> usd_per_million_tokens(Range.around(36.0, factor=1.0), Range(low=500.0, mid=1000.0, high=2000.0))
    Range(low=5.0, mid=10.0, high=20.0)
    """
    if usd_per_hour is None or tokens_per_s is None or tokens_per_s.low <= 0:
        return None
    return Range(
        low=float(usd_per_million(usd_per_hour=usd_per_hour.low, tokens_per_s=tokens_per_s.high)),
        mid=float(usd_per_million(usd_per_hour=usd_per_hour.mid, tokens_per_s=tokens_per_s.mid)),
        high=float(usd_per_million(usd_per_hour=usd_per_hour.high, tokens_per_s=tokens_per_s.low)),
    )
