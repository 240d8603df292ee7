"""Ranking with uncertainty: X beats Y only when Y's range lies beyond X's middle; what ties is ordered by cost."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import takewhile
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


def tie(first: Range, second: Range) -> bool:
    """Whether neither beats the other."""
    return not beats(first, second) and not beats(second, first)


def _tie_key(standing: Standing) -> tuple[int, float, int, str]:
    cost = float("inf") if standing.usd is None else standing.usd
    return PRICE_RANK[standing.price_kind], cost, standing.chips, standing.name


def ranked(items: Sequence[T], standing: Callable[[T], Standing]) -> list[T]:
    """Items in order: whatever beats another stands before it, and ties go by price kind, cost, chips and name.

    Tying is not transitive, so the order is built from the front: of what nothing left beats, the first by the
    tie's key that ties with nothing left of a better known price; where all wait for such, the first by the key.

    >>> def at(low, mid, cost, kind="api"): return Standing(name=str(mid), metric=Range(low=low, mid=mid, high=9.0),
    ...     usd=cost, price_kind=kind, chips=8)
    >>> three = [at(1, 2.0, 9.0), at(1.5, 3.0, 5.0), at(4, 5.0, 1.0)]
    >>> [one.name for one in ranked(three, lambda one: one)]
    ['3.0', '2.0', '5.0']
    >>> [one.name for one in ranked([at(1, 2.5, 2.5, "assumed"), at(1, 1.8, 1.8), at(2, 2.1, 2.1)], lambda one: one)]
    ['1.8', '2.1', '2.5']
    """
    return list(in_order(items, standing))


def in_order(items: Sequence[T], standing: Callable[[T], Standing]) -> Iterator[T]:
    """`ranked`, one after the other: the first costs no more than it must."""
    seen = [standing(item) for item in items]
    by_middle = sorted(range(len(seen)), key=lambda place: seen[place].metric.mid)
    beaten = deque(sorted(range(len(seen)), key=lambda place: seen[place].metric.low))
    unbeaten: list[tuple[tuple[int, float, int, str], int]] = []
    taken: dict[int, None] = {}
    for middle in by_middle:
        while middle not in taken:
            while beaten and seen[beaten[0]].metric.low <= seen[middle].metric.mid:
                heappush(unbeaten, (_tie_key(seen[beaten[0]]), beaten.popleft()))
            place = _first(unbeaten, beaten, seen)
            taken[place] = None
            yield items[place]


def _first(
    unbeaten: list[tuple[tuple[int, float, int, str], int]], beaten: deque[int], seen: Sequence[Standing]
) -> int:
    """Take from the heap the first by key that waits for nothing of a better known price."""
    if unbeaten[0][0][0] == 0:
        return heappop(unbeaten)[1]
    free = [entry for entry in unbeaten if not _waits(seen[entry[1]], beaten, seen)]
    chosen = min(free or unbeaten)
    unbeaten.remove(chosen)
    heapify(unbeaten)
    return chosen[1]


def _waits(one: Standing, beaten: deque[int], seen: Sequence[Standing]) -> bool:
    kind = PRICE_RANK[one.price_kind]
    within = takewhile(lambda place: seen[place].metric.low <= one.metric.mid, beaten)
    return any(PRICE_RANK[seen[place].price_kind] < kind for place in within)
