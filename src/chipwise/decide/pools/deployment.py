"""Two pools in place of one deployment: which size, how many, split how, and what joins them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from chipwise.cost import sold_instances
from chipwise.decide.advice import Parallelism
from chipwise.units import Range, finite

if TYPE_CHECKING:
    from chipwise.catalog import Instance
    from chipwise.cost import Quote
    from chipwise.decide.question import Question
    from chipwise.decide.serving.deployment import ServingDeployment
    from chipwise.decide.serving.seats import Layout
    from chipwise.engines import Disaggregation
    from chipwise.perf.load import ServingInput, ServingPrediction
    from chipwise.perf.ranges import Evidence
    from chipwise.perf.spread import Spread

Role = Literal["prefill", "decode"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """One role's replicas. `needed` instances are rented for it alone; 0 where it lives in the other's."""

    role: Role
    instance: Instance
    layout: Layout
    replicas: int
    needed: int
    quote: Quote
    asked: ServingInput
    """The load as perf is asked about this pool."""

    @property
    def instances(self) -> int:
        """Instances rented: whole UltraServers where the size is sold so."""
        return sold_instances(self.needed, self.quote) if self.needed else 0

    @property
    def devices(self) -> int:
        """Devices that its replicas fill."""
        return self.replicas * self.layout.devices

    @property
    def chips_used(self) -> int:
        """Chips that its replicas fill."""
        return self.layout.seat.platform.chips_of(self.devices)

    @property
    def usd_per_hour(self) -> Range:
        """Of its own instances."""
        return self.quote.usd_per_hour.scaled(self.instances)

    @property
    def parallelism(self) -> Parallelism:
        """The split of one replica."""
        split = self.layout.split
        return Parallelism(tp=int(split.tp), pp=int(split.pp), ep=int(split.ep), dp=int(split.dp), cp=int(split.cp))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """Two pools as they are rented."""

    prefill: Pool
    decode: Pool

    @property
    def rented(self) -> tuple[Pool, ...]:
        """Pools with instances of their own: one where both roles share instances."""
        return tuple(pool for pool in (self.prefill, self.decode) if pool.instances)

    @property
    def usd_per_hour(self) -> Range:
        """Of both."""
        return Range(
            low=sum(pool.usd_per_hour.low for pool in self.rented),
            mid=sum(pool.usd_per_hour.mid for pool in self.rented),
            high=sum(pool.usd_per_hour.high for pool in self.rented),
        )

    @property
    def words(self) -> str:
        """Both in a few words."""
        return "; ".join(
            f"{pool.role} {pool.replicas} of tp{pool.parallelism.tp} on "
            f"{f'{pool.instances} x' if pool.instances else 'the same'} {pool.instance.name}"
            for pool in (self.prefill, self.decode)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """What a prompt's cache weighs in all, how long it takes to the decode pool, and over what."""

    bytes_per_request: float
    seconds: float
    over: str
    use_fraction: float
    """Share of the time in which the busier side's wires carry caches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledDeployment:
    """Two pools that answer the load of `together` within the same bars for less.

    The option keeps the size of `together`: one of the pools, or both, stand on it.
    """

    together: ServingDeployment
    both: Pools
    crossing: Crossing
    ability: Disaggregation
    prediction: ServingPrediction
    ttft: Spread
    tpot: Spread
    rate_per_s: float

    @property
    def prefill(self) -> Pool:
        """Where prompts go."""
        return self.both.prefill

    @property
    def decode(self) -> Pool:
        """Where answers come from."""
        return self.both.decode

    @property
    def pools(self) -> tuple[Pool, Pool]:
        """Prefill, then decode."""
        return self.prefill, self.decode

    @property
    def rented(self) -> tuple[Pool, ...]:
        """Pools with instances of their own: one where both roles share instances."""
        return self.both.rented

    @property
    def instance(self) -> Instance:
        """The size of the option."""
        return self.together.instance

    @property
    def instances(self) -> int:
        """Instances of the option's own size; the other pool's may be of another."""
        return sum(pool.instances for pool in self.rented if pool.instance.name == self.instance.name)

    @property
    def chips(self) -> int:
        """Chips rented in both pools."""
        return sum(pool.instances * (pool.instance.chips or 1) for pool in self.rented)

    @property
    def replicas(self) -> int:
        """Replicas of both pools."""
        return self.prefill.replicas + self.decode.replicas

    @property
    def words(self) -> str:
        """Both pools in a few words."""
        return self.both.words

    @property
    def precision(self) -> str:
        """Format of the weights, the same in both pools."""
        return self.together.precision

    @property
    def parallelism(self) -> Parallelism:
        """The split of a decode replica."""
        return self.decode.parallelism

    @property
    def profile(self) -> None:
        """Whole chips."""
        return

    @property
    def quote(self) -> Quote:
        """The price of one instance; of two sizes that of the less certain one."""
        quotes = [pool.quote for pool in self.rented]
        return next((one for one in quotes if one.kind == "assumed"), quotes[-1])

    @property
    def usd_per_hour(self) -> Range:
        """Of both pools."""
        return self.both.usd_per_hour

    @property
    def evidence(self) -> Evidence:
        """At best transferred: the fit holds no runs of two pools."""
        held = {pool.layout.seat.evidence for pool in self.pools}
        return "physics" if "physics" in held else "transferred"

    def metric(self, question: Question) -> Range:
        """What the ordering goal sees, oriented so that lower is better: two pools are chosen for their price."""
        return self.usd_per_hour if question.order_by == "cost" else self.together.metric(question)

    def metric_unit(self, question: Question) -> str:
        """The unit of `metric`."""
        return "USD/h" if question.order_by == "cost" else self.together.metric_unit(question)

    def cost(self, question: Question) -> Range:
        """By the hour: pools answer a load."""
        del question
        return self.usd_per_hour

    def cost_unit(self, question: Question) -> str:
        """See `cost`."""
        del question
        return "an hour"

    def bar_usd(self) -> float:
        """A budget of serving is by the hour."""
        return self.usd_per_hour.mid

    def latency_p99_s(self) -> tuple[float | None, float | None]:
        """P99 TTFT and TPOT under the load."""
        return finite(self.ttft.p99), finite(self.tpot.p99)
