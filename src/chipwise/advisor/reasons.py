"""`why(instance, Request)`: where one size stands in an answer, and the smallest change that would make it feasible."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chipwise.advisor.plans import advise
from chipwise.catalog import load_catalog
from chipwise.errors import InputError

if TYPE_CHECKING:
    from chipwise.advisor.request import Request
    from chipwise.decide import Advice

LISTS = ("options", "also_feasible", "rejected", "not_judged", "excluded")
FLOORS = ("fp8", "int4")
LOOSER = (1.25, 1.5, 2.0, 3.0, 5.0)


def why(instance: str, request: Request) -> dict[str, Any]:
    """Where a size stands for a question, its row there, and what would turn a rejection.

    Changes are tried one at a time from the least to the greatest: another region, fewer bits, a looser bar, fewer
    users, a shorter context. Each is a question of its own to `advise`, restricted to the size.

    Raises:
        UnknownNameError: no such size.
        As `advise` for the question.
    """
    name = load_catalog().instance(instance).name
    advice = advise(request)
    place, row = where(name, advice)
    changes = [] if place in {"options", "also_feasible"} else list(_turning(name, request))
    return {
        "schema_version": 1,
        "instance": name,
        "stands_in": place,
        "detail": row,
        "would_change_it": changes,
        "best": advice.options[0].instance if advice.options else None,
        "facts_as_of": advice.facts_as_of,
    }


def where(instance: str, advice: Advice) -> tuple[str, Any]:
    """The list a size stands in and its first row there."""
    rows = ((place, row) for place in LISTS for row in getattr(advice, place))
    return next((place, row) for place, row in rows if row.instance == instance)


def _turning(instance: str, request: Request) -> Iterator[dict[str, Any]]:
    """The first change of each kind that makes the size feasible."""
    alone = replace(request, only=(instance,), exclude=(), vendor="any")
    for kind, tries in _changes(alone, request):
        for words, changed in tries:
            found = _feasible(changed)
            if found is not None:
                yield {"kind": kind, "change": words, "then": found}
                break


def _changes(alone: Request, request: Request) -> Iterator[tuple[str, list[tuple[str, Request]]]]:
    if request.only or request.exclude or request.vendor != "any":
        yield "selection", [("leave out --only, --exclude and --vendor", alone)]
    if request.regions:
        yield "region", [("any region", replace(alone, regions=()))]
    if request.needs:
        yield "features", [("leave out --needs", replace(alone, needs=()))]
    if request.purchase != "any":
        yield "purchase", [("--purchase any", replace(alone, purchase="any"))]
    yield "precision", [(f"--min-precision {floor}", replace(alone, min_precision=floor)) for floor in FLOORS]
    yield from _bars(alone)
    if request.budget_usd is not None:
        yield "budget", [("no budget", replace(alone, budget_usd=None))]


def _bars(alone: Request) -> Iterator[tuple[str, list[tuple[str, Request]]]]:
    workload = advise(alone).workload
    ttft, tpot = (workload.get(name, {}).get("value") for name in ("ttft_p99_s", "tpot_p99_s"))
    if ttft or tpot:
        yield (
            "bars",
            [
                (
                    f"bars {factor:g} times as loose",
                    replace(alone, ttft_p99_s=ttft and ttft * factor, tpot_p99_s=tpot and tpot * factor),
                )
                for factor in LOOSER
            ],
        )
    context = workload.get("context", {}).get("value")
    if context and alone.isl_tokens is None and alone.osl_tokens is None:
        shorter = [int(context) // part for part in (2, 4, 8) if int(context) // part >= 1]
        yield "context", [(f"--context {tokens}", replace(alone, context_tokens=tokens)) for tokens in shorter]


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
