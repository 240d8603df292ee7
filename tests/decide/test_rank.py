"""X beats Y only when all of Y's range lies beyond X's middle; ties go by price kind, cost, chips, name."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from chipwise.decide.rank import Standing, beats, ranked, tie
from chipwise.units import Range


def standing(name: str, metric: Range, cost: float | None, kind: str | None = "api", chips: int = 8) -> Standing:
    return Standing(name=name, metric=metric, usd=cost, price_kind=kind, chips=chips)


def names(items: list[Standing]) -> list[str]:
    return [one.name for one in ranked(items, lambda one: one)]


def test_overlap_is_a_tie_and_cost_orders_it() -> None:
    fast = standing("fast", Range(low=0.8, mid=1.0, high=1.2), 100.0)
    cheap = standing("cheap", Range(low=0.9, mid=1.1, high=1.3), 10.0)
    slow = standing("slow", Range(low=1.1, mid=2.0, high=3.0), 1.0)
    assert names([fast, cheap, slow]) == ["cheap", "fast", "slow"]


def test_assumed_and_unknown_prices_rank_after_what_they_tie_with() -> None:
    metric = Range(low=0.8, mid=1.0, high=1.2)
    items = [
        standing("unknown", metric, None, None),
        standing("assumed", metric, 1.0, "assumed"),
        standing("printed", metric, 99.0),
        standing("users", metric, 98.0, "user"),
    ]
    assert names(items) == ["users", "printed", "assumed", "unknown"]


def test_equal_cost_goes_to_fewer_chips_then_name() -> None:
    metric = Range(low=0.8, mid=1.0, high=1.2)
    items = [
        standing("b", metric, 5.0, chips=8),
        standing("a", metric, 5.0, chips=8),
        standing("c", metric, 5.0, chips=4),
    ]
    assert names(items) == ["c", "a", "b"]


ranges = st.builds(
    lambda mid, down, up: Range(low=mid / down, mid=mid, high=mid * up),
    st.floats(0.1, 100.0), st.floats(1.0, 3.0), st.floats(1.0, 3.0),
)  # fmt: skip


def test_an_assumed_price_waits_for_what_it_ties_with_even_where_the_leader_beats_that() -> None:
    leader = standing("leader", Range(low=1.8, mid=1.861, high=1.9), 1.861)
    assumed = standing("assumed", Range(low=1.54, mid=2.235, high=3.24), 2.235, "assumed")
    printed = standing("printed", Range(low=2.01, mid=2.012, high=3.1), 2.012)
    assert names([leader, assumed, printed]) == ["leader", "printed", "assumed"]


@given(st.lists(st.tuples(ranges, st.sampled_from(["api", "assumed"])), min_size=1, max_size=12))
def test_what_beats_stands_before_and_assumed_prices_after_their_ties(asked: list[tuple[Range, str]]) -> None:
    items = [standing(str(place), metric, float(place), kind) for place, (metric, kind) in enumerate(asked)]
    order = ranked(items, lambda one: one)
    assert sorted(one.name for one in order) == sorted(one.name for one in items)
    for earlier, later in combinations(order, 2):
        assert not beats(later.metric, earlier.metric)
        if tie(earlier.metric, later.metric):
            assert (earlier.price_kind, later.price_kind) != ("assumed", "api")


@given(ranges, ranges)
def test_two_never_beat_each_other(one: Range, other: Range) -> None:
    assert not (beats(one, other) and beats(other, one))
