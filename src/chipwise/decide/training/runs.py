"""A run as a whole: how long, what a checkpoint weighs, how often to write one, what interruptions cost."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.decide.advice import Run
from chipwise.facts import read_rows
from chipwise.memory.training_recipes import optimizer_of, recipe_of
from chipwise.units import Range

if TYPE_CHECKING:
    from chipwise.decide.question import Question
    from chipwise.decide.training.deployment import TrainingDeployment

DATA = Path(__file__).parent.parent / "data"
COLUMNS = ("key", "value", "unit", "kind", "source", "where", "read_on")
SECONDS_PER_HOUR = 3600.0
SECONDS_PER_MONTH = 30 * 86400.0


@cache
def _facts() -> dict[str, float]:
    return {row[0]: float(row[1]) for _, row in read_rows(DATA / "failures.csv", COLUMNS)}


def checkpoint_interval_s(*, write_s: float, mtbf_s: float) -> float:
    """Between two checkpoints: `sqrt(2 write mtbf)`.

    Source: Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974.

    >>> checkpoint_interval_s(write_s=50.0, mtbf_s=10000.0)
    1000.0
    """
    return math.sqrt(2.0 * write_s * mtbf_s)


def goodput_fraction(*, write_s: float, interval_s: float, mtbf_s: float) -> float:
    """The share of time that trains: what writing takes, and half an interval lost at each failure.

    `1 - write / (interval + write) - (interval / 2 + write) / mtbf`, at least 0.

    >>> round(goodput_fraction(write_s=50.0, interval_s=1000.0, mtbf_s=10000.0), 3)
    0.897
    """
    lost = write_s / (interval_s + write_s) + (interval_s / 2.0 + write_s) / mtbf_s
    return max(1.0 - lost, 0.0)


def checkpoint_bytes(question: Question, deployment: TrainingDeployment) -> float:
    """Weights and optimizer states as they are written: of all parameters, or of the adapters alone."""
    job = deployment.trial.job
    recipe, optimizer = recipe_of(job), optimizer_of(job)
    each = recipe.weight_bytes + recipe.master_bytes * optimizer.needs_master
    each += optimizer.moments * recipe.moment_bytes + optimizer.state_bytes
    if not job.adapts:
        return float(question.model.params_total) * each
    held = float(deployment.trial.memory_of(deployment.row, "adapters_bytes"))
    return held * deployment.way.tp * deployment.way.pp


def run_of(question: Question, deployment: TrainingDeployment) -> Run:
    """The run with failures and checkpoints counted into its duration.

    The mean time between failures of the run is that of a chip over its chips.
    """
    size_bytes = checkpoint_bytes(question, deployment)
    write_s = size_bytes / (_facts()["checkpoint_write"] * deployment.instances)
    mtbf_s = _facts()["chip_mtbf"] / deployment.chips
    interval_s = checkpoint_interval_s(write_s=write_s, mtbf_s=mtbf_s)
    good = goodput_fraction(write_s=write_s, interval_s=interval_s, mtbf_s=mtbf_s)
    took = deployment.duration_s.scaled(1.0 / max(good, 0.05))
    return Run(
        duration_s=took,
        chip_hours=took.scaled(deployment.chips / SECONDS_PER_HOUR),
        tokens=deployment.tokens,
        checkpoint_bytes=size_bytes,
        checkpoint_interval_s=interval_s,
        interruption_cost_usd=_interruptions(question, deployment, interval_s / 2.0 + write_s),
    )


def _interruptions(question: Question, deployment: TrainingDeployment, lost_s: float) -> Range | None:
    """What Spot interruptions cost: their monthly rate x the run x the work lost at each; None unless Spot is bought.

    The rate is the band that the Spot Advisor printed for the size in the regions asked for, dated in the catalog.
    """
    hourly = deployment.usd_per_hour
    if deployment.quote is None or deployment.quote.term != "spot" or hourly is None:
        return None
    bands = [
        one for one in question.catalog.spot_history(deployment.instance.name) if one.region in question.policy.regions
    ]
    if not bands:
        return None
    months = deployment.duration_s.mid / SECONDS_PER_MONTH
    each_usd = hourly.mid * lost_s / SECONDS_PER_HOUR * deployment.instances
    low = min(one.interruption_low_fraction for one in bands) * months * each_usd
    high = max(one.interruption_high_fraction for one in bands) * months * each_usd
    return Range(low=low, mid=(low + high) / 2.0, high=high)
