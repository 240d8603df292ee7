"""The guide's feature checklist against one size: what this workload needs, what the size has, what that does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.decide.advice import Discouraged, FeatureCheck
from chipwise.guide import checklist_row, feature_needs, feature_of

if TYPE_CHECKING:
    from chipwise.catalog import Chip, Instance
    from chipwise.decide.choose import Deployment
    from chipwise.guide import FeatureNeed

_EFFECT = {
    "nvlink": "carries the all-reduce of tensor parallelism",
    "efa": "carries traffic between instances",
    "gpudirect-rdma": "spares the copy through host memory between instances",
    "gds": "spares the copy through host memory at checkpoints",
    "ultracluster": "keeps hops few between many instances",
}


def feature_checks(deployment: Deployment, *, params: float, training: bool, pretrain: bool) -> list[FeatureCheck]:
    """Every row of the checklist for one deployment.

    Args:
        deployment: the size and its layout.
        params: the model's parameters.
        training: whether the work is training.
        pretrain: whether it is pre-training.
    """
    row = checklist_row(training=training, params=params, pretrain=pretrain, multi_serving=False)
    nodes = deployment.evaluated.packings[deployment.row].instances_per_unit
    needs = feature_needs(row, nodes=nodes, devices_per_replica=deployment.layout.devices)
    chip = deployment.layout.seat.platform.chip
    return [_check(need, deployment.instance, chip, row) for need in needs]


def _check(need: FeatureNeed, instance: Instance, chip: Chip, row: str) -> FeatureCheck:
    found = feature_of(need.feature, instance, chip)
    return FeatureCheck(
        feature=need.feature,
        need=need.need,
        has=bool(found.has),
        effect=f"{_EFFECT[need.feature]}; here: {found.amount}",
        rule=f"checklist {row}",
        source=f"{need.source}; {found.source}",
    )


def discouraged(checks: list[FeatureCheck], communication_share: float) -> list[Discouraged]:
    """What the guide requires and the size lacks: physics allows it at a price, so it is no rejection.

    Args:
        checks: the checklist of one deployment.
        communication_share: share of a decode step that goes into collectives.
    """
    return [
        Discouraged(
            rule=f"{check.rule}: {check.feature} {check.need}",
            why=f"the guide asks for it here ({check.source.partition(';')[0]}); errata A:720: a cost, no bar",
            penalty=f"collectives take {communication_share:.0%} of a decode step here, counted in the figures",
        )
        for check in checks
        if check.need == "required" and not check.has
    ]
