"""The guide's features and quick references against the catalog."""

from __future__ import annotations

import pytest

from chipwise.catalog import Catalog
from chipwise.errors import UnknownNameError
from chipwise.guide import feature_of, feature_role
from chipwise.guide.tables import table

REFERENCES = {row["instance"]: row for row in table("quick_reference")}


def has(catalog: Catalog, feature: str, name: str) -> bool | None:
    instance = catalog.instances[name]
    return feature_of(feature, instance, catalog.chips[instance.chip or ""]).has


def amount(catalog: Catalog, feature: str, name: str) -> str:
    instance = catalog.instances[name]
    return feature_of(feature, instance, catalog.chips[instance.chip or ""]).amount


@pytest.mark.parametrize("name", REFERENCES)
def test_the_quick_references_agree_with_the_catalog(catalog: Catalog, name: str) -> None:
    row, instance = REFERENCES[name], catalog.instances[name]
    assert (str(instance.chips), instance.chip) == (row["chips"], row["accelerator"])
    assert round((instance.network_bytes_per_s or 0) * 8 / 1e9) == int(row["network_gbps"])
    assert (instance.efa_generation or 0) == int(row["efa_generation"])
    nominal = (instance.accelerator_memory_bytes or 0) * (instance.chips or 0)
    assert nominal / float(row["memory_gb"]) == pytest.approx(1.0e9, rel=0.08)


def test_links_are_those_of_the_catalog(catalog: Catalog) -> None:
    names = ["p5.48xlarge", "p5en.48xlarge", "p4d.24xlarge", "trn2.48xlarge", "g7e.48xlarge", "g6e.48xlarge"]
    assert [has(catalog, "nvlink", name) for name in names] == [True] * 4 + [False] * 2
    assert "450 GB/s" in amount(catalog, "nvlink", "p5.48xlarge")
    assert "900 GB/s" in amount(catalog, "nvlink", "p6-b200.48xlarge")
    link = catalog.instances["g6e.48xlarge"].link
    assert link is not None
    assert not link.peer_to_peer


def test_gpudirect_gds_and_ultracluster_follow_the_catalog(catalog: Catalog) -> None:
    assert [has(catalog, "gpudirect-rdma", name) for name in ("p5.48xlarge", "p4d.24xlarge", "g7e.12xlarge")] == [
        True
    ] * 3
    assert [has(catalog, "gpudirect", name) for name in ("p5.4xlarge", "g6e.48xlarge")] == [False] * 2
    assert [has(catalog, "gds", name) for name in ("p5en.48xlarge", "p6-b200.48xlarge")] == [True] * 2
    assert not has(catalog, "gds", "g6e.48xlarge")
    assert has(catalog, "ultracluster", "p5.48xlarge")
    assert not has(catalog, "ultracluster", "g6e.2xlarge")


def test_efa_says_its_rate(catalog: Catalog) -> None:
    assert amount(catalog, "efa", "trn2.48xlarge") == "3200 Gbps EFA"
    assert amount(catalog, "efa", "g6e.2xlarge") == "no EFA"
    assert has(catalog, "efa", "inf2.48xlarge") is False


def test_every_feature_of_the_checklist_says_what_it_does() -> None:
    assert all(feature_role(name).effect for name in {row["feature"] for row in table("checklist")})


def test_unknown_features_are_refused(catalog: Catalog) -> None:
    instance = catalog.instances["p5.48xlarge"]
    with pytest.raises(UnknownNameError, match="nvlnk"):
        feature_of("nvlnk", instance, catalog.chips["h100-sxm"])
    with pytest.raises(UnknownNameError):
        feature_role("rdma2")


@pytest.mark.parametrize(
    ("feature", "name", "has_it", "words"),
    [
        ("fp8", "p5.48xlarge", True, "TFLOPS dense fp8"),
        ("fp8", "p4d.24xlarge", False, "fp8 no"),
        ("fp4", "g7e.2xlarge", True, "TFLOPS dense fp4"),
        ("int8", "trn2.48xlarge", False, "int8 no"),
        ("mig", "g7e.2xlarge", True, "up to 4 MIG instances"),
        ("mig", "g6e.2xlarge", False, "no MIG"),
    ],
)
def test_formats_and_mig_are_features_of_the_chip(
    catalog: Catalog, feature: str, name: str, *, has_it: bool, words: str
) -> None:
    assert has(catalog, feature, name) is has_it
    assert words in amount(catalog, feature, name)
