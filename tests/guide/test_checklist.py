"""The required-feature checklist, row by row."""

from __future__ import annotations

import pytest

from chipwise.guide import checklist_row, feature_needs

ROWS = {
    "pretrain-large": ["required", "required", "required", "recommended", "recommended"],
    "finetune-mid": ["required", "required", "recommended", "optional", "not-needed"],
    "inference-large": ["required", "required", "recommended", "not-needed", "not-needed"],
    "inference-mid": ["optional", "optional", "optional", "not-needed", "not-needed"],
    "multi-serving": ["not-needed"] * 5,
}


@pytest.mark.parametrize("row", ROWS)
def test_the_cells_of_the_checklist(row: str) -> None:
    assert [need.need for need in feature_needs(row, nodes=2, devices_per_replica=8)] == ROWS[row]


@pytest.mark.parametrize("row", ROWS)
def test_one_node_needs_no_network_and_one_device_no_link(row: str) -> None:
    needs = {need.feature: need.need for need in feature_needs(row, nodes=1, devices_per_replica=1)}
    assert {needs[name] for name in ("nvlink", "efa", "gpudirect-rdma", "ultracluster")} == {"not-needed"}


@pytest.mark.parametrize(
    ("training", "params", "pretrain", "shared", "row"),
    [
        (True, 100e9, False, False, "pretrain-large"),
        (True, 8e9, True, False, "pretrain-large"),
        (True, 70e9, False, False, "finetune-mid"),
        (False, 70e9, False, False, "inference-large"),
        (False, 69e9, False, False, "inference-mid"),
        (False, 8e9, False, True, "multi-serving"),
    ],
)
def test_the_row_of_a_workload(*, training: bool, params: float, pretrain: bool, shared: bool, row: str) -> None:
    assert checklist_row(training=training, params=params, pretrain=pretrain, multi_serving=shared) == row
