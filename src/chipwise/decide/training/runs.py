"""A run as a whole: how long with its start and its failures, what a checkpoint weighs, what interruptions cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chipwise.decide.advice import Run
from chipwise.decide.effects import storage
from chipwise.perf import training_run as run_arithmetic
from chipwise.units import Range

if TYPE_CHECKING:
    from chipwise.catalog import Instance
    from chipwise.cost import Quote
    from chipwise.decide.question import Question
    from chipwise.decide.training.deployment import TrainingDeployment
    from chipwise.decide.training.trials import Trial

SECONDS_PER_MONTH = 30 * 86400.0
BYTES_PER_STATE = 12.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How a run goes by the clock. `duration_s` is all that is paid for, and what every other figure follows from.

    `work_s` trains; `goodput_fraction` is its share of the time between the start and `finish_s`, which writes what is
    left. `interruptions` are Spot's, over the
    whole run (None: not Spot, or no rate is printed).
    """

    work_s: float
    start_s: float
    finish_s: float
    goodput_fraction: float
    checkpoint_bytes: float
    checkpoint_interval_s: float
    duration_s: Range
    interruptions: Range | None


def duration_s(*, work_s: Range, goodput_fraction: float, start_s: float, finish_s: float) -> Range:
    """Seconds from the first to the last that is paid: `start + work / goodput + finish`; only the work is uncertain.

    >>> work_s = Range(low=450.0, mid=900.0, high=1800.0)
    >>> duration_s(work_s=work_s, goodput_fraction=0.9, start_s=500.0, finish_s=100.0)
    Range(low=1100.0, mid=1600.0, high=2600.0)
    """
    work, rest = work_s.scaled(1.0 / goodput_fraction), start_s + finish_s
    return Range(low=rest + work.low, mid=rest + work.mid, high=rest + work.high)


def time_between_stops_s(*, mtbf_s: float, interruptions_per_s: float) -> float:
    """Mean seconds between stops of either cause, failures or Spot: `1 / (1 / MTBF + rate)`.

    >>> time_between_stops_s(mtbf_s=1000.0, interruptions_per_s=0.001)
    500.0
    """
    return 1.0 / (1.0 / mtbf_s + interruptions_per_s)


def course_of(question: Question, trial: Trial, row: int, instance: Instance, quote: Quote | None) -> Course:
    """The course of one row on one size.

    A start takes what the table of failures gives a restart: nothing that was read times boot, loading or the first
    compilation apart. Checkpoints are written beside the training, at the interval that loses least and no sooner than
    the one before is written; a run that ends earlier writes none. What is left at the end is written in full.
    """
    way = trial.ways[row]
    saved = _saves(question, trial, row, instance)
    monthly = spot_interruptions(question, instance, quote)
    per_s = 0.0 if monthly is None else monthly.mid * way.nodes / SECONDS_PER_MONTH
    mtbf_s = float(run_arithmetic.mean_time_between_failures_s(way.nodes * (instance.chips or 1)))
    stops_s = time_between_stops_s(mtbf_s=mtbf_s, interruptions_per_s=per_s)
    work_s = question.training.tokens / trial.value(row, "tokens_per_s")
    best_s = float(run_arithmetic.checkpoint_interval_s(write_s=saved.stall_s, mtbf_s=stops_s))
    interval_s, restart_s = min(max(best_s, saved.write_s), work_s), run_arithmetic.restart_s()
    between = interval_s < work_s
    good = float(
        run_arithmetic.goodput_fraction(
            write_s=saved.stall_s if between else 0.0,
            interval_s=interval_s,
            mtbf_s=stops_s,
            restart_s=restart_s,
            lag_s=saved.write_s if between else 0.0,
        )
    )
    took = duration_s(
        work_s=trial.time_range(row, work_s),
        goodput_fraction=good,
        start_s=restart_s,
        finish_s=saved.finish_s,
    )
    return Course(
        work_s=work_s,
        start_s=restart_s,
        finish_s=saved.finish_s,
        goodput_fraction=good,
        checkpoint_bytes=saved.size_bytes,
        checkpoint_interval_s=interval_s,
        duration_s=took,
        interruptions=None if monthly is None else monthly.scaled(way.nodes * took.mid / SECONDS_PER_MONTH),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Saves:
    """A checkpoint's bytes, seconds to write it, seconds that training stands for it; seconds of the final write."""

    size_bytes: float
    write_s: float
    stall_s: float
    finish_s: float


def _saves(question: Question, trial: Trial, row: int, instance: Instance) -> Saves:
    job, way = trial.job, trial.ways[row]
    held = trial.memory_of(row, "adapters_bytes") if job.adapts else 0.0
    adapters = held / way.platform.chip.cores * way.tp * way.pp / BYTES_PER_STATE
    params = float(question.model.params_total)
    size_bytes = run_arithmetic.checkpoint_bytes(params=params, adapter_params=adapters, job=job)
    left_bytes = run_arithmetic.final_bytes(params=params, adapter_params=adapters, job=job)
    write_s = checkpoint_write_s(size_bytes=size_bytes, clients=way.nodes)
    stall_s = run_arithmetic.stall_s(
        size_bytes=size_bytes,
        chips=way.nodes * (instance.chips or 1),
        write_s=write_s,
        host_bytes=way.nodes * float(instance.ram_bytes or 0),
    )
    finish_s = checkpoint_write_s(size_bytes=left_bytes, clients=way.nodes)
    return Saves(size_bytes=size_bytes, write_s=write_s, stall_s=float(stall_s), finish_s=finish_s)


def checkpoint_write_s(*, size_bytes: float, clients: int) -> float:
    """Seconds to write a checkpoint from every instance at once at the rate measured of one file-system client."""
    return size_bytes / (storage()["checkpoint_write"] * clients)


def spot_interruptions(question: Question, instance: Instance, quote: Quote | None) -> Range | None:
    """Share of instances of the size that Spot takes back in a month; None where Spot is not bought or no rate known.

    The means of the bands that the Spot Advisor printed for the regions asked for, or of all regions where it
    printed none of these.
    """
    if quote is None or quote.term != "spot":
        return None
    printed = question.catalog.spot_history(instance.name)
    bands = [one for one in printed if one.region in question.policy.regions] or printed
    if not bands:
        return None
    low = float(np.mean([one.interruption_low_fraction for one in bands]))
    high = float(np.mean([one.interruption_high_fraction for one in bands]))
    return Range(low=low, mid=(low + high) / 2.0, high=high)


def run_of(deployment: TrainingDeployment) -> Run:
    """What is printed of a run."""
    course, sample = deployment.course, deployment.trial.sample
    return Run(
        duration_s=course.duration_s,
        chip_hours=run_arithmetic.chip_hours(duration_s=course.duration_s, chips=deployment.chips),
        tokens=deployment.tokens if sample is None else None,
        samples=None if sample is None else deployment.tokens,
        checkpoint_bytes=course.checkpoint_bytes,
        checkpoint_interval_s=course.checkpoint_interval_s,
        interruption_cost_usd=_interruptions(deployment),
    )


def _interruptions(deployment: TrainingDeployment) -> Range | None:
    """What Spot's interruptions are expected to cost, a part of the cost of the run: work lost and restarts, paid."""
    count, hourly = deployment.course.interruptions, deployment.usd_per_hour
    if count is None or hourly is None:
        return None
    each = run_arithmetic.interruption_cost_usd(
        interruptions=1.0,
        interval_s=deployment.course.checkpoint_interval_s,
        restart_s=run_arithmetic.restart_s(),
        usd_per_hour=hourly,
    )
    return Range(low=count.low * each.low, mid=count.mid * each.mid, high=count.high * each.high)
