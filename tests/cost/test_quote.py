"""Prices are dated ranges, never bare numbers, and a stand-in says that it is one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog import load_catalog
from chipwise.cost import best_quote, quote, spot_range, usd_per_million_tokens
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


def test_an_ultraserver_price_is_shared_by_its_instances() -> None:
    found = quote(load_catalog().prices("p6e-gb200.36xlarge"), term="capacity-block", regions=["us-east-1-dfw"])
    assert found is not None
    assert found.usd_per_hour.mid == pytest.approx(380.952 / 9)
    assert found.usd_per_hour.high == pytest.approx(761.904 / 18)
    assert found.sold_together == 9
    assert "380.95" in found.why


def test_spot_is_estimated_from_what_spot_advisor_saved() -> None:
    catalog = load_catalog()
    found = quote(
        catalog.prices("g6e.xlarge"), term="spot", regions=["us-east-1"], savings=catalog.spot_history("g6e.xlarge")
    )
    assert found is not None
    assert found.usd_per_hour.mid == pytest.approx(1.861 * (1 - 0.58))
    assert found.usd_per_hour.low < found.usd_per_hour.mid < found.usd_per_hour.high <= 1.861
    assert (found.kind, found.as_of, found.region) == ("assumed", "2025-06-28", "us-east-1")
    assert "estimated" in found.why


def test_a_printed_spot_price_comes_before_an_estimate() -> None:
    catalog = load_catalog()
    savings = catalog.spot_history("trn1.32xlarge")
    found = quote(catalog.prices("trn1.32xlarge"), term="spot", regions=["us-east-1"], savings=savings)
    assert found is not None
    assert (found.kind, found.usd_per_hour.mid) == ("api", 2.4334)


def test_every_printed_spot_price_lies_within_the_estimate_for_it() -> None:
    catalog = load_catalog()
    seen = 0
    for name in ("trn1.32xlarge", "trn1n.32xlarge"):
        on_demand = [one for one in catalog.prices(name) if one.term == "on-demand"]
        for printed in catalog.prices(name, term="spot"):
            found = quote(on_demand, term="spot", regions=[printed.region or ""], savings=catalog.spot_history(name))
            assert found is not None
            assert found.usd_per_hour.low <= (printed.usd_per_hour or 0.0) <= found.usd_per_hour.high * 1.0001
            seen += 1
    assert seen >= 6


def test_a_region_without_savings_or_on_demand_price_has_no_estimate() -> None:
    catalog = load_catalog()
    savings = catalog.spot_history("g6e.xlarge")
    assert quote(catalog.prices("g6e.xlarge"), term="spot", regions=["us-gov-west-1"], savings=savings) is None
    assert quote((), term="spot", regions=["us-east-1"], savings=savings) is None


@given(st.floats(0.1, 500.0), st.floats(-0.9, 0.95), st.floats(1.0, 4.0))
def test_a_spot_range_is_ordered_and_not_above_on_demand_where_it_saves(usd: float, saved: float, wide: float) -> None:
    found = spot_range(on_demand_usd_per_hour=usd, savings_fraction=saved, factor=wide)
    assert found.low <= found.mid <= found.high
    assert saved <= 0 or found.high <= usd * 1.000001
