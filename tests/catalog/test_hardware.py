"""Chips and sizes: published figures worked by hand, and what must hold for every one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from chipwise.catalog import Catalog, load_catalog
from chipwise.catalog.hardware import build_chip, build_instance
from chipwise.errors import KnowledgeError

GIB = 2**30
CHIP = {"vendor": "maker", "architecture": "new"}
SIZE = {"family": "x1", "kind": "gpu", "status": "current"}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def test_memory_is_what_the_driver_reports_and_the_api_figure_stays_as_conflict(catalog: Catalog) -> None:
    chip = catalog.chip("h200-sxm")
    (memory,) = (fact for fact in catalog.facts_of("h200-sxm") if fact.key == "memory")
    assert chip.memory_bytes == round(139.81 * GIB)
    assert (memory.kind, memory.why is None) == ("measured", False)
    assert (144384, "MiB", "api") in [(rival.value, rival.unit, rival.kind) for rival in memory.conflicts]
    assert chip.memory_marketing_bytes == 141_000_000_000


@pytest.mark.parametrize(
    ("chip", "gib"),
    [("h100-sxm", 79.19), ("l4", 22.161), ("t4", 14.74), ("trainium2", 96.0), ("b300", 267.53)],
)
def test_memory_in_gib(catalog: Catalog, chip: str, gib: float) -> None:
    assert catalog.chip(chip).memory_bytes == pytest.approx(gib * GIB, rel=1e-4)


@pytest.mark.parametrize(
    ("chip", "number_format", "tflops"),
    [
        ("h100-sxm", "bf16", 989),
        ("h100-sxm", "fp8", 1979),
        ("b200", "fp4", 9000),
        ("b300", "int8", 153.5),
        ("a100-sxm-80", "int4", 1248),
        ("trainium1", "fp8", 190),
        ("trainium2", "fp8", 1299),
    ],
)
def test_dense_rates(catalog: Catalog, chip: str, number_format: str, tflops: float) -> None:
    assert catalog.chip(chip).dense_flops_per_s[number_format] == tflops * 1e12


def test_native_is_not_weight_only(catalog: Catalog) -> None:
    hopper, ampere, ada = (catalog.chip(name) for name in ("h100-sxm", "a100-sxm-80", "l40s"))
    assert "int4" in hopper.weight_only
    assert "int4" not in hopper.native
    assert {"int8", "int4"} <= ampere.native
    assert "fp8" in ampere.weight_only - ampere.native
    assert "fp8" in ada.native
    assert "fp4" in catalog.chip("b200").native
    assert "fp4" in catalog.chip("trainium3").weight_only - catalog.chip("trainium3").native
    assert "int4" in ampere.native & ampere.weight_only, "multiplied as INT4, or held as weights: both run"


def test_links_are_one_way(catalog: Catalog) -> None:
    link = catalog.chip("h100-sxm").link
    assert link is not None
    assert (link.kind, link.bytes_per_s_one_way, link.domain_chips) == ("nvswitch", 450e9, 8)
    wide, narrow = catalog.instance("g7e.48xlarge").link, catalog.instance("g6e.48xlarge").link
    assert wide is not None
    assert narrow is not None
    assert wide.bytes_per_s_one_way == pytest.approx(32e9 * 16 * 128 / 130 / 8, rel=1e-3)
    assert narrow.bytes_per_s_one_way == pytest.approx(16e9 * 8 * 128 / 130 / 8, rel=1e-3)
    assert (wide.peer_to_peer, narrow.peer_to_peer) == (True, False)


def test_a_neuron_link_is_halved_and_says_that_this_is_assumed(catalog: Catalog) -> None:
    trn1, trn1n = catalog.instance("trn1.32xlarge").link, catalog.instance("trn1n.32xlarge").link
    assert trn1 is not None
    assert trn1n is not None
    assert trn1.bytes_per_s_one_way == 192 * GIB
    assert trn1n.bytes_per_s_one_way == 384 * GIB
    (fact,) = (fact for fact in catalog.facts_of("trn1.32xlarge") if fact.key == "link_one_way")
    assert fact.kind == "assumed"
    assert fact.why is not None


@pytest.mark.parametrize(
    ("chip", "physical", "logical"),
    [("trainium2", 8, 4), ("trainium1", 2, 2), ("inferentia2", 2, 2), ("inferentia1", 4, 4), ("l4", 1, 1)],
)
def test_logical_cores(catalog: Catalog, chip: str, physical: int, logical: int) -> None:
    found = catalog.chip(chip)
    assert (found.physical_cores, found.cores) == (physical, logical)


def test_mig_memory_and_compute_are_different_fractions(catalog: Catalog) -> None:
    profiles = {profile.name: profile for profile in catalog.chip("h100-sxm").mig_profiles}
    small = profiles["1g.10gb"]
    assert (small.count, small.memory_fraction, small.compute_fraction) == (7, 1 / 8, 1 / 7)
    assert small.memory_bytes == (catalog.chip("h100-sxm").memory_bytes or 0) // 8
    assert profiles["3g.40gb"].memory_fraction == 1 / 2
    assert [p.count for p in catalog.chip("rtx-pro-6000").mig_profiles] == [4, 2, 1]
    assert catalog.chip("l40s").mig_profiles == ()


@pytest.mark.parametrize(
    ("size", "chip", "chips", "devices"),
    [
        ("p5.48xlarge", "h100-sxm", 8, 8),
        ("p5.4xlarge", "h100-sxm", 1, 1),
        ("g6e.12xlarge", "l40s", 4, 4),
        ("g7e.12xlarge", "rtx-pro-6000", 2, 2),
        ("trn2.48xlarge", "trainium2", 16, 64),
        ("trn1.32xlarge", "trainium1", 16, 32),
        ("inf2.48xlarge", "inferentia2", 12, 24),
        ("p6e-gb200.36xlarge", "gb200", 4, 4),
        ("c7i.xlarge", None, 0, 0),
    ],
)
def test_accelerators_of_a_size(catalog: Catalog, size: str, chip: str | None, chips: int, devices: int) -> None:
    found = catalog.instance(size)
    assert (found.chip, found.chips, found.devices) == (chip, chips, devices)


@pytest.mark.parametrize(
    ("size", "gbps", "interfaces", "generation"),
    [
        ("g6e.48xlarge", 400, 4, 2),
        ("p5.48xlarge", 3200, 32, 2),
        ("p6-b200.48xlarge", 3200, 8, 4),
        ("p6-b300.48xlarge", 6400, 16, 4),
        ("trn2.48xlarge", 3200, 16, 3),
        ("trn2.3xlarge", 200, 1, 3),
        ("g6e.2xlarge", 0, 0, None),
        ("inf2.48xlarge", 0, 0, None),
    ],
)
def test_efa(catalog: Catalog, size: str, gbps: float, interfaces: int, generation: int | None) -> None:
    found = catalog.instance(size)
    assert found.efa_bytes_per_s == gbps * 1e9 / 8
    assert (found.efa_interfaces, found.efa_generation) == (interfaces, generation)


def test_what_the_api_gets_wrong_stays_visible(catalog: Catalog) -> None:
    conflicts = {
        (name, fact.key): [(rival.value, rival.unit) for rival in fact.conflicts]
        for name in ("trainium2", "p6-b200.48xlarge", "g6e.48xlarge", "trn2.3xlarge")
        for fact in catalog.facts_of(name)
        if fact.conflicts
    }
    assert conflicts[("trainium2", "memory")] == [(524288, "MiB")]
    assert conflicts[("p6-b200.48xlarge", "efa")] == [(1600, "Gbps")]
    assert conflicts[("g6e.48xlarge", "efa")] == [(1600, "Gbps")]
    assert conflicts[("trn2.3xlarge", "network")] == [(50, "Gbps")]


def test_a_fractional_size_holds_a_fraction_of_one_chip(catalog: Catalog) -> None:
    half, whole = catalog.instance("g6f.4xlarge"), catalog.instance("g6.xlarge")
    assert (half.chips, half.chip_fraction, half.link) == (1, 0.5, None)
    assert half.accelerator_memory_bytes == 11444 * 2**20
    assert (whole.chip_fraction, whole.accelerator_memory_bytes) == (1.0, catalog.chip("l4").memory_bytes)


@pytest.mark.parametrize(
    ("size", "classes"),
    [
        ("g6.xlarge", {"on-demand", "spot"}),
        ("p5.48xlarge", {"on-demand", "spot", "capacity-block"}),
        ("p5e.48xlarge", {"spot", "capacity-block"}),
        ("trn2.48xlarge", {"spot", "capacity-block"}),
        ("p6e-gb200.36xlarge", {"capacity-block"}),
        ("trn2u.48xlarge", {"capacity-block"}),
        ("p3.2xlarge", set()),
    ],
)
def test_ways_to_buy(catalog: Catalog, size: str, classes: set[str]) -> None:
    assert catalog.instance(size).usage_classes == classes


def test_rdma_and_gpudirect_are_different_things(catalog: Catalog) -> None:
    old, plain, full = (catalog.instance(name) for name in ("p4d.24xlarge", "g6e.48xlarge", "p5.48xlarge"))
    assert (old.rdma_read, old.rdma_write, old.gpudirect_rdma) == (True, False, True)
    assert (plain.rdma, plain.gpudirect_rdma) == (True, False)
    assert (full.rdma, full.gpudirect_rdma, full.gds, full.ultracluster) == (True, True, True, True)
    assert catalog.instance("g7.12xlarge").gpudirect_rdma is None


def test_what_is_not_known_is_named(catalog: Catalog) -> None:
    assert "accelerators an instance" in catalog.instance("p6e-gb300.36xlarge").lacks
    assert catalog.instance("p6e-gb300.36xlarge").chips is None
    assert catalog.instance("g7.12xlarge").lacks == ("dense 16-bit FLOP/s of rtx-pro-4500",)
    assert "memory bandwidth of qualcomm-ai100" in catalog.instance("dl2q.24xlarge").lacks
    assert "EC2 type name" in catalog.instance("trn3-gen1-ultraserver").lacks
    assert catalog.instance("p5.48xlarge").lacks == ()


def test_a_chip_that_can_be_judged_has_what_a_prediction_needs(catalog: Catalog) -> None:
    for chip in catalog.chips.values():
        whole = bool(
            chip.memory_bytes
            and chip.memory_bandwidth_bytes_per_s
            and chip.native
            and chip.dense_flops_per_s.keys() & {"bf16", "fp16"}
        )
        assert whole == (not chip.lacks), chip.id


def test_families_of_a_chip_are_those_of_its_sizes(catalog: Catalog) -> None:
    assert catalog.chip("h200-sxm").aws_families == ("p5e", "p5en")
    assert catalog.chip("h100-pcie").aws_families == ()
    assert sorted(catalog.chip("l4").aws_families) == ["g6", "g6f", "gr6", "gr6f"]


def test_every_size_of_a_family_carries_its_chip(catalog: Catalog) -> None:
    for size in catalog.instances.values():
        if size.chip:
            assert size.family in catalog.chip(size.chip).aws_families
        assert (size.kind == "cpu") == (size.chip is None)


def test_facts_cannot_be_changed(catalog: Catalog) -> None:
    with pytest.raises(TypeError):
        catalog.chip("l4").dense_flops_per_s["bf16"] = 1.0  # type: ignore[index]  # the test is that it fails


@pytest.mark.parametrize("missing", ["vendor", "architecture"])
def test_a_chip_without_what_every_chip_needs_is_refused(missing: str) -> None:
    values = {key: value for key, value in CHIP.items() if key != missing}
    with pytest.raises(KnowledgeError, match=missing):
        build_chip("new-1", values, families=(), mig_rows=())


def test_a_bare_chip_knows_nothing_more(catalog: Catalog) -> None:
    chip = build_chip("new-1", CHIP, families=(), mig_rows=())
    assert (chip.memory_bytes, chip.link, chip.sparsity, dict(chip.dense_flops_per_s)) == (
        None,
        None,
        None,
        {},
    )
    assert len(chip.lacks) == 4
    assert build_instance("x1.large", {**SIZE, "chip": "new-1"}, {"new-1": chip}).lacks[0].startswith("accel")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"chip": "nowhere"}, "no chip of the catalog"),
        ({"kind": "toaster"}, "'kind' is 'toaster'"),
        ({"status": "soon"}, "'status' is 'soon'"),
        ({"usage_classes": "on-demand|gift"}, "gift"),
        ({"vcpu": "many"}, "'vcpu' is 'many'"),
        ({"gds": 1}, "'gds' is 1"),
        ({"network": "fast"}, "'network' is 'fast'"),
        ({"cpu_arch": 64}, "'cpu_arch' is 64"),
        ({"link": "PCIe"}, "link_kind"),
        ({"link": "PCIe", "link_kind": "rope"}, "rope"),
    ],
)
def test_a_size_of_a_wrong_shape_is_refused(change: dict[str, str | int], word: str) -> None:
    with pytest.raises(KnowledgeError) as caught:
        build_instance("x1.large", {**SIZE, **change}, {})
    assert word in caught.value.what


@pytest.mark.parametrize(
    "row", [["c", "1g", "7", "1/0", "1/7"], ["c", "1g", "x", "1/8", "1/7"], ["c", "1g", "7", "", ""]]
)
def test_a_broken_mig_row_is_refused(row: list[str]) -> None:
    with pytest.raises(KnowledgeError, match="MIG profile 1g of c"):
        build_chip("c", CHIP, families=(), mig_rows=[row])


def test_the_shipped_tables_are_small(catalog: Catalog) -> None:
    assert sum(path.stat().st_size for path in Path(catalog.folder).iterdir()) < 10**6
