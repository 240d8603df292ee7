"""Ranges keep their order through every operation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.units import Range

POSITIVE = st.floats(1e-6, 1e6)
FACTOR = st.floats(1.0, 100.0)


def ordered(spread: Range) -> bool:
    return spread.low <= spread.mid <= spread.high


def test_worked_values() -> None:
    assert Range.around(10.0, factor=1.25) == Range(low=8.0, mid=10.0, high=12.5)
    assert Range(low=1.0, mid=2.0, high=4.0).inverse() == Range(low=0.25, mid=0.5, high=1.0)
    assert Range(low=1.0, mid=2.0, high=4.0).scaled(3.0) == Range(low=3.0, mid=6.0, high=12.0)
    assert Range(low=2.0, mid=4.0, high=6.0).widened(2.0) == Range(low=1.0, mid=4.0, high=12.0)


@given(POSITIVE, FACTOR, POSITIVE, FACTOR)
def test_order_is_kept(mid: float, factor: float, by: float, wider: float) -> None:
    spread = Range.around(mid, factor=factor)
    for result in (spread, spread.scaled(by), spread.inverse(by), spread.widened(wider)):
        assert ordered(result)


@given(POSITIVE, FACTOR)
def test_the_inverse_of_the_inverse_is_the_range(mid: float, factor: float) -> None:
    spread = Range.around(mid, factor=factor)
    back = spread.inverse().inverse()
    assert (back.low, back.mid, back.high) == pytest.approx((spread.low, spread.mid, spread.high))


@given(POSITIVE, FACTOR, FACTOR)
def test_widening_keeps_the_middle_and_holds_the_old_range(mid: float, factor: float, wider: float) -> None:
    spread = Range.around(mid, factor=factor)
    wide = spread.widened(wider)
    assert wide.mid == spread.mid
    assert wide.low <= spread.low
    assert wide.high >= spread.high
