"""From evaluated layouts to one deployment per size: the smallest that meets every bar, then the best by the goal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chipwise.cost import Quote, sold_instances, usd_per_million_tokens
from chipwise.decide.advice import Parallelism
from chipwise.decide.serving.evaluate import element
from chipwise.perf.ranges import range_of
from chipwise.precision import precision_rank, stored_format
from chipwise.units import Range, finite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chipwise.catalog import Instance
    from chipwise.decide.question import Question
    from chipwise.decide.serving.evaluate import Evaluated
    from chipwise.decide.serving.seats import Layout
    from chipwise.perf.ranges import Evidence, Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingDeployment:
    """One feasible deployment of one size: a layout, how many units of it, what it is predicted to do and cost."""

    instance: Instance
    layout: Layout
    evaluated: Evaluated
    row: int
    column: int
    ha_factor: float
    quote: Quote | None
    instances: int
    """Instances rented: whole UltraServers where the size is sold so."""
    usd_per_hour: Range | None
    """Of all instances; None without a price."""
    apart: str | None = None
    """What prefill and decode on two pools would cost instead; None where nobody looked."""

    @property
    def base_units(self) -> int:
        """Units of purchase that carry the load, without headroom for failures."""
        return int(self.evaluated.units[self.column])

    @property
    def units(self) -> int:
        """Units of purchase rented: the base times the availability factor, rounded up."""
        return _units(self.evaluated, self.column, self.ha_factor)

    @property
    def evidence(self) -> Evidence:
        """How well predictions for it are backed."""
        return self.layout.seat.evidence

    @property
    def replicas(self) -> int:
        """Independent copies of the model."""
        return self.units * self.evaluated.packings[self.row].replicas_per_unit

    @property
    def chips(self) -> int:
        """Chips rented."""
        return self.instances * (self.instance.chips or 1)

    @property
    def chips_used(self) -> int:
        """Chips that replicas stand on, some perhaps in part."""
        return self.layout.seat.platform.chips_of(self.replicas * self.layout.devices)

    @property
    def profile(self) -> str | None:
        """The MIG profile whose slices the devices are."""
        cut = self.layout.seat.platform.profile
        return None if cut is None else cut.name

    @property
    def share(self) -> float:
        """Of the devices rented, those that replicas stand on."""
        return self.replicas * self.layout.devices / (self.instances * self.layout.seat.platform.devices)

    @property
    def part(self) -> tuple[float, float]:
        """GPUs' worth of memory and of compute that its devices are."""
        devices, platform = self.replicas * self.layout.devices, self.layout.seat.platform
        return devices * platform.bandwidth_fraction, devices * platform.fraction

    @property
    def precision(self) -> str:
        """Format of the weights."""
        return self.evaluated.option.format

    def value(self, name: str) -> float:
        """One predicted quantity at this number of units."""
        return element(getattr(self.evaluated.prediction, name), self.row, self.column)

    @property
    def parallelism(self) -> Parallelism:
        """The split of one replica."""
        split = self.layout.split
        return Parallelism(tp=int(split.tp), pp=int(split.pp), ep=int(split.ep), dp=int(split.dp), cp=int(split.cp))

    def metric(self, question: Question) -> Range:
        """What the ordering goal sees, oriented so that lower is better."""
        return _metric(self, question.order_by, question)

    def cost(self, question: Question) -> Range | None:
        """By the hour under a load; by a million output tokens where as many as can be are wanted."""
        hourly = self.usd_per_hour
        if hourly is None or not _unbounded(question):
            return hourly
        return usd_per_million_tokens(hourly, ranged(self, "output_tokens_per_s", "throughput", question.serving.kind))

    def cost_unit(self, question: Question) -> str:
        """See `cost`."""
        return "a million output tokens" if _unbounded(question) else "an hour"

    def metric_unit(self, question: Question) -> str:
        """The unit of `metric`: money by the hour, unless all that can be had is asked for."""
        cost = "USD per million output tokens" if _unbounded(question) else "USD/h"
        return {"latency": "s", "quality": "1/bits", "concurrency": "s per request"}.get(question.order_by, cost)

    def bar_usd(self) -> float | None:
        """A budget of serving is by the hour."""
        hourly = self.usd_per_hour
        return None if hourly is None else hourly.mid

    def latency_p99_s(self) -> tuple[float | None, float | None]:
        """P99 TTFT and TPOT under the load."""
        ttft, tpot = self.evaluated.ttft_p99_s, self.evaluated.tpot_p99_s
        return finite(ttft[self.row, self.column]), finite(tpot[self.row, self.column])


def _units(evaluated: Evaluated, column: int, ha_factor: float) -> int:
    return math.ceil(int(evaluated.units[column]) * ha_factor)


def smallest_units(evaluated: Evaluated) -> list[int | None]:
    """Per layout the first column in which every bar holds; None where none does."""
    meets = evaluated.miss <= 1.0
    first = np.argmax(meets, axis=1)
    return [int(column) if meets[row, column] else None for row, column in enumerate(first)]


def ranged(deployment: ServingDeployment, name: str, metric: Metric, kind: str) -> Range:
    """A predicted quantity with the range that its evidence gives under that kind of load."""
    return range_of(deployment.value(name), evidence=deployment.evidence, metric=metric, load=kind)


def _metric(deployment: ServingDeployment, goal: str, question: Question) -> Range:
    """The goal as a quantity of which less is better.

    Latency is that of one request alone: the load is in the bars, and more replicas than they need are no merit.
    Concurrency is what one instance carries, so a larger fleet is no merit either.
    """
    kind = question.serving.kind
    if goal == "latency":
        alone = deployment.value("isolated_ttft_s"), deployment.value("isolated_tpot_s")
        e2e_s = alone[0] + alone[1] * (question.serving.osl_tokens - 1.0)
        return range_of(e2e_s, evidence=deployment.evidence, metric="tpot", load="single")
    if goal == "quality":
        return Range.around(1.0 / _bits_kept(deployment.precision, question), factor=1.0)
    if goal == "concurrency":
        carried = ranged(deployment, "saturation_rate_per_s", "throughput", kind)
        return carried.scaled(1.0 / deployment.instances).inverse()
    return deployment.cost(question) or Range.around(float("inf"), factor=1.0)


def _unbounded(question: Question) -> bool:
    return question.serving.kind == "offline" and question.serving.throughput_tokens_per_s is None


def _bits_kept(precision: str, question: Question) -> int:
    """Bits of a format; those of 16 where it is the checkpoint's own, which loses nothing."""
    lossless = precision == stored_format(question.model).name
    return max(precision_rank(precision), precision_rank("bf16")) if lossless else precision_rank(precision)


def feasible(evaluated: Evaluated, quotes: dict[str, Quote | None], ha_factor: float) -> Iterator[ServingDeployment]:
    """Every size of every layout that meets the bars, at its smallest number of units.

    Args:
        evaluated: one precision's layouts.
        quotes: sizes that may be bought, with their price; sizes not in it are passed over.
        ha_factor: what the load's own units are multiplied by.
    """
    for row, column in enumerate(smallest_units(evaluated)):
        if column is None:
            continue
        layout = evaluated.layouts[row]
        needed = _units(evaluated, column, ha_factor) * evaluated.packings[row].instances_per_unit
        for instance in layout.seat.platform.members:
            if instance.name in quotes:
                quote = quotes[instance.name]
                instances = sold_instances(needed, quote)
                yield ServingDeployment(
                    instance=instance,
                    layout=layout,
                    evaluated=evaluated,
                    row=row,
                    column=column,
                    ha_factor=ha_factor,
                    quote=quote,
                    instances=instances,
                    usd_per_hour=None if quote is None else quote.usd_per_hour.scaled(instances),
                )
