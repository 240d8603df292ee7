"""What the guide says of work that is no token stream: its flow, and whether a GPU is needed at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipwise.decide.other.deployment import OtherDeployment
from chipwise.guide import FlowEnd, walk
from chipwise.guide.tables import cite
from chipwise.perf.other.rows import walks_trees

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from chipwise.decide.advice import NotJudged, Rejected
    from chipwise.decide.deployment import Deployment
    from chipwise.decide.question import Question

_KINDS = {
    "vision": "vision", "diffusion": "diffusion", "transcribe": "audio", "tts": "audio", "recommend": "recommender",
    "tabular": "tabular",
}  # fmt: skip
UNITS_OF_A_PRICE = 1e6
LARGE_TABLE_FRACTION = 0.5
"""Tables that are more than half of a model are what it is read for."""


def other_flow(question: Question) -> FlowEnd:
    """The guide's flow for the kind of model or of service: section 1 for texts, section 2 for the rest."""
    purpose = question.purpose
    if purpose not in _KINDS:
        passed = walk("1", {"1": "serving", "1-serving": "embed"})
    else:
        kind = "cnn" if question.model.architecture == "cnn" else _KINDS[purpose]
        tables = "yes" if purpose == "recommend" and _mostly_tables(question) else "no"
        passed = walk("2", {"2": kind, "2-ml": tables})
    end = next((one for one in passed if one.kind == "end"), passed[-1])
    path = tuple(one.id for one in passed)
    return FlowEnd(path=path, recommends=end.recommends, precision=end.precision, source=cite(end.where))


def _mostly_tables(question: Question) -> bool:
    held = sum(weight.params for weight in question.model.outer if weight.part == "embedding")
    return held > LARGE_TABLE_FRACTION * question.model.params_total


def gpu_needed(
    question: Question,
    deployments: Mapping[str, Sequence[Deployment]],
    failed: Sequence[Rejected],
    lacking: Sequence[NotJudged],
) -> dict[str, Any]:
    """Whether an accelerator is needed: not where CPU sizes meet the bars for no more money.

    Args:
        question: model, load, policy.
        deployments: what is feasible and affordable, by size.
        failed: rejected sizes.
        lacking: sizes that could not be judged.
    """
    offline = question.other.arrival.kind == "offline"
    cpu = _cheapest(deployments, cpu=True, offline=offline)
    accelerated = _cheapest(deployments, cpu=False, offline=offline)
    per = f"for a million {question.other.item.unit}s" if offline else "an hour"
    unknown = sum(question.catalog.instances[one.instance].kind == "cpu" for one in lacking)
    rest = f"; {unknown} CPU sizes are not judged" if unknown else ""
    if cpu is None:
        missed = _nearest([one for one in failed if question.catalog.instances[one.instance].kind == "cpu"])
        why = f"no CPU size was found that will do{f': {missed.instance}: {missed.reason}' if missed else ''}{rest}"
        return {"answer": not walks_trees(question.model), "why": why}
    said = f"of the CPU sizes that meet the bars {cpu[0]} costs least, ${cpu[1]:.3g} {per}"
    if accelerated is None:
        return {"answer": False, "why": f"{said}; no accelerator is feasible and known{rest}"}
    needed = accelerated[1] < cpu[1]
    against = "dearer than" if needed else "no dearer than"
    return {"answer": needed, "why": f"{said}: {against} {accelerated[0]} at ${accelerated[1]:.3g}{rest}"}


def _nearest(failed: Sequence[Rejected]) -> Rejected | None:
    """The size that misses a bar by least; where none got so far, the first that failed."""
    missed = [one for one in failed if one.rule == "slo" and one.shortfall is not None]
    return min(missed, key=lambda one: (_short(one), one.instance), default=next(iter(failed), None))


def _short(one: Rejected) -> float:
    return float(one.shortfall["value"]) if one.shortfall else 0.0


def _usd(one: Deployment, *, offline: bool) -> float | None:
    """By the hour where the load is given; by the million units where it is as much as can be."""
    if not offline or not isinstance(one, OtherDeployment):
        return one.bar_usd()
    each = one.usd_per_unit(one.served.capacity_units_per_s)
    return None if each is None else each.mid * UNITS_OF_A_PRICE


def _cheapest(deployments: Mapping[str, Sequence[Deployment]], *, cpu: bool, offline: bool) -> tuple[str, float] | None:
    priced = [
        (usd, one)
        for ones in deployments.values()
        for one in ones
        if (one.instance.kind == "cpu") == cpu and (usd := _usd(one, offline=offline)) is not None
    ]
    if not priced:
        return None
    usd, one = min(priced, key=lambda pair: (pair[0], pair[1].instance.name))
    return f"{one.instances} x {one.instance.name}", usd
