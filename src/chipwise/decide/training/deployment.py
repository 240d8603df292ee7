"""One feasible run on one size: how it is laid, how long it takes, what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.cost import sold_instances
from chipwise.decide.advice import Discouraged, Parallelism, Run
from chipwise.memory.training_activations import held_format
from chipwise.perf import training_run as run_arithmetic
from chipwise.units import Range

if TYPE_CHECKING:
    from chipwise.catalog import Instance
    from chipwise.cost import Quote
    from chipwise.decide.question import Question
    from chipwise.decide.training.runs import Course
    from chipwise.decide.training.trials import Trial
    from chipwise.decide.training.ways import Way

SECONDS_PER_HOUR = 3600.0


def hourly_usd(instances: int, quote: Quote | None) -> Range | None:
    """USD an hour of all instances; None without a price."""
    return None if quote is None else quote.usd_per_hour.scaled(instances)


def run_usd(duration_s: Range, hourly: Range | None) -> Range | None:
    """Duration times price, bound by bound; None without a price.

    >>> run_usd(Range(low=3600.0, mid=7200.0, high=10800.0), Range(low=1.0, mid=2.0, high=3.0))
    Range(low=1.0, mid=4.0, high=9.0)
    """
    if hourly is None:
        return None
    hours = duration_s.scaled(1.0 / SECONDS_PER_HOUR)
    return Range(low=hours.low * hourly.low, mid=hours.mid * hourly.mid, high=hours.high * hourly.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingDeployment:
    """A way of a trial on one of its platform's sizes.

    `fewest` is the smallest fleet of the size that holds the run, `efficiency_fraction` what is left of its
    efficiency. `behind` stands where it is discouraged and others are not.
    """

    instance: Instance
    trial: Trial
    row: int
    way: Way
    """How the run is laid."""
    tokens: float
    notes: tuple[str, ...]
    quote: Quote | None
    course: Course
    usd_per_run: Range | None
    """Duration times price; None without a price."""
    discouraged_by: tuple[Discouraged, ...] = ()
    fewest: int = 1
    efficiency_fraction: float = 1.0
    behind: bool = False

    @property
    def instances(self) -> int:
        """Instances rented: whole UltraServers where the size is sold so."""
        return sold_instances(self.way.nodes, self.quote)

    @property
    def chips(self) -> int:
        """Chips rented."""
        return self.instances * (self.instance.chips or 1)

    @property
    def profile(self) -> None:
        """Whole chips."""
        return

    @property
    def precision(self) -> str:
        """What weights are held in: the 4-bit base of QLoRA, else what they are multiplied in."""
        return held_format(self.trial.job)

    @property
    def parallelism(self) -> Parallelism:
        """The split of the run; `dp` counts copies whose gradients are averaged."""
        way = self.way
        return Parallelism(tp=way.tp, pp=way.pp, ep=way.ep, dp=way.dp, cp=way.cp)

    @property
    def usd_per_hour(self) -> Range | None:
        """Of all instances; None without a price."""
        return hourly_usd(self.instances, self.quote)

    def value(self, name: str) -> float:
        """One predicted quantity."""
        return self.trial.value(self.row, name)

    @property
    def spread_factor(self) -> float:
        """What a time is multiplied and divided by for its range."""
        return self.trial.spread_factor(self.row)

    @property
    def duration_s(self) -> Range:
        """The whole run, its start, checkpoints and failures counted."""
        return self.course.duration_s

    def metric(self, question: Question) -> Range:
        """Duration for time-to-train; USD of the run for training-cost (infinite without a price, or behind)."""
        if self.behind:
            return Range.around(float("inf"), factor=1.0)
        if question.order_by == "time-to-train":
            return self.duration_s
        return self.usd_per_run or Range.around(float("inf"), factor=1.0)

    def cost(self, question: Question) -> Range | None:
        """Of the run, whatever was asked."""
        del question
        return self.usd_per_run

    def cost_unit(self, question: Question) -> str:
        """See `cost`."""
        del question
        return "for the run"

    def metric_unit(self, question: Question) -> str:
        """The unit of `metric`."""
        return "s" if question.order_by == "time-to-train" else "USD"

    def bar_usd(self) -> float | None:
        """A budget of training is that of the run."""
        whole = self.usd_per_run
        return None if whole is None else whole.mid

    def latency_p99_s(self) -> tuple[float | None, float | None]:
        """A run serves nobody."""
        return None, None


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
