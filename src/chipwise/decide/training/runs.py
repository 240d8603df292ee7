"""A run as a whole: how long, what a checkpoint weighs, how often to write one, what interruptions cost."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.decide.advice import Run
from chipwise.facts import read_rows
from chipwise.perf import training_run as run_arithmetic

if TYPE_CHECKING:
    from chipwise.decide.question import Question
    from chipwise.decide.training.deployment import TrainingDeployment
    from chipwise.units import Range

DATA = Path(__file__).parent.parent / "data"
COLUMNS = ("key", "value", "unit", "kind", "source", "where", "read_on")
SECONDS_PER_MONTH = 30 * 86400.0
BYTES_PER_STATE = 12.0


def checkpoint_bytes(question: Question, deployment: TrainingDeployment) -> float:
    """Weights and optimizer states as they are written: of all parameters, or of the adapters alone."""
    job = deployment.trial.job
    held = deployment.trial.memory_of(deployment.row, "adapters_bytes") if job.adapts else 0.0
    adapters = held * deployment.way.tp * deployment.way.pp / BYTES_PER_STATE
    return run_arithmetic.checkpoint_bytes(params=float(question.model.params_total), adapter_params=adapters, job=job)


@cache
def _storage() -> dict[str, float]:
    return {row[0]: float(row[1]) for _, row in read_rows(DATA / "storage.csv", COLUMNS)}


def checkpoint_write_s(*, size_bytes: float, clients: int) -> float:
    """Seconds to write a checkpoint from every instance at once at the rate measured of one file-system client."""
    return size_bytes / (_storage()["checkpoint_write"] * clients)


def run_of(question: Question, deployment: TrainingDeployment) -> Run:
    """The run with failures and checkpoints counted into its duration."""
    size_bytes = checkpoint_bytes(question, deployment)
    write_s = checkpoint_write_s(size_bytes=size_bytes, clients=deployment.instances)
    mtbf_s = float(run_arithmetic.mean_time_between_failures_s(deployment.chips))
    interval_s = float(run_arithmetic.checkpoint_interval_s(write_s=write_s, mtbf_s=mtbf_s))
    good = run_arithmetic.goodput_fraction(
        write_s=write_s, interval_s=interval_s, mtbf_s=mtbf_s, restart_s=run_arithmetic.restart_s()
    )
    took = deployment.duration_s.scaled(1.0 / float(good))
    return Run(
        duration_s=took,
        chip_hours=run_arithmetic.chip_hours(duration_s=took, chips=deployment.chips),
        tokens=deployment.tokens,
        checkpoint_bytes=size_bytes,
        checkpoint_interval_s=interval_s,
        interruption_cost_usd=_interruptions(question, deployment, interval_s),
    )


def _interruptions(question: Question, deployment: TrainingDeployment, interval_s: float) -> Range | None:
    """What Spot interruptions cost; None unless Spot is bought and the Spot Advisor printed the size's rate.

    Each instance is taken back at the middle of the monthly band printed for the regions asked for.
    """
    hourly = deployment.usd_per_hour
    if deployment.quote is None or deployment.quote.term != "spot" or hourly is None:
        return None
    bands = [
        one for one in question.catalog.spot_history(deployment.instance.name) if one.region in question.policy.regions
    ]
    if not bands:
        return None
    monthly = sum(one.interruption_low_fraction + one.interruption_high_fraction for one in bands) / len(bands) / 2.0
    count = monthly * deployment.duration_s.mid / SECONDS_PER_MONTH * deployment.instances
    return run_arithmetic.interruption_cost_usd(
        interruptions=count, interval_s=interval_s, restart_s=run_arithmetic.restart_s(), usd_per_hour=hourly
    )
