"""One feasible way for all tenants to live on one size: how many instances, what it costs, how its tenants fare."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.cost import sold_instances
from chipwise.decide.advice import Parallelism
from chipwise.perf.ranges import range_of
from chipwise.precision import precision_rank
from chipwise.units import Range

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chipwise.catalog import Instance
    from chipwise.cost import Quote
    from chipwise.decide.question import Question
    from chipwise.decide.sharing.arrange import Arrangement
    from chipwise.decide.sharing.needs import Need


@dataclass(frozen=True, slots=True, kw_only=True)
class Lone:
    """The cheapest size for one tenant by itself."""

    instance: str
    instances: int
    usd: float
    """By the hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDeployment:
    """An arrangement on one size of its platform."""

    question: Question
    instance: Instance
    arrangement: Arrangement
    ha_factor: float
    quote: Quote | None
    alone: tuple[Lone | None, ...] = ()
    """By tenant, what it would be rented as by itself."""

    @property
    def used_instances(self) -> int:
        """Those that carry the load, and the headroom for failures."""
        return math.ceil(self.arrangement.instances * self.ha_factor)

    @property
    def instances(self) -> int:
        """Instances rented: whole UltraServers where the size is sold so."""
        return sold_instances(self.used_instances, self.quote)

    @property
    def chips(self) -> int:
        """Chips rented."""
        return self.instances * (self.instance.chips or 1)

    @property
    def chips_used(self) -> int:
        """Chips that some tenant stands on, without the headroom."""
        cores = self.lead.layout.seat.platform.chip.cores
        return -(-self.arrangement.devices // cores)

    @property
    def needs(self) -> tuple[Need, ...]:
        """One of every tenant, in their order."""
        return tuple(self.arrangement.needs())

    @property
    def lead(self) -> Need:
        """The tenant that is nearest to its bars."""
        return max(self.needs, key=lambda need: float(need.evaluated.miss[need.row, need.column]))

    @property
    def precision(self) -> str:
        """Format of the narrowest weights among the tenants."""
        return min((need.evaluated.option.format for need in self.needs), key=precision_rank)

    @property
    def parallelism(self) -> Parallelism:
        """The split of the tenant that takes most devices a replica."""
        split = max(self.needs, key=lambda need: need.place.devices).layout.split
        return Parallelism(tp=int(split.tp), pp=int(split.pp), ep=int(split.ep), dp=int(split.dp), cp=int(split.cp))

    @property
    def profile(self) -> str | None:
        """The largest MIG profile that a tenant lives on."""
        cuts = [need.place.platform.profile for need in self.needs if need.place.platform.profile]
        return max(cuts, key=lambda cut: cut.memory_fraction).name if cuts else None

    @property
    def usd_per_hour(self) -> Range | None:
        """Of all instances; None without a price."""
        return None if self.quote is None else self.quote.usd_per_hour.scaled(self.instances)

    def metric(self, question: Question) -> Range:
        """What the ordering goal sees, oriented so that lower is better: of the tenant that fares worst."""
        if question.order_by == "latency":
            return max(self._alone_s(), key=lambda one: one.mid)
        if question.order_by == "quality":
            return Range.around(1.0 / precision_rank(self.precision), factor=1.0)
        if question.order_by == "concurrency":
            return max(self._fullness(), key=lambda one: one.mid).scaled(self.instances)
        return self.usd_per_hour or Range.around(float("inf"), factor=1.0)

    def metric_unit(self, question: Question) -> str:
        """The unit of `metric`."""
        return {"latency": "s", "quality": "1/bits", "concurrency": "s per request"}.get(question.order_by, "USD/h")

    def _alone_s(self) -> Iterator[Range]:
        """One request alone, by tenant."""
        for need, tenant in zip(self.needs, self.question.tenants, strict=True):
            answer_s = need.value("isolated_tpot_s") * (tenant.serving.osl_tokens - 1.0)
            alone_s = need.value("isolated_ttft_s") + answer_s
            yield range_of(alone_s, evidence=need.layout.seat.evidence, metric="tpot", load="single")

    def _fullness(self) -> Iterator[Range]:
        """The load over the rate at which queues would grow without end, by tenant."""
        for need in self.needs:
            most, load = need.value("saturation_rate_per_s"), need.value("requests_per_s")
            rate = range_of(most, evidence=need.layout.seat.evidence, metric="throughput", load="any")
            yield rate.inverse(load)

    def cost(self, question: Question) -> Range | None:
        """By the hour: every tenant answers its users."""
        del question
        return self.usd_per_hour

    def cost_unit(self, question: Question) -> str:
        """See `cost`."""
        del question
        return "an hour"

    def bar_usd(self) -> float | None:
        """A budget of serving is by the hour."""
        return None if self.usd_per_hour is None else self.usd_per_hour.mid

    def latency_p99_s(self) -> tuple[float | None, float | None]:
        """P99 TTFT and TPOT of the tenant that waits longest for each."""
        found = [
            (
                float(need.evaluated.ttft_p99_s[need.row, need.column]),
                float(need.evaluated.tpot_p99_s[need.row, need.column]),
            )
            for need in self.needs
        ]
        return max(ttft for ttft, _ in found), max(tpot for _, tpot in found)
