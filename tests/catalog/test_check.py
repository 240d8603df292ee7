"""The check is clean on what is shipped, and finds each mistake that is planted in a copy of the tables."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from chipwise.catalog import load_catalog, read_catalog
from chipwise.catalog.check import Finding, check_catalog, read_rules
from chipwise.errors import KnowledgeError

Rows = list[list[str]]


def planted(folder: Path, table: str, change: Callable[[Rows], None]) -> list[Finding]:
    """The findings after `change` has edited the rows (header first) of one table of a copy."""
    copy = folder / "data"
    shutil.copytree(load_catalog().folder, copy)
    path = copy / table
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    change(rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    return check_catalog(read_catalog(copy))


def setting(key: tuple[str, ...], column: int, value: str) -> Callable[[Rows], None]:
    """Sets one column of the first row that begins with `key`."""

    def change(rows: Rows) -> None:
        next(row for row in rows if tuple(row[: len(key)]) == key)[column] = value

    return change


def adding(row: list[str]) -> Callable[[Rows], None]:
    return lambda rows: rows.append(row)


def test_what_is_shipped_is_clean() -> None:
    assert check_catalog(load_catalog()) == []


@pytest.mark.parametrize(
    ("subject", "key", "printed", "rule"),
    [
        ("h200-sxm", "memory_bandwidth", ["48000", "GB/s"], "range"),
        ("h200-sxm", "memory_bandwidth", ["4.8", "GB/s"], "range"),
        ("h100-sxm", "fp8", ["3958", "TFLOPS"], "rates"),
        ("h100-sxm", "bf16", ["1979", "TFLOPS"], "rates"),
        ("b200", "fp4", ["18000", "TFLOPS"], "rates"),
        ("h100-sxm", "tdp", ["7000", "W"], "range"),
        ("trainium2", "memory", ["524288", "MiB"], "memory-box"),
        ("l4", "memory", ["24", "GB"], "memory-box"),
        ("h200-sxm", "memory", ["120", "GB"], "memory-box"),
        ("h100-sxm", "link_one_way", ["900", "GB/s"], "link"),
    ],
)
def test_a_wrong_figure_of_a_chip_is_found(
    tmp_path: Path, subject: str, key: str, printed: list[str], rule: str
) -> None:
    def change(rows: Rows) -> None:
        next(row for row in rows if row[:2] == [subject, key])[2:4] = printed

    findings = planted(tmp_path, "chips.csv", change)
    assert (subject, rule) in {(finding.subject, finding.rule) for finding in findings}


@pytest.mark.parametrize(
    ("subject", "key", "value", "rule"),
    [
        ("p6-b200.48xlarge", "network", "1600", "efa"),
        ("g6e.48xlarge", "efa", "1600", "efa"),
        ("g6e.24xlarge", "efa", "400", "efa"),
        ("g6e.12xlarge", "efa", "50", "efa"),
        ("p5.48xlarge", "efa_interfaces", "1", "efa"),
        ("p5.48xlarge", "efa", "0", "efa"),
        ("p5.48xlarge", "chips", "4", "memory-total"),
        ("trn2.48xlarge", "accelerator_memory_total", "8192", "memory-total"),
        ("p5.48xlarge", "accelerator_memory_total", "630000", "memory-total"),
        ("p5.48xlarge", "link_one_way", "900", "link"),
        ("p5.48xlarge", "vcpu", "19200", "range"),
        ("p5.48xlarge", "ram", "204800", "range"),
        ("p5.4xlarge", "status", "retired", "offering"),
    ],
)
def test_a_wrong_figure_of_a_size_is_found(tmp_path: Path, subject: str, key: str, value: str, rule: str) -> None:
    findings = planted(tmp_path, "instances.csv", setting((subject, key), 2, value))
    assert (subject, rule) in {(finding.subject, finding.rule) for finding in findings}


@pytest.mark.parametrize(
    ("subject", "dropped", "rule"),
    [
        ("p5.48xlarge", "chips", "accelerator"),
        ("p5.48xlarge", "chip", "accelerator"),
        ("p5.48xlarge", "efa_generation", "efa"),
        ("p5.48xlarge", "rdma_read", "efa"),
        ("p5.48xlarge", "network", "efa"),
    ],
)
def test_a_missing_fact_of_a_size_is_found(tmp_path: Path, subject: str, dropped: str, rule: str) -> None:
    def change(rows: Rows) -> None:
        rows[:] = [row for row in rows if row[:2] != [subject, dropped]]

    findings = planted(tmp_path, "instances.csv", change)
    assert (subject, rule) in {(finding.subject, finding.rule) for finding in findings}


def test_a_total_without_the_memory_of_one_chip_is_found(tmp_path: Path) -> None:
    def change(rows: Rows) -> None:
        rows[:] = [row for row in rows if row[:2] != ["b300", "memory"]]

    findings = planted(tmp_path, "chips.csv", change)
    assert [(finding.subject, finding.rule) for finding in findings] == [("p6-b300.48xlarge", "memory-total")]


def test_a_link_on_a_size_of_one_chip_is_found(tmp_path: Path) -> None:
    def change(rows: Rows) -> None:
        for key, text in (("link", "NVLink"), ("link_kind", "nvlink")):
            rows.append(["p5.4xlarge", key, text, "", "api", "ec2-api", "planted", "2026-11-30", ""])

    (finding,) = planted(tmp_path, "instances.csv", change)
    assert (finding.subject, finding.rule) == ("p5.4xlarge", "link")


def test_a_card_that_contradicts_its_class_is_found(tmp_path: Path) -> None:
    def change(rows: Rows) -> None:
        row = next(row for row in rows if row[:2] == ["trn2.3xlarge", "efa"])
        row[2], row[8] = "50", ""

    rules = {finding.rule for finding in planted(tmp_path, "instances.csv", change)}
    assert {"efa", "provenance"} <= rules


@pytest.mark.parametrize(
    ("column", "value", "word"),
    [(8, "", "rivals"), (7, "30.11.2026", "ISO date"), (6, " ", "where in the source")],
)
def test_a_fact_without_provenance_is_found(tmp_path: Path, column: int, value: str, word: str) -> None:
    findings = planted(tmp_path, "chips.csv", setting(("h200-sxm", "memory"), column, value))
    assert any(finding.rule == "provenance" and word in finding.what for finding in findings)


def test_a_rate_that_is_not_native_is_found(tmp_path: Path) -> None:
    row = ["h100-sxm", "int4", "3958", "TFLOPS", "vendor", "stas", "doubled", "2026-11-30", ""]
    findings = planted(tmp_path, "chips.csv", adding(row))
    assert [(finding.subject, finding.rule) for finding in findings] == [("h100-sxm", "native")]


def test_too_many_mig_slices_are_found(tmp_path: Path) -> None:
    findings = planted(tmp_path, "mig.csv", setting(("h100-sxm", "1g.10gb"), 2, "9"))
    assert [finding.rule for finding in findings] == ["mig"]


@pytest.mark.parametrize(
    ("column", "value", "word"),
    [
        (0, "p9.48xlarge", "does not hold"),
        (1, "mars-1", "region is not in the table"),
        (3, "capacity-block", "not sold that way"),
        (4, "-1", "-1 USD/h"),
        (4, "5504", "5504 USD/h"),
        (4, "300", "by region"),
        (4, "", "no price and no word why"),
        (5, "", "no date"),
        (7, "8", "8 instances"),
    ],
)
def test_a_wrong_price_is_found(tmp_path: Path, column: int, value: str, word: str) -> None:
    size = "g6e.48xlarge" if column == 3 else "p5.48xlarge"
    findings = planted(tmp_path, "prices.csv", setting((size, "us-east-1", "", "on-demand"), column, value))
    assert any(finding.rule == "price" and word in finding.what for finding in findings)


@pytest.mark.parametrize(
    ("row", "word"),
    [
        (["p3.2xlarge", "us-east-1", "use1-az1", "api", "2026-10-27", "ec2-offerings"], "retired"),
        (["p9.large", "us-east-1", "use1-az1", "api", "2026-10-27", "ec2-offerings"], "does not hold"),
        (["p5.48xlarge", "mars-1", "m1", "api", "2026-10-27", "ec2-offerings"], "mars-1"),
        (["p5.48xlarge", "us-west-1", "", "api", "2026-10-27", "ec2-offerings"], "no zone"),
    ],
)
def test_a_wrong_offering_is_found(tmp_path: Path, row: list[str], word: str) -> None:
    findings = planted(tmp_path, "offerings.csv", adding(row))
    assert [finding.rule for finding in findings] == ["offering"]
    assert word in findings[0].what


def test_a_current_size_that_is_offered_nowhere_is_found(tmp_path: Path) -> None:
    def change(rows: Rows) -> None:
        rows[:] = [row for row in rows if row[0] != "trn2u.48xlarge"]

    (finding,) = planted(tmp_path, "offerings.csv", change)
    assert (finding.subject, finding.rule) == ("trn2u.48xlarge", "offering")


def test_impossible_savings_are_found(tmp_path: Path) -> None:
    def change(rows: Rows) -> None:
        rows[1][2] = "101"

    assert [finding.rule for finding in planted(tmp_path, "spot.csv", change)] == ["spot"]


def test_an_alias_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    findings = planted(tmp_path, "aliases.csv", adding(["H900", "h900", "", "chipwise"]))
    assert [(finding.subject, finding.rule) for finding in findings] == [("H900", "alias")]


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("prices.csv", ["p5.48xlarge", "", "", "lease", "1", "", "instance", "1", "false", "skypilot", ""]),
        (
            "prices.csv",
            ["p5.48xlarge", "", "", "spot", "cheap", "", "instance", "1", "false", "skypilot", ""],
        ),
        ("prices.csv", ["p5.48xlarge", "", "", "spot", "1", "", "rack", "1", "false", "skypilot", ""]),
        ("prices.csv", ["p5.48xlarge", "", "", "spot", "1", "", "instance", "1", "maybe", "skypilot", ""]),
        ("prices.csv", ["p5.48xlarge", "", "", "spot", "1", "", "instance", "1", "false", "dream", ""]),
        ("offerings.csv", ["p5.48xlarge", "us-east-1", "", "hearsay", "", ""]),
        ("regions.csv", ["mars-1", "planet", "ma"]),
        ("spot.csv", ["p5.48xlarge", "us-east-1", "lots", "0", "1", "", ""]),
    ],
)
def test_a_table_of_a_wrong_shape_is_refused_with_its_line(tmp_path: Path, table: str, row: list[str]) -> None:
    with pytest.raises(KnowledgeError) as caught:
        planted(tmp_path, table, adding(row))
    assert caught.value.what.startswith(f"{table}:")


@pytest.mark.parametrize("row", [["memory", "low", "1", "GiB", ""], ["memory", "1", "2", "pounds", ""]])
def test_broken_rules_are_refused(tmp_path: Path, row: list[str]) -> None:
    with pytest.raises(KnowledgeError, match="rules of the catalog check"):
        planted(tmp_path, "plausible.csv", adding(row))


def test_bounds_leave_the_unknown_alone() -> None:
    rules = read_rules(load_catalog().folder)
    assert not rules.outside("memory", None)
    assert rules.outside("memory", 0.0)
    assert all(low < high for low, high in rules.bounds.values())


def test_every_source_is_cited() -> None:
    catalog = load_catalog()
    cited = {
        row[5]
        for table in (catalog.chip_facts, catalog.instance_facts)
        for rows in table.rows.values()
        for group in rows.values()
        for row in group
    }
    for name, column in (("prices", 9), ("offerings", 5), ("spot", 6), ("aliases", 3), ("mig", 6)):
        with (catalog.folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            cited |= {row[column] for row in list(csv.reader(file))[1:]}
    assert cited == set(catalog.sources)
