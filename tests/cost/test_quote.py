"""Prices are dated ranges, never bare numbers, and a stand-in says that it is one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog import load_catalog
from chipwise.cost import best_quote, quote, usd_per_million_tokens
from chipwise.units import Range


def test_a_printed_price_keeps_its_date() -> None:
    found = quote(load_catalog().prices("p5.48xlarge"), term="on-demand", regions=["us-east-1"])
    assert found is not None
    assert (found.usd_per_hour.mid, found.kind, found.as_of) == (55.04, "api", "2026-07-20")
    assert "2026-07-20" in found.why


def test_the_range_spans_the_regions_asked_for() -> None:
    prices = load_catalog().prices("g6e.xlarge")
    found = quote(prices, term="on-demand", regions=["us-east-1", "ap-northeast-1"])
    assert found is not None
    assert found.region == "us-east-1"
    assert found.usd_per_hour.low == found.usd_per_hour.mid < found.usd_per_hour.high


def test_another_region_stands_in_as_assumed_and_wider() -> None:
    found = quote(load_catalog().prices("p6-b300.48xlarge"), term="on-demand", regions=["eu-west-1"])
    assert found is not None
    assert found.kind == "assumed"
    assert found.usd_per_hour.low < found.usd_per_hour.mid < found.usd_per_hour.high
    assert "stands in" in found.why


def test_no_price_is_absence_not_zero() -> None:
    assert quote(load_catalog().prices("trn2u.48xlarge"), term="on-demand", regions=["ap-south-2"]) is None
    assert quote((), term="on-demand", regions=["us-east-1"]) is None


def test_a_users_price_comes_before_all() -> None:
    prices = load_catalog().prices("p5.48xlarge")
    found = best_quote(prices, terms=["on-demand"], regions=["us-east-1"], user_usd_per_hour=30.0)
    assert found is not None
    assert (found.kind, found.usd_per_hour.mid) == ("user", 30.0)


def test_p5e_has_no_on_demand_price_and_a_capacity_block_one() -> None:
    prices = load_catalog().prices("p5e.48xlarge")
    assert quote(prices, term="on-demand", regions=["us-east-2"]) is None
    found = best_quote(prices, terms=["on-demand", "capacity-block"], regions=["us-east-2"])
    assert found is not None
    assert (found.term, found.usd_per_hour.mid) == ("capacity-block", 47.76)


@given(st.floats(0.1, 1e4), st.floats(1.0, 3.0), st.floats(1.0, 1e6), st.floats(1.0, 3.0))
def test_cost_per_token_orders_its_bounds(usd: float, spread: float, rate: float, wide: float) -> None:
    found = usd_per_million_tokens(Range.around(usd, factor=spread), Range.around(rate, factor=wide))
    assert found is not None
    assert found.low <= found.mid <= found.high
    assert found.mid == pytest.approx(usd / 3600 / rate * 1e6)


def test_cost_per_token_of_an_unknown_price_is_unknown() -> None:
    assert usd_per_million_tokens(None, Range.around(1.0, factor=1.0)) is None
    assert usd_per_million_tokens(Range.around(1.0, factor=1.0), None) is None
