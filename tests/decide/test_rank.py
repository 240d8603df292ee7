"""X beats Y only when all of Y's range lies beyond X's middle; ties go by price kind, cost, chips, name."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from chipwise.decide.rank import Standing, beats, ranked
from chipwise.units import Range


def standing(name: str, metric: Range, cost: float | None, kind: str | None = "api", chips: int = 8) -> Standing:
    return Standing(name=name, metric=metric, usd=cost, price_kind=kind, chips=chips)


def names(groups: list[list[Standing]]) -> list[list[str]]:
    return [[one.name for one in group] for group in groups]


def test_overlap_is_a_tie_and_cost_orders_it() -> None:
    fast = standing("fast", Range(low=0.8, mid=1.0, high=1.2), 100.0)
    cheap = standing("cheap", Range(low=0.9, mid=1.1, high=1.3), 10.0)
    slow = standing("slow", Range(low=1.1, mid=2.0, high=3.0), 1.0)
    assert names(ranked([fast, cheap, slow], lambda one: one)) == [["cheap", "fast"], ["slow"]]


def test_assumed_and_unknown_prices_rank_after_what_they_tie_with() -> None:
    metric = Range(low=0.8, mid=1.0, high=1.2)
    items = [
        standing("unknown", metric, None, None),
        standing("assumed", metric, 1.0, "assumed"),
        standing("printed", metric, 99.0),
        standing("users", metric, 98.0, "user"),
    ]
    assert names(ranked(items, lambda one: one)) == [["users", "printed", "assumed", "unknown"]]


def test_equal_cost_goes_to_fewer_chips_then_name() -> None:
    metric = Range(low=0.8, mid=1.0, high=1.2)
    items = [
        standing("b", metric, 5.0, chips=8),
        standing("a", metric, 5.0, chips=8),
        standing("c", metric, 5.0, chips=4),
    ]
    assert names(ranked(items, lambda one: one)) == [["c", "a", "b"]]


ranges = st.builds(
    lambda mid, down, up: Range(low=mid / down, mid=mid, high=mid * up),
    st.floats(0.1, 100.0), st.floats(1.0, 3.0), st.floats(1.0, 3.0),
)  # fmt: skip


@given(st.lists(ranges, min_size=1, max_size=12))
def test_every_item_is_in_one_group_and_no_leader_is_beaten(metrics: list[Range]) -> None:
    items = [standing(str(place), metric, float(place)) for place, metric in enumerate(metrics)]
    groups = ranked(items, lambda one: one)
    assert sorted(one.name for group in groups for one in group) == sorted(one.name for one in items)
    for earlier, later in pairwise(groups):
        leader = min(earlier, key=lambda one: one.metric.mid)
        assert all(beats(leader.metric, one.metric) for one in later)


@given(ranges, ranges)
def test_two_never_beat_each_other(one: Range, other: Range) -> None:
    assert not (beats(one, other) and beats(other, one))
