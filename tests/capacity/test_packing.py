"""Replicas pack onto whole instances."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.capacity import buyable_terms, known_regions, offered_regions, pack, redundancy_for
from chipwise.catalog import load_catalog
from chipwise.errors import InputError, UnknownNameError


@given(st.integers(1, 512), st.integers(1, 64))
def test_a_unit_holds_its_replicas_and_wastes_less_than_one(replica: int, instance: int) -> None:
    packing = pack(devices_per_replica=replica, devices_per_instance=instance)
    devices = packing.instances_per_unit * instance
    used = packing.replicas_per_unit * replica
    assert devices == used + packing.idle_devices_per_unit
    assert packing.idle_devices_per_unit < max(replica, instance)
    assert packing.replicas_per_unit == 1 or packing.instances_per_unit == 1


def test_nobody_rents_two_eighths_of_a_p5() -> None:
    packing = pack(devices_per_replica=2, devices_per_instance=8)
    assert (packing.replicas_per_unit, packing.instances_per_unit) == (4, 1)


def test_a_geography_means_its_commercial_regions() -> None:
    regions = load_catalog().regions
    found = known_regions(regions, ("us",))
    assert "us-east-1" in found
    assert not [name for name in found if "gov" in name or not name.startswith("us-")]


def test_no_region_means_every_commercial_one() -> None:
    regions = load_catalog().regions
    assert set(known_regions(regions, ())) == {one.name for one in regions.values() if one.kind == "commercial"}


def test_an_unknown_region_is_refused_with_a_near_name() -> None:
    with pytest.raises(UnknownNameError) as caught:
        known_regions(load_catalog().regions, ("us-est-1",))
    assert "us-east-1" in caught.value.fix


def test_offers_keep_the_order_asked() -> None:
    assert offered_regions(["a", "b", "c"], ["c", "x", "a"]) == ("c", "a")


def test_terms_follow_what_is_sold() -> None:
    catalog = load_catalog()
    assert buyable_terms(catalog.instance("p5e.48xlarge"), "any", interruptible=False) == ("capacity-block",)
    assert buyable_terms(catalog.instance("p5.48xlarge"), "any", interruptible=True)[0] == "on-demand"
    assert buyable_terms(catalog.instance("trn2u.48xlarge"), "spot", interruptible=True) == ()


def test_a_commitment_is_sold_for_whatever_is_sold_on_demand() -> None:
    catalog = load_catalog()
    for purchase in ("savings-plan", "reserved"):
        assert buyable_terms(catalog.instance("p5.48xlarge"), purchase, interruptible=False) == (purchase,)
        assert buyable_terms(catalog.instance("p5e.48xlarge"), purchase, interruptible=False) == ()


def test_any_availability_target_asks_for_twice_in_two_zones() -> None:
    asked = redundancy_for(0.999)
    assert (asked.ha_factor, asked.zones) == (2.0, 2)
    assert "A:389" in asked.source


@pytest.mark.parametrize("share", [0.0, 1.0, 1.5, -0.1])
def test_an_impossible_target_is_refused(share: float) -> None:
    with pytest.raises(InputError, match="availability"):
        redundancy_for(share)
