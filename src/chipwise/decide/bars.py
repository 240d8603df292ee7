"""Bars on money: what is over the budget, and what cannot be ranked by a cost that nobody knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipwise.decide.advice import NotJudged, Rejected
from chipwise.units import show_usd

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from chipwise.decide.deployment import Deployment
    from chipwise.decide.question import Question

COST_GOALS = frozenset({"cost", "training-cost"})


def over_budget(deployments: Mapping[str, Sequence[Deployment]], question: Question) -> dict[str, Rejected]:
    """Sizes whose cheapest deployment costs more than the budget."""
    found: dict[str, Rejected] = {}
    budget = question.budget_usd
    if budget is None:
        return found
    for name, ones in deployments.items():
        rates = [(usd, place) for place, one in enumerate(ones) if (usd := one.bar_usd()) is not None]
        least_usd, place = min(rates, default=(0.0, 0))
        if least_usd > budget:
            found[name] = Rejected(
                instance=name,
                rule="budget",
                reason=f"{show_usd(least_usd)} at the least (budget {show_usd(budget)})",
                shortfall={"value": least_usd - budget, "unit": "usd"},
                nearest=_cheapest(ones[place]),
                change="a larger budget, fewer users or looser bars",
                source="price list",
            )
    return found


def _cheapest(one: Deployment) -> dict[str, Any]:
    """The deployment that came nearest to the budget."""
    ttft_p99_s, tpot_p99_s = one.latency_p99_s()
    return {
        "precision": one.precision,
        "instances": one.instances,
        "usd_per_hour": one.usd_per_hour,
        "ttft_p99_s": ttft_p99_s,
        "tpot_p99_s": tpot_p99_s,
    }


def affordable(deployments: Mapping[str, Sequence[Deployment]], question: Question) -> dict[str, list[Deployment]]:
    """Deployments that the money bars leave, by size: within the budget, and priced where cost decides."""
    budget, priced = question.budget_usd, question.order_by in COST_GOALS or question.budget_usd is not None
    kept = {
        name: [
            one
            for one in ones
            if (not priced or one.usd_per_hour is not None)
            and (budget is None or (usd := one.bar_usd()) is None or usd <= budget)
        ]
        for name, ones in deployments.items()
    }
    return {name: ones for name, ones in kept.items() if ones}


def unpriced(deployments: Mapping[str, Sequence[Deployment]], question: Question) -> dict[str, NotJudged]:
    """Sizes without any price, where cost decides: they cannot be ranked."""
    if question.order_by not in COST_GOALS and question.budget_usd is None:
        return {}
    lacks = "a price: no source gives one for a term it is sold under"
    return {
        name: NotJudged(instance=name, lacks=lacks)
        for name, ones in deployments.items()
        if all(one.quote is None for one in ones)
    }
