"""GPU or Neuron by price: what the best option of each side costs for what was asked, and whether one is cheaper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chipwise.decide.bars import COST_GOALS
from chipwise.decide.rank import beats
from chipwise.units import show_usd

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from chipwise.decide.deployment import Deployment
    from chipwise.decide.question import Question
    from chipwise.units import Range

VENDOR = {"gpu": "nvidia", "neuron": "neuron"}
"""How a verdict names the kinds of sizes that it is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The best option of one side and what it costs for what was asked."""

    best: Deployment
    cost_usd: Range

    def words(self) -> str:
        """Size and cost with its range."""
        low, mid, high = (show_usd(amount) for amount in (self.cost_usd.low, self.cost_usd.mid, self.cost_usd.high))
        return f"{self.best.instances} x {self.best.instance.name} at {mid} ({low} to {high})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Posture:
    """Both sides where both have a priced option; `unit` is what the costs are for."""

    cheaper: Side
    dearer: Side
    unit: str

    @property
    def points_to(self) -> str:
        """The vendor that price speaks for: the cheaper where all of the dearer's range lies beyond its middle."""
        decided = beats(self.cheaper.cost_usd, self.dearer.cost_usd)
        return VENDOR[self.cheaper.best.instance.kind] if decided else "either"

    def signal(self) -> dict[str, Any]:
        """The signal, with both figures."""
        beyond = "reaches the cheaper's middle" if self.points_to == "either" else "lies beyond the cheaper's middle"
        figures = f"{self.cheaper.words()} against {self.dearer.words()} {self.unit}"
        quotes = [one.best.quote.why for one in (self.cheaper, self.dearer) if one.best.quote]
        return {
            "signal": "price here",
            "points_to": self.points_to,
            "why": f"{figures}: the dearer {beyond}",
            "source": "; ".join(dict.fromkeys(quotes)),
        }


def posture_of(options: Sequence[Deployment], question: Question) -> Posture | None:
    """The best option of each side by price; None where one side has no option, or its best no price.

    Args:
        options: the answer, best first, so that the first of each side is its best.
        question: what was asked: a load by the hour, tokens or units without one, a run.
    """
    sides: dict[str, Side] = {}
    for one in options:
        cost = one.cost(question)
        if one.instance.kind in VENDOR and cost is not None:
            sides.setdefault(one.instance.kind, Side(best=one, cost_usd=cost))
    if len(sides) < len(VENDOR):
        return None
    cheaper, dearer = sorted(sides.values(), key=lambda side: side.cost_usd.mid)
    return Posture(cheaper=cheaper, dearer=dearer, unit=cheaper.best.cost_unit(question))


def verdict_of(kinds: AbstractSet[str], posture: Posture | None, question: Question) -> str:
    """The only side that is feasible; of two the cheaper where cost orders and price decides; else either."""
    if not set(VENDOR) <= kinds:
        return "neuron" if "neuron" in kinds else "nvidia"
    if posture is None or question.order_by not in COST_GOALS:
        return "either"
    return posture.points_to
