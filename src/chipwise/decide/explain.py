"""From a picked deployment to a full option: its memory, prediction, cost, checks, reasons and risks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from chipwise.cost import quote, usd_per_million_tokens
from chipwise.decide.advice import Cost, Latency, Option, Parallelism, PrecisionChoice, PurchaseLine, Scale, Sizing
from chipwise.decide.answers import hold, memory_object, question_of, serving_object
from chipwise.decide.candidates import at_precision
from chipwise.decide.infrastructure import discouraged, feature_checks
from chipwise.decide.reasons import reasons_of, risks_of
from chipwise.guide import grade
from chipwise.perf.serving import predict_serving
from chipwise.perf.spread import METHOD, tpot_spread, ttft_spread
from chipwise.units import Percentiles, finite

if TYPE_CHECKING:
    from chipwise.decide.answers import Held
    from chipwise.decide.choose import Deployment
    from chipwise.decide.pick import Picked
    from chipwise.decide.question import Question
    from chipwise.perf.spread import Spread

TERMS = ("on-demand", "savings-plan", "capacity-block", "reserved", "spot")


def parallelism_of(deployment: Deployment) -> Parallelism:
    """The split of one replica."""
    split = deployment.layout.split
    return Parallelism(tp=int(split.tp), pp=int(split.pp), ep=int(split.ep), dp=int(split.dp), cp=int(split.cp))


def option_of(question: Question, picked: Picked, place: int) -> Option:
    """The full option at one place of the picked ones."""
    deployment, tie = picked.options[place]
    ties = tuple(other + 1 for other, (_, group) in enumerate(picked.options) if group == tie and other != place)
    demand, layout = question.demand, deployment.layout
    model = at_precision(question.model, deployment.evaluated.option)
    alone = hold(model, layout, context_tokens=demand.context_tokens, concurrency=1.0)
    resident = _resident(question, deployment, alone)
    held = hold(model, layout, context_tokens=demand.context_tokens, concurrency=resident)
    asked = question_of(layout, held, demand, float(deployment.replicas))
    serving = serving_object(layout, asked, demand)
    prediction = predict_serving(asked)
    with np.errstate(invalid="ignore"):  # a saturated load waits for ever: infinite less infinite
        spread = ttft_spread(prediction), tpot_spread(prediction, steps=demand.osl_tokens - 1.0)
    memory = memory_object(model, layout, held)
    checks = feature_checks(deployment, params=float(question.model.params_total), training=False, pretrain=False)
    performance = _performance(deployment, serving, memory)
    return Option(
        rank=place + 1,
        tied_with=ties,
        instance=deployment.instance.name,
        instances=deployment.instances,
        chip=layout.seat.platform.chip.id,
        chips=deployment.chips,
        chips_used=_chips_used(deployment),
        replicas=deployment.replicas,
        devices_per_replica=layout.devices,
        parallelism=parallelism_of(deployment),
        precision=_precision(deployment),
        engine=layout.seat.engine.name,
        settings=_settings(deployment, held, resident),
        memory=memory,
        performance=performance,
        latency=_latency(spread),
        rating_throughput=grade("throughput_per_gpu", "mean", serving["output_tokens_per_s_per_chip"].mid),
        rating_mfu=None,
        run=None,
        sizing=_sizing(question, deployment, held),
        cost=_cost(question, deployment, serving),
        infrastructure=tuple(checks),
        pools=None,
        sharing=None,
        scale=_scale(question, deployment),
        regions=_regions(question, deployment),
        reasons=tuple(reasons_of(question, deployment, serving, spread)),
        risks=tuple(risks_of(question, deployment, serving, spread)),
        discouraged_by=tuple(discouraged(checks, _communication_share(serving))),
        evidence=deployment.evidence,
    )


def _resident(question: Question, deployment: Deployment, alone: Held) -> float:
    """Requests in flight on one replica whose cache is held at its full length at once; the rest queue.

    A closed loop states how many there are; under a rate they follow from it; offline work takes every seat.
    """
    fits = max(1.0, math.floor(float(alone.answer.max_concurrency_at_context)))
    stated = question.demand.users / deployment.replicas
    running = {"closed": math.ceil(stated), "offline": fits}.get(question.demand.kind, deployment.value("running"))
    return max(1.0, min(math.ceil(running), fits, deployment.layout.seat.limits.max_num_seqs))


def _performance(deployment: Deployment, serving: dict[str, Any], memory: dict[str, Any]) -> dict[str, Any]:
    return {
        "feasible": True,
        "config": {"instance": deployment.instance.name, "replicas": deployment.replicas},
        "serving": serving,
        "training": None,
        "other": None,
        "memory": memory,
        "watts": None,
        "evidence": deployment.evidence,
        "warnings": [],
    }


def _chips_used(deployment: Deployment) -> int:
    cores = deployment.layout.seat.platform.chip.cores
    return -(-deployment.replicas * deployment.layout.devices // cores)


def _precision(deployment: Deployment) -> PrecisionChoice:
    option, seat = deployment.evaluated.option, deployment.layout.seat
    loss = f"{option.quality_loss} ({option.verdict})" if option.quality_loss else None
    return PrecisionChoice(
        weights=option.format,
        kv=seat.limits.kv_format,
        compute=seat.capability.compute_format or option.format,
        quality={"loss": loss, "condition": option.condition, "source": option.source},
    )


def _settings(deployment: Deployment, held: Held, resident: float) -> dict[str, Any]:
    seat = deployment.layout.seat
    return {
        "max_num_seqs": max(1, min(seat.limits.max_num_seqs, 2 * math.ceil(resident))),
        "max_model_len": round(float(held.asked.context_tokens)),
        "gpu_memory_utilization": seat.limits.utilization,
        "max_num_batched_tokens": seat.limits.chunk_tokens,
        "engine_version": seat.engine.version,
    }


def _latency(spread: tuple[Spread, Spread]) -> Latency:
    ttft, tpot = spread
    return Latency(
        ttft_s=_percentiles(ttft),
        tpot_s=_percentiles(tpot),
        rating_ttft=grade("ttft", "p99", finite(ttft.p99)),
        rating_tpot=grade("tpot", "mean", finite(tpot.mean)),
        method=METHOD,
    )


def _percentiles(spread: Spread) -> Percentiles:
    names = ("mean", "p50", "p90", "p95", "p99")
    return Percentiles(**{name: finite(getattr(spread, name)) for name in names})


def _sizing(question: Question, deployment: Deployment, held: Held) -> Sizing:
    """Chips by memory hold every request in flight at its full context; bars may ask for more, or let some queue."""
    at_once = max(float(held.answer.max_concurrency_at_context), 1e-9)
    replicas = max(1, -(-question.demand.users // at_once))
    packing = deployment.evaluated.packings[deployment.row]
    by_memory = int(-(-replicas // packing.replicas_per_unit)) * packing.instances_per_unit
    devices = int(replicas) * deployment.layout.devices
    binding = "memory" if by_memory >= deployment.instances else "latency"
    return Sizing(
        chips_by_memory=-(-devices // deployment.layout.seat.platform.chip.cores),
        instances_by_memory=by_memory,
        instances_by_throughput=deployment.base_units * packing.instances_per_unit,
        ha_factor=question.policy.ha_factor,
        binding=binding,
    )


def _regions(question: Question, deployment: Deployment) -> tuple[str, ...]:
    offered = question.catalog.regions_of(deployment.instance.name, priced=True)
    return tuple(region for region in question.policy.regions if region in offered)


def _cost(question: Question, deployment: Deployment, serving: dict[str, Any]) -> Cost:
    hourly, found = deployment.usd_per_hour, deployment.quote
    capacity = serving["saturation_rate"].scaled(question.demand.osl_tokens)
    caveats = ["list price of the instances alone: no storage, traffic, support or discounts"]
    if found is not None and found.kind == "assumed":
        caveats.append(f"assumed price: {found.why}")
    if found is not None and found.as_of is None:
        caveats.append("the price list is undated (early 2026 or later)")
    return Cost(
        usd_per_hour=hourly,
        usd_per_million_output_tokens=usd_per_million_tokens(hourly, serving["output_tokens_per_s"]),
        usd_per_million_at_capacity=usd_per_million_tokens(hourly, capacity),
        usd_per_unit=None,
        usd_per_run=None,
        price_as_of=found.as_of if found else None,
        price_kind=found.kind if found else None,
        purchase=tuple(_purchase(question, deployment, term) for term in TERMS),
        caveats=tuple(caveats),
    )


def _purchase(question: Question, deployment: Deployment, term: str) -> PurchaseLine:
    prices = question.catalog.prices(deployment.instance.name)
    if term in {"savings-plan", "reserved"}:
        return PurchaseLine(option=term, usd_per_hour=None, why="no public table of rates by size: ask for a quote")
    if term not in deployment.instance.usage_classes:
        return PurchaseLine(option=term, usd_per_hour=None, why=f"{deployment.instance.name} is not sold so")
    found = quote(prices, term=term, regions=_regions(question, deployment))
    if found is None:
        return PurchaseLine(option=term, usd_per_hour=None, why="sold so, but no price was found")
    return PurchaseLine(option=term, usd_per_hour=found.usd_per_hour.scaled(deployment.instances), why=found.why)


def _scale(question: Question, deployment: Deployment) -> Scale:
    bar = question.demand.ttft_p99_s
    threshold = f"P99 TTFT above {bar * 1e3:.0f} ms" if bar else "waiting requests above 0 for a minute"
    packing = deployment.evaluated.packings[deployment.row]
    more = f"{packing.instances_per_unit} x {deployment.instance.name} ({packing.replicas_per_unit} replicas)"
    return Scale(
        start_with=f"{deployment.instances} x {deployment.instance.name}",
        signal="TTFT p99, waiting requests and KV-cache use of the engine",
        threshold=threshold,
        next=f"add {more}",
    )


def _communication_share(serving: dict[str, Any]) -> float:
    total = sum(term["decode_s"] or 0.0 for term in serving["terms"])
    wire = sum(term["decode_s"] or 0.0 for term in serving["terms"] if term["bound_by"] == "communication")
    return wire / total if total else 0.0
