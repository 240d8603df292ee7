"""Sharing one GPU by isolation and memory."""

from __future__ import annotations

import pytest
import yaml

from chipwise.catalog import Catalog
from chipwise.guide import sharing_advice, techniques


@pytest.mark.parametrize(("isolation", "technique"), [("none", "time-slicing"), ("memory", "mig"), ("hardware", "mig")])
def test_isolation_chooses_the_technique(catalog: Catalog, isolation: str, technique: str) -> None:
    profiles = catalog.chips["h100-sxm"].mig_profiles
    assert sharing_advice(isolation=isolation, memory_bytes=8e9, profiles=profiles).technique == technique


@pytest.mark.parametrize(
    ("chip", "need_bytes", "profile", "tenants"),
    [
        ("h100-sxm", 8e9, "1g.10gb", 7),
        ("h100-sxm", 14e9, "1g.20gb", 4),
        ("h100-sxm", 30e9, "3g.40gb", 2),
        ("rtx-pro-6000", 14e9, "1g.24gb", 4),
        ("a100-sxm-40", 14e9, "3g.20gb", 2),
    ],
)
def test_the_smallest_slice_that_holds_it(
    catalog: Catalog, chip: str, need_bytes: float, profile: str, tenants: int
) -> None:
    profiles = catalog.chips[chip].mig_profiles
    found = sharing_advice(isolation="hardware", memory_bytes=need_bytes, profiles=profiles)
    assert (found.profile, found.tenants) == (profile, tenants)


@pytest.mark.parametrize(("chip", "need_bytes"), [("l40s", 8e9), ("a10g", 8e9), ("h100-sxm", 100e9)])
def test_where_it_cannot_be_shared_so(catalog: Catalog, chip: str, need_bytes: float) -> None:
    profiles = catalog.chips[chip].mig_profiles
    found = sharing_advice(isolation="hardware", memory_bytes=need_bytes, profiles=profiles)
    assert (found.technique, found.profile) == (None, None)
    assert found.why


def test_only_mig_and_fractions_isolate_memory() -> None:
    assert [one.technique for one in techniques() if one.memory_isolated == "yes"] == ["mig", "fractional"]


@pytest.mark.parametrize("name", ["time-slicing", "mps"])
def test_configurations_are_yaml_that_the_plugin_takes(name: str) -> None:
    (found,) = [one for one in techniques() if one.technique == name]
    content = yaml.safe_load(f"{{{found.config}}}")
    (kind,) = content["sharing"].values()
    assert content["version"] == "v1"
    assert kind["resources"] == [{"name": "nvidia.com/gpu", "replicas": 4}]
