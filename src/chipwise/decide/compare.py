"""The answer beside the guide's own, GPU beside Neuron, and a size beside the leader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipwise.decide.deployment import standing_of
from chipwise.decide.question import TrainingDemand
from chipwise.decide.rank import beats
from chipwise.guide import walk_flow
from chipwise.units import show_usd

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from chipwise.decide.advice import Option, Rejected
    from chipwise.decide.deployment import Deployment
    from chipwise.decide.pick import Picked
    from chipwise.decide.question import Question

_KIND_OF_RULE = {
    "memory": "memory", "slo": "slo", "region": "region", "purchase": "region", "support": "support",
    "precision": "support", "engine": "support", "budget": "price",
}  # fmt: skip


def behind_because(one: Deployment, leader: Deployment | None, question: Question) -> str:
    """Why a feasible size stands behind the first option: the goal, then cost."""
    if leader is None:
        return "no option"
    first, second = standing_of(leader, question), standing_of(one, question)
    if beats(first.metric, second.metric):
        ratio = second.metric.mid / first.metric.mid
        return f"{question.order_by}: {ratio:.2f} times {leader.instance.name}"
    if second.usd_per_hour is None:
        return f"ties on {question.order_by}; no price"
    if first.usd_per_hour is not None and second.usd_per_hour.mid > first.usd_per_hour.mid:
        dearer = show_usd(second.usd_per_hour.mid - first.usd_per_hour.mid)
        return f"ties on {question.order_by}; {dearer} an hour dearer than {leader.instance.name}"
    return f"same chip or a tie on {question.order_by}; the options shown differ more"


def guide_object(question: Question, options: Sequence[Option], rejected: Sequence[Rejected]) -> dict[str, Any]:
    """What the guide's flow would recommend, whether the answer agrees, and what makes the difference."""
    params = float(question.model.params_total)
    kind = "inference"
    if isinstance(question.demand, TrainingDemand):
        kind = "pretrain" if question.demand.method == "pretrain" else "finetune"
    end = walk_flow(kind=kind, params=params, goal=question.policy.goals[0])
    chosen = {option.instance for option in options}
    agrees = bool(chosen & set(end.recommends))
    return {
        "path": list(end.path),
        "recommends": list(end.recommends),
        "agrees": agrees,
        "differs": [] if agrees else [_difference(name, options, rejected) for name in end.recommends],
        "source": end.source,
    }


def _difference(name: str, options: Sequence[Option], rejected: Sequence[Rejected]) -> dict[str, Any]:
    for one in rejected:
        if one.instance == name:
            return {"kind": _KIND_OF_RULE.get(one.rule, "support"), "id": name, "value": one.reason}
    cheapest = options[0].instance if options else None
    return {"kind": "price", "id": name, "value": f"feasible, ranked behind {cheapest}"}


def neuron_object(question: Question, picked: Picked, advice: Sequence[Rejected]) -> dict[str, Any]:
    """GPU or Neuron: by what is feasible, with the signals that point either way."""
    kinds = {one.instance.kind for one, _ in (*picked.options, *picked.others)}
    verdict = "either" if {"gpu", "neuron"} <= kinds else "neuron" if "neuron" in kinds else "nvidia"
    signals = [_support_signal(question, kinds, advice)]
    if question.policy.custom_kernels:
        signals.append(
            {
                "signal": "custom CUDA kernels", "points_to": "nvidia", "why": "Neuron does not run them",
                "source": "guide B:25",
            }
        )  # fmt: skip
    return {"verdict": verdict, "signals": signals}


def _support_signal(question: Question, kinds: AbstractSet[str], rejected: Sequence[Rejected]) -> dict[str, str]:
    if "neuron" in kinds:
        why = f"{question.model.model_type} has a documented Neuron stack, and a size of it meets the bars"
        return {"signal": "support today", "points_to": "neuron", "why": why, "source": "engines: neuron support"}
    chips = question.catalog.instances
    reasons = [one.reason for one in rejected if chips[one.instance].kind == "neuron" and one.rule != "retired"]
    why = reasons[0] if reasons else "no Neuron size was judged feasible"
    return {"signal": "support today", "points_to": "nvidia", "why": why, "source": "engines: neuron support"}
