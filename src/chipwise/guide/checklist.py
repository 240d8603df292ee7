"""Which infrastructure features a kind of workload needs, by the guide's checklist."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.errors import UnknownNameError
from chipwise.guide.tables import cite, limit, table


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureNeed:
    """One cell of the checklist: `need` is required, recommended, optional or not-needed."""

    feature: str
    need: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureRole:
    """What a feature is for, when the guide asks for it, and what having it does."""

    feature: str
    names: str
    role: str
    needed_when: str
    effect: str
    source: str


def checklist_row(*, training: bool, params: float, pretrain: bool, multi_serving: bool) -> str:
    """The checklist's row for a workload.

    >>> checklist_row(training=False, params=70.6e9, pretrain=False, multi_serving=False)
    'inference-large'
    """
    if multi_serving:
        return "multi-serving"
    if training:
        return "pretrain-large" if pretrain or params >= limit("pretrain_large_params") else "finetune-mid"
    return "inference-large" if params >= limit("large_from_params") else "inference-mid"


def feature_needs(row: str, *, nodes: int, devices_per_replica: int) -> tuple[FeatureNeed, ...]:
    """The needs of one checklist row for a concrete layout.

    `multi-node` in the guide becomes required above one node and not-needed at one. A link between chips is not
    needed by a replica of one device, whatever the row says; the network features are not needed at one node.

    >>> [need.need for need in feature_needs("inference-large", nodes=1, devices_per_replica=4)]
    ['required', 'not-needed', 'not-needed', 'not-needed', 'not-needed']
    """
    return tuple(
        FeatureNeed(
            feature=cell["feature"],
            need=_need_here(cell["feature"], cell["need"], nodes, devices_per_replica),
            source=cite(cell["source"]),
        )
        for cell in table("checklist")
        if cell["workload"] == row
    )


def _need_here(feature: str, need: str, nodes: int, devices_per_replica: int) -> str:
    if feature == "nvlink" and devices_per_replica == 1:
        return "not-needed"
    if feature in {"efa", "gpudirect-rdma", "ultracluster"} and nodes == 1:
        return "not-needed"
    return "required" if need == "multi-node" else need


def feature_role(feature: str) -> FeatureRole:
    """What a feature of the checklist does.

    Raises:
        UnknownNameError: the guide does not describe it.

    >>> feature_role("efa").effect
    'carries traffic between instances'
    """
    for row in table("features"):
        if row["feature"] == feature:
            return FeatureRole(
                feature=feature,
                names=row["names"],
                role=row["role"],
                needed_when=row["needed_when"],
                effect=row["effect"],
                source=cite(row["where"]),
            )
    raise UnknownNameError("feature", feature, [row["feature"] for row in table("features")])
