"""Which infrastructure features a kind of workload needs, by the guide's checklist."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

MID_MODEL_PARAMS = 70e9
LARGE_MODEL_PARAMS = 100e9


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureNeed:
    """One cell of the checklist: `need` is required, recommended, optional or not-needed."""

    feature: str
    need: str
    source: str


@cache
def _cells() -> tuple[dict[str, str], ...]:
    with files("chipwise.guide").joinpath("data/checklist.csv").open(encoding="utf-8", newline="") as lines:
        return tuple(csv.DictReader(lines))


def checklist_row(*, training: bool, params: float, pretrain: bool, multi_serving: bool) -> str:
    """The checklist's row for a workload.

    >>> checklist_row(training=False, params=70.6e9, pretrain=False, multi_serving=False)
    'inference-large'
    """
    if multi_serving:
        return "multi-serving"
    if training:
        return "pretrain-large" if pretrain or params >= LARGE_MODEL_PARAMS else "finetune-mid"
    return "inference-large" if params >= MID_MODEL_PARAMS else "inference-mid"


def feature_needs(row: str, *, nodes: int, devices_per_replica: int) -> tuple[FeatureNeed, ...]:
    """The needs of one checklist row for a concrete layout.

    `multi-node` in the guide becomes required above one node and not-needed at one. A link between chips is not
    needed by a replica of one device, whatever the row says; the network features are not needed at one node.

    >>> [need.need for need in feature_needs("inference-large", nodes=1, devices_per_replica=4)]
    ['required', 'not-needed', 'not-needed', 'not-needed', 'not-needed']
    """
    found = []
    for cell in _cells():
        if cell["workload"] != row:
            continue
        found.append(
            FeatureNeed(
                feature=cell["feature"],
                need=_need_here(cell["feature"], cell["need"], nodes, devices_per_replica),
                source=f"guide {cell['source']}",
            )
        )
    return tuple(found)


def _need_here(feature: str, need: str, nodes: int, devices_per_replica: int) -> str:
    if feature == "nvlink" and devices_per_replica == 1:
        return "not-needed"
    if feature in {"efa", "gpudirect-rdma", "ultracluster"} and nodes == 1:
        return "not-needed"
    return "required" if need == "multi-node" else need
