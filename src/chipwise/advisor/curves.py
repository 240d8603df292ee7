"""How an option's figures move: with the load, with the context, with its use; and all candidates beside each other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chipwise.advisor.estimates import estimate
from chipwise.advisor.plans import advise
from chipwise.advisor.request import EngineRequest, EstimateRequest, SizeRequest, SplitRequest
from chipwise.advisor.sizes import size
from chipwise.errors import InfeasibleError, InputError

if TYPE_CHECKING:
    from chipwise.advisor.request import Request
    from chipwise.decide import Advice, Option

POINTS = 10
"""Loads tried between one request and twice what the plan runs."""
BEYOND = 2.0
SHARES = tuple(share / 20 for share in range(1, 21))
"""Shares of capacity in use."""
LEAST_CONTEXT = 1024


def curves(request: Request, *, place: int = 1) -> dict[str, Any]:
    """The answer of `advise` with, for the option at that place, its curves.

    `load`: means of one request, and throughput, by requests in flight over the whole deployment. `context`: what
    the cache of one replica holds, by context. `use`: USD per million output tokens by the share of capacity used.
    `candidates`: every size that would do, and those that miss a bar at what came nearest; `undrawn`: the others,
    counted by what refuses them. A kind of work without such a curve has an empty list; so has `load` where prefill
    and decode have pools of their own, as no replica does both; its `context` is that of the option's own split.

    Raises:
        InfeasibleError: nothing is feasible.
        InputError: no option stands at that place.
    """
    advice = advise(request)
    if not advice.options:
        raise InfeasibleError("nothing to draw", why="no option is feasible", fix="ask `plan` why")
    if not 1 <= place <= len(advice.options):
        count = len(advice.options)
        raise InputError(f"no option {place}", why=f"the plan has {count}", fix=f"name 1 to {count}")
    option = advice.options[place - 1]
    serves = option.latency is not None
    return {
        "schema_version": 1,
        "model": advice.model["name"],
        "place": place,
        "instance": option.instance,
        "instances": option.instances,
        "bars": {name: _value(advice, name) for name in ("ttft_p99_s", "tpot_p99_s")},
        "load": list(_by_load(request, advice, option)) if serves and not option.pools else [],
        "context": list(_by_context(request, advice, option)) if serves else [],
        "use": list(_by_use(option)),
        "memory": option.memory["per_chip"],
        "candidates": [*_picked(advice), *_behind(advice), *_missing(advice)],
        "undrawn": _undrawn(advice),
    }


def _value(advice: Advice, name: str) -> Any:
    return (advice.workload.get(name) or {}).get("value")


def _asked(request: Request, advice: Advice, option: Option) -> EstimateRequest:
    """The option as a question to `estimate`."""
    names = option.parallelism.__dataclass_fields__
    return EstimateRequest(
        model=request.model,
        models=request.models,
        instance=option.instance,
        instances=option.instances,
        replicas=option.replicas,
        isl_tokens=_value(advice, "isl"),
        osl_tokens=_value(advice, "osl"),
        context_tokens=_value(advice, "context"),
        split=SplitRequest(**{name: getattr(option.parallelism, name) for name in names}),
        engine=EngineRequest(
            engine=option.engine,
            precision=option.precision.weights,
            kv_precision=option.settings["kv_cache_dtype"],
        ),
    )


def _by_load(request: Request, advice: Advice, option: Option) -> Iterator[dict[str, Any]]:
    asked = _asked(request, advice, option)
    running = option.performance["serving"]["batch"].mid * option.replicas
    most = max(2.0, BEYOND * running)
    for users in sorted({round(most ** (step / (POINTS - 1))) for step in range(POINTS)}):
        found = estimate(replace(asked, concurrency=users))["serving"]
        names = ("ttft_s", "tpot_s", "output_tokens_per_s")
        yield {"concurrency": users, **{name: found[name] for name in names}}


def _by_context(request: Request, advice: Advice, option: Option) -> Iterator[dict[str, Any]]:
    asked = _asked(request, advice, option)
    most = max(LEAST_CONTEXT, advice.model["max_context_tokens"] or 2 * (asked.context_tokens or LEAST_CONTEXT))
    for power in range(int(math.log2(most / LEAST_CONTEXT)) + 1):
        context = LEAST_CONTEXT * 2**power
        found = size(
            SizeRequest(
                model=asked.model,
                models=asked.models,
                instance=asked.instance,
                context_tokens=context,
                split=asked.split,
                engine=asked.engine,
            )
        )
        yield {
            "context": context,
            "max_concurrency": found["max_concurrency_at_context"],
            "kv_cache_tokens": found["kv_cache_tokens"],
        }


def _by_use(option: Option) -> Iterator[dict[str, Any]]:
    full = option.cost.usd_per_million_at_capacity
    if full is None:
        return
    for share in SHARES:
        yield {"share": share, "usd_per_million_output_tokens": full.scaled(1.0 / share)}


def _picked(advice: Advice) -> Iterator[dict[str, Any]]:
    for option in advice.options:
        spread = option.latency
        yield {
            "instance": option.instance,
            "instances": option.instances,
            "usd_per_hour": option.cost.usd_per_hour.mid if option.cost.usd_per_hour else None,
            "ttft_p99_s": spread.ttft_s.p99 if spread else None,
            "tpot_p99_s": spread.tpot_s.p99 if spread else None,
            "place": option.rank,
            "feasible": True,
            "why": "; ".join(option.reasons[:2]),
        }


def _behind(advice: Advice) -> Iterator[dict[str, Any]]:
    for row in advice.also_feasible:
        yield {
            "instance": row.instance,
            "instances": row.instances,
            "usd_per_hour": row.usd_per_hour.mid if row.usd_per_hour else None,
            "ttft_p99_s": row.ttft_p99_s,
            "tpot_p99_s": row.tpot_p99_s,
            "place": None,
            "feasible": True,
            "why": row.behind_because,
        }


def _missing(advice: Advice) -> Iterator[dict[str, Any]]:
    """Sizes that hold the model and miss a bar, as they came nearest."""
    for row in advice.rejected:
        near, hourly = row.nearest, row.nearest.get("usd_per_hour")
        if near.get("instances") is not None:
            yield {
                "instance": row.instance,
                "instances": near["instances"],
                "usd_per_hour": None if hourly is None else hourly.mid,
                "ttft_p99_s": near.get("ttft_p99_s"),
                "tpot_p99_s": near.get("tpot_p99_s"),
                "place": None,
                "feasible": False,
                "why": row.reason,
            }


def _undrawn(advice: Advice) -> list[dict[str, Any]]:
    """How many sizes stand nowhere among the candidates, by the rule that refuses them."""
    rules = Counter(row.rule for row in advice.rejected if row.nearest.get("instances") is None)
    rules.update({"not judged": len(advice.not_judged), "left out by the question": len(advice.excluded)})
    return [{"rule": rule, "sizes": count} for rule, count in rules.most_common() if count]
