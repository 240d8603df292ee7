"""Ranking with uncertainty: X beats Y only when Y's range lies beyond X's middle; what ties is ordered by cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from chipwise.units import Range

PRICE_RANK = {"user": 0, "api": 0, "assumed": 1, None: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What ranking needs to know of a candidate; `metric` is oriented so that lower is better."""

    name: str
    metric: Range
    usd: float | None
    """What it costs, by the hour or for the run: orders what ties."""
    price_kind: str | None
    chips: int


T = TypeVar("T")


def beats(first: Range, second: Range) -> bool:
    """Whether `first` is better: the whole of `second` lies beyond the middle of `first` (lower is better).

    >>> beats(Range(low=1.0, mid=2.0, high=3.0), Range(low=2.5, mid=4.0, high=6.0))
    True
    >>> beats(Range(low=1.0, mid=2.0, high=3.0), Range(low=1.5, mid=4.0, high=6.0))
    False
    """
    return second.low > first.mid


def _tie_key(standing: Standing) -> tuple[int, float, int, str]:
    cost = float("inf") if standing.usd is None else standing.usd
    return PRICE_RANK[standing.price_kind], cost, standing.chips, standing.name


def ranked(items: Sequence[T], standing: Callable[[T], Standing]) -> list[list[T]]:
    """Items in tie groups, best group first, each group ordered by price kind, cost, chips and name.

    A group is led by the best middle among what is left and takes all that the leader does not beat.

    >>> def at(low, mid, cost): return Standing(name=str(mid), metric=Range(low=low, mid=mid, high=9.0),
    ...     usd=cost, price_kind="api", chips=8)
    >>> three = [at(1, 2.0, 9.0), at(1.5, 3.0, 5.0), at(4, 5.0, 1.0)]
    >>> [[s.name for s in group] for group in ranked(three, lambda s: s)]
    [['3.0', '2.0'], ['5.0']]
    """
    seen = [(standing(item), item) for item in items]
    left = sorted(seen, key=lambda pair: (pair[0].metric.mid, _tie_key(pair[0])))
    groups = []
    while left:
        leader = left[0][0].metric
        group = [pair for pair in left if not beats(leader, pair[0].metric)]
        left = [pair for pair in left if beats(leader, pair[0].metric)]
        groups.append([item for _, item in sorted(group, key=lambda pair: _tie_key(pair[0]))])
    return groups
