"""Experts that are not asked evenly: what the fullest rank costs a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipwise.perf.training_coefficients import training_coefficients
from chipwise.units import show_seconds

if TYPE_CHECKING:
    from chipwise.decide.training.deployment import TrainingDeployment


def skew_words(deployment: TrainingDeployment, training: dict[str, Any]) -> str | None:
    """The risk in one sentence; None where no rank has experts of its own.

    A step waits for the fullest rank, counted as runs that force nothing show it.
    """
    way, laid = deployment.way, deployment.trial
    if way.ep == 1:
        return None
    generation = way.platform.chip.architecture
    own = training_coefficients(generation=generation, precision=laid.job.precision, trainer=laid.scheme.trainer)
    load = float(own.imbalance_factor)
    seconds = next(float(term["seconds"]) for term in training["terms"] if term["op"] == "expert")
    return (
        f"expert skew: the fullest of {way.ep} ranks is counted as asked {load:.2f} times its share (fitted): its "
        f"experts take {show_seconds(seconds)} of a step of {show_seconds(training['step_s'].mid)}, and would take "
        f"{show_seconds(seconds / load)} asked evenly"
    )
