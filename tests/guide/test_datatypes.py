"""The guide's datatype matrices, cell by cell, against the chips of the catalog."""

from __future__ import annotations

import pytest

from chipwise.catalog import Catalog
from chipwise.guide import feature_of
from chipwise.guide.tables import table
from chipwise.precision import capability

CELLS = {row["id"]: row for row in table("datatypes")}
FEATURES = {"sparsity", "stochastic-rounding"}


@pytest.mark.parametrize("name", CELLS)
def test_the_right_column_is_what_the_catalog_holds(catalog: Catalog, name: str) -> None:
    cell = CELLS[name]
    right = cell["right"] == "yes"
    for chip_id in cell["chips"].split():
        chip = catalog.chips[chip_id]
        if cell["row"] in FEATURES:
            size = next(
                one for one in catalog.instances.values() if one.family in cell["families"].split() and one.chip
            )
            assert feature_of(cell["row"], size, chip).has is right
        else:
            assert (cell["row"] in chip.native) is right, chip_id


@pytest.mark.parametrize("name", CELLS)
def test_the_verdict_follows_from_both_columns(name: str) -> None:
    cell = CELLS[name]
    if cell["verdict"] == "wrong":
        assert cell["guide"] != cell["right"]
    if cell["guide"] == cell["right"]:
        assert cell["verdict"] != "wrong"


@pytest.mark.parametrize("chip_id", ["a10g", "a100-sxm-80", "l40s", "h100-sxm", "rtx-pro-6000", "b200"])
def test_4_bit_weights_run_on_every_gpu_of_the_matrix(catalog: Catalog, chip_id: str) -> None:
    found = capability(catalog.chips[chip_id], "int4")
    assert found.mode == "weight-only"
    assert found.compute_format in {"bf16", "fp16"}


def test_both_matrices_are_whole() -> None:
    assert [sum(row["table"] == name for row in CELLS.values()) for name in ("nvidia", "neuron")] == [60, 27]
