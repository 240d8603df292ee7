"""Experts that are not asked evenly: what a step would take if one rank got what serving runs show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipwise.perf.parameters import parameters_for
from chipwise.units import show_seconds

if TYPE_CHECKING:
    from chipwise.decide.training.deployment import TrainingDeployment


def skew_words(deployment: TrainingDeployment, training: dict[str, Any]) -> str | None:
    """The risk in one sentence; None where no rank has experts of its own.

    A step counts experts as asked evenly, as the losses that balance them aim at.
    """
    way = deployment.way
    if way.ep == 1:
        return None
    chip = way.platform.chip
    links = parameters_for(chip=chip.id, generation=chip.architecture, engine="", fabric="nvswitch")
    skew = float(links.expert_imbalance)
    seconds = next(float(term["seconds"]) for term in training["terms"] if term["op"] == "expert")
    step = training["step_s"].mid
    return (
        f"expert skew: experts are counted as asked evenly; were the fullest of {way.ep} ranks asked {skew:.2f} times "
        f"its share, as serving runs show, their {show_seconds(seconds)} of a step of {show_seconds(step)} would be "
        f"{show_seconds(seconds * skew)}"
    )
