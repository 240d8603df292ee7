"""Platforms: sizes that are alike share one, and MIG cuts their GPUs into slices with their share of everything."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise import load_catalog
from chipwise.decide.platforms import Platform, platform_of, platforms_of, sliced, slices_of, with_slices
from chipwise.decide.serving.seats import slices_taken


def whole(name: str) -> Platform:
    catalog = load_catalog()
    instance = catalog.instance(name)
    return platform_of((instance,), catalog.chip(instance.chip or ""))


def cut(name: str, profile: str) -> Platform:
    return next(one for one in slices_of(whole(name)) if one.profile is not None and one.profile.name == profile)


@pytest.mark.parametrize(
    ("size", "profile", "devices", "each"),
    [
        ("p4d.24xlarge", "1g.5gb", 56, 7),
        ("p5.4xlarge", "1g.10gb", 7, 7),
        ("p5.48xlarge", "3g.40gb", 16, 2),
        ("g7e.2xlarge", "1g.24gb", 4, 4),
    ],
)
def test_slices_of_a_size_are_its_chips_times_the_profile_s_count(
    size: str, profile: str, devices: int, each: int
) -> None:
    found = cut(size, profile)
    assert (found.devices, found.devices_per_chip, found.most_tp) == (devices, each, 1)
    assert not found.networked


def test_a_slice_has_its_profile_s_share_of_memory_bandwidth_and_compute() -> None:
    """1g.10gb of an H100 is an eighth of its memory and bandwidth and a seventh of its compute."""
    slice_, chip = cut("p5.48xlarge", "1g.10gb"), load_catalog().chip("h100-sxm")
    assert slice_.device_memory_bytes == (chip.memory_bytes or 0) // 8
    assert slice_.bandwidth_fraction == 1 / 8
    assert slice_.fraction == 1 / 7


@pytest.mark.parametrize("size", ["p4d.24xlarge", "p5.48xlarge", "p6-b200.48xlarge", "g7e.48xlarge"])
def test_only_profiles_worth_renting_are_tried_smallest_first(size: str) -> None:
    found = [one.profile for one in slices_of(whole(size)) if one.profile]
    assert not [one for one in found if one.name.endswith("+me") or one.memory_fraction == 1.0 or not one.count]
    assert [one.memory_fraction for one in found] == sorted(one.memory_fraction for one in found)


@pytest.mark.parametrize("size", ["g6f.xlarge", "g6e.xlarge", "trn2.48xlarge", "g4dn.xlarge"])
def test_chips_without_mig_and_fractions_are_not_cut(size: str) -> None:
    assert slices_of(whole(size)) == []


def test_whole_gpus_stay_beside_slices() -> None:
    catalog = load_catalog()
    sizes = [catalog.instance(name) for name in ("p5.4xlarge", "g6e.xlarge")]
    platforms = platforms_of(sizes, catalog.chips)
    beside = with_slices(platforms)
    assert [one.chip.id for one in beside if one.profile is None] == ["h100-sxm", "l40s"]
    assert {one.chip.id for one in beside if one.profile} == {"h100-sxm"}


ALL_CUTS = [
    cut
    for size in load_catalog().instances.values()
    if size.chip and size.chips and not size.lacks
    for cut in slices_of(whole(size.name))
]


@given(st.sampled_from(ALL_CUTS), st.integers(1, 400))
def test_slices_never_add_up_to_more_than_the_chips(platform: Platform, replicas: int) -> None:
    chips = (platform.sample.chips or 1) if platform.sample else 1
    assert platform.devices * platform.device_memory_bytes <= chips * (platform.chip.memory_bytes or 0)
    assert platform.devices_per_chip * platform.fraction <= 1.0 + 1e-9
    assert platform.chips_of(replicas) * platform.devices_per_chip >= replicas
    assert (platform.chips_of(replicas) - 1) * platform.devices_per_chip < replicas
    assert slices_taken(platform)[0] == 1
    assert slices_taken(platform)[-1] == platform.devices


def test_a_chip_alone_is_cut_too() -> None:
    chip = load_catalog().chip("a100-sxm-40")
    (profile,) = [one for one in chip.mig_profiles if one.name == "2g.10gb"]
    one = sliced(whole("p4d.24xlarge"), profile)
    assert (one.devices, one.chips_of(4)) == (24, 2)
