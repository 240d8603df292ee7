"""The guide's feature checklist against one size: what this workload needs, what the size has, what that does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from chipwise.decide.advice import Discouraged, FeatureCheck
from chipwise.guide import checklist_row, feature_needs, feature_of, feature_role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chipwise.catalog import Chip, Instance
    from chipwise.decide.advice import Option
    from chipwise.decide.effects import Effect
    from chipwise.decide.question import Question
    from chipwise.guide import FeatureNeed

NOTHING: Mapping[str, Effect] = MappingProxyType({})
BY_MIG = frozenset({"memory", "hardware"})
"""Isolation between tenants that only MIG gives on one GPU."""
_ON_THEIR_OWN = frozenset({"separate", "fractional"})
"""Ways in which several models live on one size without sharing a GPU."""
SHARED_PRESET = "multi-serving"
"""Several small models isolated on shared chips, unless the asker says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a replica (or a run) lives: the size, its chip, over how many instances and chips."""

    instance: Instance
    chip: Chip
    nodes: int
    chips: int


def feature_checks(
    site: Site,
    *,
    params: float,
    training: bool,
    pretrain: bool,
    multi_serving: bool = False,
    effects: Mapping[str, Effect] = NOTHING,
) -> list[FeatureCheck]:
    """Every row of the checklist for one deployment.

    Args:
        site: the size and its layout.
        params: the model's parameters.
        training: whether the work is training.
        pretrain: whether it is pre-training.
        multi_serving: whether several models share devices.
        effects: what a feature does here in seconds, by feature.
    """
    row = checklist_row(training=training, params=params, pretrain=pretrain, multi_serving=multi_serving)
    needs = feature_needs(row, nodes=site.nodes, devices_per_replica=site.chips)
    return [_check(need, site, row, effects.get(need.feature)) for need in needs]


def _check(need: FeatureNeed, site: Site, row: str, effect: Effect | None) -> FeatureCheck:
    found = feature_of(need.feature, site.instance, site.chip)
    here = f"{feature_role(need.feature).effect}; here: {found.amount}"
    return FeatureCheck(
        feature=need.feature,
        need=need.need,
        has=bool(found.has),
        effect=f"{here}; {effect.words}" if effect else here,
        rule=f"checklist {row}",
        source="; ".join([need.source, found.source, *([effect.source] if effect else [])]),
        time=effect.words if effect else None,
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


def with_tenancy(option: Option, question: Question) -> Option:
    """The option with its row for MIG: required where tenants of one GPU are to be isolated, else not needed."""
    instance = question.catalog.instances[option.instance]
    if option.chip not in question.catalog.chips:
        return option
    alone = bool(question.tenants) and option.sharing is not None and option.sharing["technique"] in _ON_THEIR_OWN
    chip = question.catalog.chips[option.chip]
    check = mig_check(instance, chip, isolated=isolated(question) and not alone)
    lacking = [one for one in [check] if one.need == "required" and not one.has]
    more = [
        Discouraged(
            rule=f"{check.rule}: {check.feature} {check.need}",
            why=f"the guide asks for it here ({check.source.partition(';')[0]})",
            penalty="every tenant takes a whole GPU, or shares memory with the others",
        )
        for check in lacking
    ]
    return replace(
        option,
        infrastructure=(*option.infrastructure, check),
        discouraged_by=(*option.discouraged_by, *more),
    )


def isolated(question: Question) -> bool:
    """Whether tenants of one GPU are to be kept apart: asked for, or implied by the preset."""
    return isolation_of(question) in BY_MIG


def isolation_of(question: Question) -> str:
    """Between tenants of one GPU: what was asked for; `hardware` where the preset is that of tenants, else none."""
    asked = question.policy.isolation
    return asked or ("hardware" if question.purpose == SHARED_PRESET else "none")


def mig_check(instance: Instance, chip: Chip, *, isolated: bool) -> FeatureCheck:
    """Whether the size can split a GPU for tenants, and whether they are asked for.

    Source: the guide's section on MIG: several small models in isolation on one GPU.
    """
    found, role = feature_of("mig", instance, chip), feature_role("mig")
    return FeatureCheck(
        feature="mig",
        need="required" if isolated else "not-needed",
        has=bool(found.has),
        effect=f"{role.effect}; here: {found.amount}",
        rule="isolated tenants on one GPU" if isolated else "no tenants share a GPU",
        source=f"{role.source}; {found.source}",
    )
