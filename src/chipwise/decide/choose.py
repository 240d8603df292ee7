"""From evaluated layouts to one deployment per size: the smallest that meets every bar, then the best by the goal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chipwise.cost import Quote, usd_per_million_tokens
from chipwise.decide.rank import Standing, ranked
from chipwise.perf.ranges import range_of
from chipwise.precision import precision_rank
from chipwise.units import Range

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from chipwise.catalog import Instance
    from chipwise.decide.candidates import Layout
    from chipwise.decide.evaluate import Evaluated
    from chipwise.decide.question import Question
    from chipwise.perf.ranges import Evidence, Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One feasible deployment of one size: a layout, how many units of it, what it is predicted to do and cost."""

    instance: Instance
    layout: Layout
    evaluated: Evaluated
    row: int
    column: int
    ha_factor: float
    quote: Quote | None

    @property
    def base_units(self) -> int:
        """Units of purchase that carry the load, without headroom for failures."""
        return int(self.evaluated.units[self.column])

    @property
    def units(self) -> int:
        """Units of purchase rented: the base times the availability factor, rounded up."""
        return math.ceil(self.base_units * self.ha_factor)

    @property
    def evidence(self) -> Evidence:
        """How well predictions for it are backed."""
        return self.layout.seat.evidence

    @property
    def instances(self) -> int:
        """Instances rented."""
        return self.units * self.evaluated.packings[self.row].instances_per_unit

    @property
    def replicas(self) -> int:
        """Independent copies of the model."""
        return self.units * self.evaluated.packings[self.row].replicas_per_unit

    @property
    def chips(self) -> int:
        """Chips rented."""
        return self.instances * (self.instance.chips or 1)

    @property
    def precision(self) -> str:
        """Format of the weights."""
        return self.evaluated.option.format

    @property
    def usd_per_hour(self) -> Range | None:
        """Of all instances; None without a price."""
        return None if self.quote is None else self.quote.usd_per_hour.scaled(self.instances)

    def value(self, name: str) -> float:
        """One predicted quantity at this number of units."""
        array = np.broadcast_to(getattr(self.evaluated.prediction, name), self.evaluated.miss.shape)
        return float(array[self.row, self.column])


def smallest_units(evaluated: Evaluated) -> list[int | None]:
    """Per layout the first column in which every bar holds; None where none does."""
    meets = evaluated.miss <= 1.0
    first = np.argmax(meets, axis=1)
    return [int(column) if meets[row, column] else None for row, column in enumerate(first)]


def ranged(deployment: Deployment, name: str, metric: Metric, kind: str) -> Range:
    """A predicted quantity with the range that its evidence gives under that kind of load."""
    return range_of(deployment.value(name), evidence=deployment.evidence, metric=metric, load=kind)


def standing_of(deployment: Deployment, question: Question) -> Standing:
    """What the ordering goal sees of a deployment; every metric is oriented so that lower is better."""
    return Standing(
        name=deployment.instance.name,
        metric=_metric(deployment, question.order_by, question),
        usd_per_hour=deployment.usd_per_hour,
        price_kind=deployment.quote.kind if deployment.quote else None,
        chips=deployment.chips,
    )


def _metric(deployment: Deployment, goal: str, question: Question) -> Range:
    """Latency is that of one request alone: the load is in the bars, and more replicas than they need are no merit."""
    kind = question.demand.kind
    if goal == "latency":
        alone = deployment.value("isolated_ttft_s"), deployment.value("isolated_tpot_s")
        e2e_s = alone[0] + alone[1] * (question.demand.osl_tokens - 1.0)
        return range_of(e2e_s, evidence=deployment.evidence, metric="tpot", load="single")
    if goal == "quality":
        return Range.around(1.0 / precision_rank(deployment.precision), factor=1.0)
    if goal == "concurrency":
        return ranged(deployment, "saturation_rate_per_s", "throughput", kind).inverse()
    cost = deployment.usd_per_hour or Range.around(float("inf"), factor=1.0)
    if kind == "offline" and question.demand.throughput_tokens_per_s is None:
        tokens = ranged(deployment, "output_tokens_per_s", "throughput", kind)
        return usd_per_million_tokens(cost, tokens) or cost
    return cost


def best_of(deployments: Sequence[Deployment], question: Question) -> Deployment:
    """The first of the best tie group."""
    return ranked(deployments, lambda one: standing_of(one, question))[0][0]


def feasible(evaluated: Evaluated, quotes: dict[str, Quote | None], ha_factor: float) -> Iterator[Deployment]:
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
        for instance in layout.seat.platform.members:
            if instance.name in quotes:
                yield Deployment(
                    instance=instance,
                    layout=layout,
                    evaluated=evaluated,
                    row=row,
                    column=column,
                    ha_factor=ha_factor,
                    quote=quotes[instance.name],
                )
