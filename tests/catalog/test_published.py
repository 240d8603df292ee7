"""The catalog holds what the published tables hold: every chip, size, offering, alias and USD price."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from chipwise.catalog import Catalog, load_catalog
from chipwise.catalog.lookup import fold

TYPES = {"yes": "api", "priced": "price-list"}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def table(shared: Path, name: str) -> list[dict[str, str]]:
    with (shared / "truth" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_chip_and_size_is_known(catalog: Catalog, shared: Path) -> None:
    published = {catalog.chip(row["chip"]).id for row in table(shared, "accelerators")}
    assert published <= set(catalog.chips)
    assert {chip.id for chip in catalog.chips.values() if chip.aws_families} <= published
    sizes = {row["instance_type"] for name in ("instances", "cpu_instances") for row in table(shared, name)}
    assert sizes == set(catalog.instances)


def reasoned(catalog: Catalog, chip: str, key: str) -> bool:
    """Whether a figure that no page prints says of itself that it follows from others, and why."""
    (fact,) = [one for one in catalog.facts_of(chip) if one.key == key]
    return fact.kind in {"derived", "assumed"} and bool(fact.why)


def test_chips_agree(catalog: Catalog, shared: Path) -> None:
    for row in table(shared, "accelerators"):
        chip = catalog.chip(row["chip"])
        for column in ("fp32", "tf32", "fp16", "bf16", "fp8"):
            text = row[f"{column}_tflops"].split(" ")[0]
            found = chip.dense_flops_per_s.get(column)
            assert found == float(text) * 1e12 if text else found is None or reasoned(catalog, chip.id, column), chip.id
        if row["mem_bw_gb_s"]:
            assert chip.memory_bandwidth_bytes_per_s == pytest.approx(float(row["mem_bw_gb_s"]) * 1e9, rel=2e-3)


def test_sizes_agree(catalog: Catalog, shared: Path) -> None:
    for row in table(shared, "instances"):
        size = catalog.instance(row["instance_type"])
        assert size.vcpu == (int(row["vcpu"]) if row["vcpu"] else None)
        assert size.chip == catalog.chip(row["chip"]).id
        count = float(row["chip_count"]) if row["chip_count"] else None
        assert count is None or size.chips is not None
        assert count is None or size.chip_fraction * (size.chips or 0) == count
        assert size.efa_bytes_per_s == (float(row["efa_gbps"]) * 1e9 / 8 if row["efa_gbps"] else None)
        assert (size.status == "retired") == row["status"].startswith(("retired", "graphics"))


def test_offerings_agree(catalog: Catalog, shared: Path) -> None:
    for row in table(shared, "regions"):
        name = row["instance_type"]
        offered = row["region"] in catalog.regions_of(name)
        priced = row["region"] in catalog.regions_of(name, priced=True)
        retired = catalog.instance(name).status == "retired"
        assert offered == (row["offered"] == "yes"), row
        assert priced == (row["offered"] in TYPES and not retired), row
        zones = {o.region: o.zones for o in catalog.offerings(name)}.get(row["region"], ())
        assert zones == tuple(row["az_ids"].split())


def test_every_alias_leads_somewhere_or_says_why(catalog: Catalog, shared: Path) -> None:
    for row in table(shared, "hardware_aliases"):
        alias = catalog.aliases.get(fold(row["alias"]))
        chip = catalog.chips.get(fold(row["alias"])) or catalog.chips.get((alias and alias.chip) or "")
        assert chip or (alias and alias.note), row
        assert (row["chip"] == "unknown") == (chip is None), row


def test_chips_that_aws_does_not_rent_can_place_measurements(catalog: Catalog) -> None:
    """Whatever a table may name beside AWS's own: memory, bandwidth and a 16-bit rate, each with its source."""
    elsewhere = [chip for chip in catalog.chips.values() if not chip.aws_families]
    assert {"amd", "intel", "google", "nvidia"} <= {chip.vendor for chip in elsewhere}
    assert {chip.id for chip in elsewhere if chip.lacks} <= {"tpu-v7x"}
    assert not {size.chip for size in catalog.instances.values()} & {chip.id for chip in elsewhere}


def test_every_usd_price_is_kept(catalog: Catalog, shared: Path) -> None:
    kept = {
        (name, price.term, price.usd_per_hour)
        for name, prices in catalog.prices_by_instance.items()
        for price in prices
    }
    for row in table(shared, "prices"):
        if row["region"].startswith("cn-") or not row["usd_per_hour"]:
            continue
        name = row["instance_type"].partition(" (")[2].rstrip(")").partition(" x ")[2] or row["instance_type"]
        assert (name, row["term"], float(row["usd_per_hour"])) in kept, row


def test_no_price_in_another_currency_is_kept(catalog: Catalog) -> None:
    regions = {price.region for prices in catalog.prices_by_instance.values() for price in prices}
    assert not any(region and catalog.regions[region].kind == "china" for region in regions)
