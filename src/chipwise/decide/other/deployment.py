"""One feasible deployment of one size: copies on its devices, how many instances, what they do and cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.cost import sold_instances
from chipwise.decide.advice import Parallelism
from chipwise.precision import precision_rank
from chipwise.units import Range, finite

if TYPE_CHECKING:
    from chipwise.catalog import Instance
    from chipwise.cost import Quote
    from chipwise.decide.other.served import Served
    from chipwise.decide.other.stands import Stand
    from chipwise.decide.question import Question

SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherDeployment:
    """`base_instances` carry the load; `instances` are rented with the headroom for failures."""

    instance: Instance
    served: Served
    """By the instances that carry the load."""
    base_instances: int
    ha_factor: float
    quote: Quote | None

    @property
    def stand(self) -> Stand:
        """What a copy stands on."""
        return self.served.stand

    @property
    def instances(self) -> int:
        """Instances rented: whole UltraServers where the size is sold so."""
        return sold_instances(self.used_instances, self.quote)

    @property
    def used_instances(self) -> int:
        """Those that carry the load, and the headroom for failures."""
        return math.ceil(self.base_instances * self.ha_factor)

    @property
    def replicas(self) -> int:
        """Copies of the model: one a device."""
        return self.used_instances * self.stand.devices

    @property
    def chips(self) -> int:
        """Chips rented; a CPU size counts as one."""
        return self.instances * (self.instance.chips or 1)

    @property
    def profile(self) -> None:
        """Whole chips."""
        return

    @property
    def precision(self) -> str:
        """Format of the weights."""
        return self.stand.option.format

    @property
    def parallelism(self) -> Parallelism:
        """Copies are never split."""
        return Parallelism(tp=1, pp=1, ep=1, dp=1, cp=1)

    @property
    def usd_per_hour(self) -> Range | None:
        """Of all instances; None without a price."""
        return None if self.quote is None else self.quote.usd_per_hour.scaled(self.instances)

    def usd_per_unit(self, units_per_s: Range) -> Range | None:
        """USD for one unit at a rate of the instances that carry the load; None without a price."""
        hourly = self.usd_per_hour
        if hourly is None or units_per_s.low <= 0:
            return None
        return Range(
            low=hourly.low / SECONDS_PER_HOUR / units_per_s.high,
            mid=hourly.mid / SECONDS_PER_HOUR / units_per_s.mid,
            high=hourly.high / SECONDS_PER_HOUR / units_per_s.low,
        )

    def metric(self, question: Question) -> Range:
        """What the ordering goal sees, oriented so that lower is better."""
        unknown = Range.around(float("inf"), factor=1.0)
        if question.order_by == "latency":
            return self.served.isolated_s
        if question.order_by == "quality":
            return Range.around(1.0 / precision_rank(self.precision), factor=1.0)
        if question.order_by == "concurrency":
            return self.served.capacity_units_per_s.inverse()
        return self.cost(question) or unknown

    def cost(self, question: Question) -> Range | None:
        """By the hour under a load; by a unit where as many as can be are wanted."""
        if question.other.arrival.kind == "offline":
            return self.usd_per_unit(self.served.capacity_units_per_s)
        return self.usd_per_hour

    def cost_unit(self, question: Question) -> str:
        """See `cost`."""
        return f"for a {self.served.passes.unit}" if question.other.arrival.kind == "offline" else "an hour"

    def metric_unit(self, question: Question) -> str:
        """The unit of `metric`: money by the hour, unless all that can be had is asked for."""
        unit = question.other.item.unit
        cost = f"USD per {unit}" if question.other.arrival.kind == "offline" else "USD/h"
        return {"latency": "s", "quality": "1/bits", "concurrency": f"s per {unit}"}.get(question.order_by, cost)

    def bar_usd(self) -> float | None:
        """A budget of serving is by the hour."""
        return None if self.usd_per_hour is None else self.usd_per_hour.mid

    def latency_p99_s(self) -> tuple[float | None, float | None]:
        """P99 of the answer, which comes whole: its first token is its last."""
        return finite(self.served.outcome.latency_p99_s), None
