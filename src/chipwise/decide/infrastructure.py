"""The guide's feature checklist against one size: what this workload needs, what the size has, what that does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.decide.advice import Discouraged, FeatureCheck
from chipwise.guide import checklist_row, feature_needs, feature_of, feature_role

if TYPE_CHECKING:
    from chipwise.catalog import Chip, Instance
    from chipwise.guide import FeatureNeed


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a replica (or a run) lives: the size, its chip, over how many instances and chips."""

    instance: Instance
    chip: Chip
    nodes: int
    chips: int


def feature_checks(site: Site, *, params: float, training: bool, pretrain: bool) -> list[FeatureCheck]:
    """Every row of the checklist for one deployment.

    Args:
        site: the size and its layout.
        params: the model's parameters.
        training: whether the work is training.
        pretrain: whether it is pre-training.
    """
    row = checklist_row(training=training, params=params, pretrain=pretrain, multi_serving=False)
    needs = feature_needs(row, nodes=site.nodes, devices_per_replica=site.chips)
    return [_check(need, site.instance, site.chip, row) for need in needs]


def _check(need: FeatureNeed, instance: Instance, chip: Chip, row: str) -> FeatureCheck:
    found = feature_of(need.feature, instance, chip)
    return FeatureCheck(
        feature=need.feature,
        need=need.need,
        has=bool(found.has),
        effect=f"{feature_role(need.feature).effect}; here: {found.amount}",
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
