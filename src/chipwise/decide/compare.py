"""The answer beside the guide's own, and GPU beside Neuron."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipwise.decide.differences import difference
from chipwise.decide.other.guide import other_flow
from chipwise.decide.other.stands import TASKS
from chipwise.decide.posture import posture_of, verdict_of
from chipwise.decide.question import Demand, OtherDemand
from chipwise.engines import neuron_support
from chipwise.guide import Checks, FlowEnd, NeuronQuestion, goal_settings, neuron_signals, walk_flow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from chipwise.decide.advice import Option, Rejected
    from chipwise.decide.differences import Other
    from chipwise.decide.pick import Picked
    from chipwise.decide.question import Question

LARGE_CHECKPOINT_PARAMS = 100e9
_STATUS = ("ok", "beta", "unknown", "unsupported")


def guide_object(question: Question, options: Sequence[Option], others: Sequence[Other]) -> dict[str, Any]:
    """What the guide's flow would recommend, whether the answer agrees, and what makes the difference.

    Args:
        question: model, kind of work and first goal.
        options: the answer.
        others: the rows of every other size.
    """
    end = _end(question, options)
    chosen = {option.instance for option in options}
    agrees = bool(chosen & set(end.recommends))
    return {
        "path": list(end.path),
        "recommends": list(end.recommends),
        "agrees": agrees,
        "differs": [] if agrees else [difference(row) for row in others if row.instance in end.recommends],
        "settings": [
            {"setting": one.setting, "value": one.value, "why": one.why, "source": one.source, "erratum": one.erratum}
            for one in goal_settings(question.policy.goals[0])
        ],
        "source": end.source,
    }


def _end(question: Question, options: Sequence[Option]) -> FlowEnd:
    if isinstance(question.demand, OtherDemand):
        return other_flow(question)
    params = float(question.model.params_total)
    return walk_flow(
        kind=question.kind, params=params, goal=question.policy.goals[0], checks=_checks(question, options)
    )


def _checks(question: Question, options: Sequence[Option]) -> Checks | None:
    """What section 8.9 asks of the first option; None without one."""
    if not options:
        return None
    first = options[0]
    split = first.parallelism
    large = question.kind != "inference" and question.model.params_total >= LARGE_CHECKPOINT_PARAMS
    return Checks(
        exceeds_one_chip=split.tp * split.pp > 1,
        several_nodes=first.instances > first.replicas,
        large_checkpoints=large,
    )


def neuron_object(question: Question, picked: Picked, rejected: Sequence[Rejected]) -> dict[str, Any]:
    """GPU or Neuron: by what is feasible and by price, with the guide's signals that point either way."""
    kinds = {one.instance.kind for one in (*picked.options, *picked.others)}
    posture = posture_of(picked.options, question)
    policy = question.policy
    status, why, source = _support(question, kinds, rejected)
    ttft = question.demand.ttft_p99_s if isinstance(question.demand, Demand) else None
    signals = neuron_signals(
        NeuronQuestion(
            architecture=question.model.architecture,
            training=question.kind != "inference",
            support=status,
            support_why=why,
            support_source=source,
            custom_kernels=policy.custom_kernels,
            ttft_p99_s=ttft,
            team=policy.team,
            timeline_weeks=policy.timeline_weeks,
            goal=policy.goals[0],
            stability=policy.stability,
        )
    )
    return {
        "verdict": verdict_of(kinds, posture, question),
        "signals": [
            *(
                {"signal": one.signal, "points_to": one.points_to, "why": one.why, "source": one.source}
                for one in signals
            ),
            *([posture.signal()] if posture else []),
        ],
    }


def _support(question: Question, kinds: AbstractSet[str], rejected: Sequence[Rejected]) -> tuple[str, str, str]:
    """The best status of a Neuron stack for the model on any chip of the catalog, why, and who says so."""
    task = "serve" if question.kind == "inference" else "train"
    if isinstance(question.demand, OtherDemand):
        task = TASKS.get(question.purpose, question.purpose)
    chips = [one.id for one in question.catalog.chips.values() if one.vendor == "aws"]
    found = [neuron_support(question.model.model_type, task, chip) for chip in chips]
    best = min(found, key=lambda one: _STATUS.index(one.status if one.named else "unknown"))
    status = best.status if best.named else "unknown"
    if "neuron" in kinds:
        return status, f"{best.why}; a size of it meets the bars", best.source
    reason = _newest_reason(question, rejected)
    return status, f"{best.why}; no size of it is feasible here: {reason}", best.source


def _newest_reason(question: Question, rejected: Sequence[Rejected]) -> str:
    """Why the fastest Neuron chip that was looked at will not do: of older ones the reason would mislead."""
    catalog = question.catalog
    neuron = [one for one in rejected if catalog.instances[one.instance].kind == "neuron" and one.rule != "retired"]
    if not neuron:
        return "none was looked at, or too little is known"
    newest = max(neuron, key=lambda one: _speed(question, one.instance))
    return f"{newest.instance}: {newest.reason}"


def _speed(question: Question, name: str) -> float:
    size = question.catalog.instances[name]
    chip = question.catalog.chips[size.chip or ""]
    return (chip.dense_flops_per_s.get("bf16") or 0.0) * (size.chips or 1)
