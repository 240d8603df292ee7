"""What every feasible deployment offers to ranking, whatever it is deployed for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from chipwise.decide.rank import Standing, in_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chipwise.catalog import Instance
    from chipwise.cost import Quote
    from chipwise.decide.advice import Parallelism
    from chipwise.decide.question import Question
    from chipwise.units import Range


class Deployment(Protocol):
    """One feasible deployment of one size."""

    @property
    def instance(self) -> Instance:
        """The size."""

    @property
    def instances(self) -> int:
        """Instances rented."""

    @property
    def chips(self) -> int:
        """Chips rented."""

    @property
    def precision(self) -> str:
        """Format of the weights."""

    @property
    def parallelism(self) -> Parallelism:
        """The split of one replica, or of the run."""

    @property
    def profile(self) -> str | None:
        """The MIG profile whose slices its devices are; None on whole chips."""

    @property
    def quote(self) -> Quote | None:
        """The price of one instance; None where there is none."""

    @property
    def usd_per_hour(self) -> Range | None:
        """Of all instances; None without a price."""

    def metric(self, question: Question) -> Range:
        """What the ordering goal sees, oriented so that lower is better."""

    def cost(self, question: Question) -> Range | None:
        """What the asked work costs, in USD `cost_unit`; None without a price."""

    def cost_unit(self, question: Question) -> str:
        """What `cost` is for: an hour of the load, a million tokens, a unit, the run."""

    def metric_unit(self, question: Question) -> str:
        """The unit of `metric`."""

    def bar_usd(self) -> float | None:
        """What a budget is held against; None without a price."""

    def latency_p99_s(self) -> tuple[float | None, float | None]:
        """P99 TTFT and TPOT where it serves."""


def standing_of(deployment: Deployment, question: Question) -> Standing:
    """What ranking sees of a deployment."""
    return Standing(
        name=deployment.instance.name,
        metric=deployment.metric(question),
        usd=deployment.bar_usd(),
        price_kind=deployment.quote.kind if deployment.quote else None,
        chips=deployment.chips,
    )


def best_of(deployments: Sequence[Deployment], question: Question) -> Deployment:
    """The first in their order."""
    return next(in_order(deployments, lambda one: standing_of(one, question)))
