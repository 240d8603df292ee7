"""A run as a whole: how long with its start and its failures, what a checkpoint weighs, what interruptions cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from chipwise.decide.effects import storage
from chipwise.perf import training_run as run_arithmetic
from chipwise.units import Range

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from chipwise.catalog import Instance
    from chipwise.cost import Quote
    from chipwise.decide.question import Question
    from chipwise.decide.training.trials import Trial
    from chipwise.decide.training.ways import Way

    Floats = NDArray[np.float64]

SECONDS_PER_MONTH = 30 * 86400.0
BYTES_PER_STATE = 12.0
Figure = TypeVar("Figure", float, "Floats")


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


def duration_s(*, work_s: Figure, goodput_fraction: Figure, start_s: float, finish_s: Figure) -> Figure:
    """Seconds from the first to the last that is paid: `start + work / goodput + finish`.

    >>> duration_s(work_s=900.0, goodput_fraction=0.9, start_s=500.0, finish_s=100.0)
    1600.0
    """
    return start_s + finish_s + work_s / goodput_fraction


def time_between_stops_s(*, mtbf_s: Figure, interruptions_per_s: Figure) -> Figure:
    """Mean seconds between stops of either cause, failures or Spot: `1 / (1 / MTBF + rate)`.

    >>> time_between_stops_s(mtbf_s=1000.0, interruptions_per_s=0.001)
    500.0
    """
    return 1.0 / (1.0 / mtbf_s + interruptions_per_s)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seat:
    """A row of a trial on one of its platform's sizes, at its price."""

    trial: Trial
    row: int
    way: Way
    instance: Instance
    quote: Quote | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Courses:
    """The courses of many seats: arrays, a seat an element."""

    work_s: Floats
    start_s: float
    finish_s: Floats
    goodput_fraction: Floats
    checkpoint_bytes: Floats
    checkpoint_interval_s: Floats
    low_s: Floats
    mid_s: Floats
    high_s: Floats
    monthly: tuple[Range | None, ...]
    """Share of a seat's instances that Spot takes back."""
    nodes: Floats

    def at(self, place: int) -> Course:
        """One of them."""
        took = Range(low=float(self.low_s[place]), mid=float(self.mid_s[place]), high=float(self.high_s[place]))
        monthly, nodes = self.monthly[place], float(self.nodes[place])
        return Course(
            work_s=float(self.work_s[place]),
            start_s=self.start_s,
            finish_s=float(self.finish_s[place]),
            goodput_fraction=float(self.goodput_fraction[place]),
            checkpoint_bytes=float(self.checkpoint_bytes[place]),
            checkpoint_interval_s=float(self.checkpoint_interval_s[place]),
            duration_s=took,
            interruptions=None if monthly is None else monthly.scaled(nodes * took.mid / SECONDS_PER_MONTH),
        )


def courses_of(question: Question, seats: Sequence[Seat]) -> Courses:
    """The courses of seats of one scheme.

    A start takes what the table of failures gives a restart: nothing that was read times boot, loading or the first
    compilation apart. Checkpoints are written beside the training, at the interval that loses least and no sooner than
    the one before is written; a run that ends earlier writes none. What is left at the end is written in full.
    """
    nodes, chips = _column(one.way.nodes for one in seats), _column(one.instance.chips or 1 for one in seats)
    saved = _saves(question, seats, nodes=nodes, chips=nodes * chips)
    monthly = tuple(spot_interruptions(question, one.instance, one.quote) for one in seats)
    per_s = _column(0.0 if one is None else one.mid for one in monthly) * nodes / SECONDS_PER_MONTH
    mtbf_s: Any = run_arithmetic.mean_time_between_failures_s(nodes * chips)
    stops_s: Floats = time_between_stops_s(mtbf_s=mtbf_s, interruptions_per_s=per_s)
    work_s = question.training.tokens / _predicted(seats, "tokens_per_s")
    best_s = run_arithmetic.checkpoint_interval_s(write_s=saved.stall_s, mtbf_s=stops_s)
    interval_s = np.minimum(np.maximum(best_s, saved.write_s), work_s)
    between, restart_s = interval_s < work_s, run_arithmetic.restart_s()
    good: Any = run_arithmetic.goodput_fraction(
        write_s=np.where(between, saved.stall_s, 0.0),
        interval_s=interval_s,
        mtbf_s=stops_s,
        restart_s=restart_s,
        lag_s=np.where(between, saved.write_s, 0.0),
    )
    spread = _column(one.trial.spread_factors[one.row] for one in seats)
    shortest = np.maximum(1.0 / spread, np.minimum(_predicted(seats, "peak_fraction"), 1.0))
    low_s, mid_s, high_s = (
        duration_s(work_s=work_s * factor, goodput_fraction=good, start_s=restart_s, finish_s=saved.finish_s)
        for factor in (shortest, 1.0, spread)
    )
    return Courses(
        work_s=work_s,
        start_s=restart_s,
        finish_s=saved.finish_s,
        goodput_fraction=good,
        checkpoint_bytes=saved.size_bytes,
        checkpoint_interval_s=interval_s,
        low_s=low_s,
        mid_s=mid_s,
        high_s=high_s,
        monthly=monthly,
        nodes=nodes,
    )


def _column(values: Iterable[float]) -> Floats:
    return np.array(list(values), dtype=float)


def _predicted(seats: Sequence[Seat], name: str) -> Floats:
    """One predicted quantity of every seat."""
    trials = {id(one.trial): one.trial for one in seats}
    columns = {key: one.column(name).tolist() for key, one in trials.items()}
    return _column(columns[id(one.trial)][one.row] for one in seats)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Saves:
    """A checkpoint's bytes, seconds to write it, seconds that training stands for it; seconds of the final write."""

    size_bytes: Floats
    write_s: Floats
    stall_s: Floats
    finish_s: Floats


def _saves(question: Question, seats: Sequence[Seat], *, nodes: Floats, chips: Floats) -> Saves:
    job, params = seats[0].trial.job, float(question.model.params_total)
    adapters = _column(_adapter_params(one) for one in seats) if job.adapts else np.zeros(len(seats))
    weighed: tuple[Any, ...] = (run_arithmetic.checkpoint_bytes, run_arithmetic.final_bytes)
    size_bytes, left_bytes = (
        np.broadcast_to(weigh(params=params, adapter_params=adapters, job=job), nodes.shape) for weigh in weighed
    )
    write_s = checkpoint_write_s(size_bytes=size_bytes, clients=nodes)
    host_bytes = nodes * _column(one.instance.ram_bytes or 0 for one in seats)
    stall_s: Any = run_arithmetic.stall_s(size_bytes=size_bytes, chips=chips, write_s=write_s, host_bytes=host_bytes)
    finish_s = checkpoint_write_s(size_bytes=left_bytes, clients=nodes)
    return Saves(size_bytes=size_bytes, write_s=write_s, stall_s=stall_s, finish_s=finish_s)


def _adapter_params(seat: Seat) -> float:
    held = seat.trial.memory_of(seat.row, "adapters_bytes")
    return held / seat.way.platform.chip.cores * seat.way.tp * seat.way.pp / BYTES_PER_STATE


def checkpoint_write_s(*, size_bytes: Figure, clients: Figure) -> Figure:
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
