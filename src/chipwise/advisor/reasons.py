"""`why(instance, Request)`: where one size stands in an answer, and the smallest change that would make it feasible."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chipwise.advisor.plans import advise
from chipwise.advisor.request import Request
from chipwise.catalog import load_catalog
from chipwise.decide.advice import Rejected
from chipwise.errors import InputError, UnknownNameError
from chipwise.precision import format_names

if TYPE_CHECKING:
    from chipwise.decide import Advice

LISTS = ("options", "also_feasible", "rejected", "not_judged", "excluded")
FLOORS = ("fp8", "int4")
SELECTION = "selection"
LOOSER = (1.25, 1.5, 2.0, 3.0, 5.0)
BARS = {"ttft_p99_s": "--ttft-p99", "tpot_p99_s": "--tpot-p99"}
Tries = tuple[str, list[tuple[str, Request]]]
"""A kind of change, and its tries from the least to the greatest: in words, and as a question."""


def why(instance: str, request: Request) -> dict[str, Any]:
    """Where a size stands for a question, its row there, and what would turn a rejection.

    Changes are tried one at a time from the least to the greatest: another region, fewer bits, a looser bar, fewer
    users, a shorter context. Each is a question of its own to `advise`, restricted to the size.

    Raises:
        UnknownNameError: no such size.
        InputError: size and model stand in each other's place.
        As `advise` for the question.
    """
    name = _named(instance, request)
    advice = advise(request)
    place, row = where(name, advice)
    changes = [] if place in {"options", "also_feasible"} else list(_turning(name, request, advice, row))
    return {
        "schema_version": 1,
        "model": advice.model,
        "workload": advice.workload,
        "instance": name,
        "stands_in": place,
        "detail": row if changes else _in_full(row, request),
        "would_change_it": changes,
        "best": advice.options[0].instance if advice.options else None,
        "facts_as_of": advice.facts_as_of,
    }


def _named(instance: str, request: Request) -> str:
    """The size by its full name."""
    catalog = load_catalog()
    try:
        return catalog.instance(instance).name
    except UnknownNameError:
        if request.model not in catalog.instances:
            raise
    raise InputError(
        f"{instance} is no size, and {request.model} is one",
        why="the size comes first, then the model",
        fix=f"chipwise why {request.model} {instance}",
    )


def where(instance: str, advice: Advice) -> tuple[str, Any]:
    """The list a size stands in and its first row there."""
    return best_place([instance], advice)


def best_place(instances: Collection[str], advice: Advice) -> tuple[str, Any]:
    """The first list that one of several sizes stands in, and that row."""
    rows = ((place, row) for place in LISTS for row in getattr(advice, place))
    return next((place, row) for place, row in rows if row.instance in instances)


def _alone(instance: str, request: Request) -> Request:
    return replace(request, only=(instance,), exclude=(), vendor="any")


def _asked_format(row: Any) -> str | None:
    """The weight format that a rejection's own rule asks for; None where it asks for something else."""
    change = row.change if isinstance(row, Rejected) and row.rule == "precision" else None
    return change if change in format_names() else None


def _in_full(row: Any, request: Request) -> Any:
    """A rejection for its format, with what stands in the way once that format is taken."""
    asked = _asked_format(row)
    if asked is None:
        return row
    try:
        place, then = where(row.instance, advise(replace(_alone(row.instance, request), min_precision=asked)))
    except InputError as error:
        return replace(row, change=f"{asked}, which is not enough: {error.what}")
    reason = then.reason if place == "rejected" else then.lacks if place == "not_judged" else place
    return replace(row, change=f"{asked}, which alone is not enough: {reason}")


def _turning(instance: str, request: Request, advice: Advice, row: Any) -> Iterator[dict[str, Any]]:
    """The first change of each kind that makes the size feasible."""
    alone = _alone(instance, request)
    floors = tuple(dict.fromkeys([*filter(None, [_asked_format(row)]), *FLOORS]))
    tries_by_kind = [*_changes(alone, request, floors), *_bars(alone, advice, row)]
    for kind, tries in tries_by_kind:
        for words, changed in tries:
            found = _feasible(changed)
            if found is not None:
                yield {"kind": kind, "change": words, "then": found}
                break
        else:
            continue
        if kind == SELECTION:
            return  # every other change leaves the same flags out, and nothing more is needed


def _changes(alone: Request, request: Request, floors: tuple[str, ...]) -> Iterator[Tries]:
    if request.only or request.exclude or request.vendor != "any":
        yield SELECTION, [("leave out --only, --exclude and --vendor", alone)]
    if request.regions:
        yield "region", [("any region", replace(alone, regions=()))]
    if request.needs:
        yield "features", [("leave out --needs", replace(alone, needs=()))]
    if request.purchase != "any":
        yield "purchase", [("--purchase any", replace(alone, purchase="any"))]
    if request.engine is not None:
        yield "engine", [("leave out --engine", replace(alone, engine=None))]
    yield "precision", [(f"--min-precision {floor}", replace(alone, min_precision=floor)) for floor in floors]
    if request.budget_usd is not None:
        yield "budget", [("no budget", replace(alone, budget_usd=None))]


def _bars(alone: Request, advice: Advice, row: Any) -> Iterator[Tries]:
    workload = advice.workload
    asked = {name: workload.get(name, {}).get("value") for name in BARS}
    missed = _missed({name: bar for name, bar in asked.items() if bar}, row)
    if missed:
        factors = (*LOOSER, *_reached(missed, row))
        yield "bars", [_looser(alone, {name: bar * factor for name, bar in missed.items()}) for factor in factors]
    context = workload.get("context", {}).get("value")
    if context and alone.isl_tokens is None and alone.osl_tokens is None:
        shorter = [int(context) // part for part in (2, 4, 8) if int(context) // part >= 1]
        yield "context", [(f"--context {tokens}", replace(alone, context_tokens=tokens)) for tokens in shorter]


def _missed(asked: Mapping[str, float], row: Any) -> Mapping[str, float]:
    """Of the bars those that what came nearest misses; all where nothing did, or where it misses none."""
    nearest = row.nearest if isinstance(row, Rejected) else {}
    missed = {name: bar for name, bar in asked.items() if (nearest.get(name) or 0.0) > bar}
    return missed or asked


def _looser(alone: Request, bars: Mapping[str, float]) -> tuple[str, Request]:
    """The bars as flags, and the question with them."""
    flags = " ".join(f"{BARS[name]} {1000.0 * bar:.6g}ms" for name, bar in bars.items())
    return flags, replace(alone, **dict[str, Any](bars))


def _reached(asked: Mapping[str, float], row: Any) -> Iterator[float]:
    """How much looser the bars must be for what came nearest to meet them, to two digits upwards."""
    nearest = row.nearest if isinstance(row, Rejected) else {}
    misses = [nearest[name] / bar for name, bar in asked.items() if nearest.get(name)]
    if misses and max(misses) > max(LOOSER):
        digit = 10.0 ** (math.floor(math.log10(max(misses))) - 1)
        yield math.ceil(max(misses) / digit) * digit


def _feasible(request: Request) -> dict[str, Any] | None:
    try:
        advice = advise(request)
    except InputError:
        return None
    if not advice.options:
        return None
    first = advice.options[0]
    return {
        "instances": first.instances,
        "precision": first.precision.weights,
        "parallelism": first.parallelism,
        "usd_per_hour": first.cost.usd_per_hour,
    }
