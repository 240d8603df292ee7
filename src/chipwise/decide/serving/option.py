"""From a picked deployment to a full option: its memory, prediction, cost, checks, reasons and risks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from chipwise.cost import usd_per_million_tokens
from chipwise.decide.advice import Cost, Latency, Option, PrecisionChoice, Scale, Sizing
from chipwise.decide.effects import communication_effects, spent, term_seconds
from chipwise.decide.infrastructure import Site, discouraged, feature_checks
from chipwise.decide.money import caveats_of, offered_here, purchase_lines
from chipwise.decide.serving.answers import question_of, serving_object
from chipwise.decide.serving.ceiling import seats
from chipwise.decide.serving.hazards import Watched, hazards_of
from chipwise.decide.serving.holding import hold, memory_object
from chipwise.decide.serving.reasons import reasons_of, risks_of
from chipwise.decide.serving.seats import at_precision
from chipwise.decide.serving.sharing import sharing_object
from chipwise.guide import grade, scale_signal
from chipwise.guide.tables import limit
from chipwise.perf.serving import explain_serving
from chipwise.perf.spread import tpot_spread, ttft_spread
from chipwise.units import Percentiles, finite

if TYPE_CHECKING:
    from chipwise.decide.advice import FeatureCheck
    from chipwise.decide.question import Question
    from chipwise.decide.serving.deployment import ServingDeployment
    from chipwise.memory import MemoryAnswer
    from chipwise.perf.spread import Spread


def serving_option(question: Question, deployment: ServingDeployment, rank: int, ties: tuple[int, ...]) -> Option:
    """The full option of a picked deployment."""
    demand, layout = question.serving, deployment.layout
    model = at_precision(question.model, deployment.evaluated.option)
    room = _held_at_context(hold(model, layout, context_tokens=demand.context_tokens, concurrency=1.0).answer)
    resident = _resident(question, deployment, room)
    held = hold(model, layout, context_tokens=demand.context_tokens, concurrency=resident)
    asked = question_of(model, layout, held, demand, float(deployment.replicas))
    prediction, _ = explained = explain_serving(asked)
    serving = serving_object(layout, asked, demand, explained)
    with np.errstate(invalid="ignore"):  # a saturated load waits for ever: infinite less infinite
        spread = ttft_spread(prediction), tpot_spread(prediction, steps=demand.osl_tokens - 1.0)
    memory = memory_object(model, layout, held)
    checks = _checks(question, deployment, serving)
    risks = (
        *risks_of(question, deployment, serving, spread, int(held.answer.max_concurrency_at_context)),
        *hazards_of(Watched(demand=demand, asked=asked, prediction=prediction, held=held, ep=int(layout.split.ep))),
    )
    return Option(
        rank=rank,
        tied_with=ties,
        instance=deployment.instance.name,
        instances=deployment.instances,
        chip=layout.seat.platform.chip.id,
        chips=deployment.chips,
        chips_used=deployment.chips_used,
        replicas=deployment.replicas,
        devices_per_replica=layout.devices,
        parallelism=deployment.parallelism,
        precision=_precision(deployment),
        engine=layout.seat.engine.name,
        settings=_settings(question, deployment, seats(question, deployment, asked, held_at_context=room)),
        memory=memory,
        performance=_performance(deployment, serving, memory),
        latency=latency_of(spread),
        rating_throughput=grade("throughput_per_gpu", "mean", serving["output_tokens_per_s_per_chip"].mid),
        rating_mfu=None,
        run=None,
        sizing=_sizing(question, deployment),
        cost=_cost(question, deployment, serving),
        infrastructure=tuple(checks),
        pools=None,
        sharing=sharing_object(question, deployment),
        scale=_scale(question, deployment),
        regions=offered_here(question, deployment),
        reasons=tuple(reasons_of(question, deployment, serving, spread)),
        risks=risks,
        discouraged_by=tuple(discouraged(checks, _communication_share(serving))),
        evidence=deployment.evidence,
    )


def _held_at_context(one: MemoryAnswer) -> float:
    """Requests of the full context that the pool of one replica holds, less what works beside the engine's share.

    Args:
        one: the pool sized for one request.
    """
    more = float(one.budget.free_bytes) / max(float(one.budget.cache_bytes), 1.0)
    return min(float(one.max_concurrency_at_context), 1.0 + more)


def _resident(question: Question, deployment: ServingDeployment, room: float) -> float:
    """Requests in flight on one replica whose cache is held at its full length at once; the rest queue.

    A closed loop states how many there are; under a rate they follow from it; offline work takes every seat.
    """
    fits = max(1.0, math.floor(room))
    stated = question.serving.users / deployment.replicas
    running = {"closed": math.ceil(stated), "offline": fits}.get(question.serving.kind, deployment.value("running"))
    return max(1.0, min(math.ceil(running), fits, deployment.layout.seat.limits.max_num_seqs))


def _performance(deployment: ServingDeployment, serving: dict[str, Any], memory: dict[str, Any]) -> dict[str, Any]:
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


def _checks(question: Question, deployment: ServingDeployment, serving: dict[str, Any]) -> list[FeatureCheck]:
    """The checklist, with what links and networks do in seconds of a token."""
    layout, site = deployment.layout, _site(deployment)
    seconds, wires = term_seconds(serving["terms"], "decode_s")
    inside = {
        "all-reduce",
        *(["all-to-all"] if layout.split.tp * layout.split.dp <= layout.seat.platform.devices else []),
    }
    token = spent(seconds, unit="a token", communication=wires, inside=inside, nodes=site.nodes)
    return feature_checks(
        site,
        params=float(question.model.params_total),
        training=False,
        pretrain=False,
        effects=communication_effects(token, nodes=site.nodes, large_from=int(limit("ultracluster_nodes"))),
    )


def _site(deployment: ServingDeployment) -> Site:
    return Site(
        instance=deployment.instance,
        chip=deployment.layout.seat.platform.chip,
        nodes=deployment.evaluated.packings[deployment.row].instances_per_unit,
        chips=deployment.layout.seat.platform.chips_of(deployment.layout.devices),
    )


def _precision(deployment: ServingDeployment) -> PrecisionChoice:
    option, seat = deployment.evaluated.option, deployment.layout.seat
    loss = f"{option.quality_loss} ({option.verdict})" if option.quality_loss else None
    return PrecisionChoice(
        weights=option.format,
        kv=_cache_format(seat.limits.kv_format, seat.capability.compute_format),
        compute=seat.capability.compute_format or option.format,
        quality={"loss": loss, "condition": option.condition, "source": option.source},
    )


def _cache_format(kv: str, compute: str | None) -> str:
    """A chip that multiplies 16-bit weights in fp16 keeps a 16-bit cache in fp16."""
    return "fp16" if (kv, compute) == ("bf16", "fp16") else kv


def _settings(question: Question, deployment: ServingDeployment, most_sequences: int) -> dict[str, Any]:
    seat = deployment.layout.seat
    return {
        "max_num_seqs": most_sequences,
        "max_model_len": round(question.serving.context_tokens),
        "gpu_memory_utilization": seat.limits.utilization,
        "max_num_batched_tokens": seat.limits.chunk_tokens,
        "engine_version": seat.engine.version,
        "kv_cache_dtype": seat.limits.kv_format,
    }


def latency_of(spread: tuple[Spread, Spread]) -> Latency:
    """Percentiles of TTFT and TPOT with the guide's grades."""
    ttft, tpot = spread
    return Latency(
        ttft_s=_percentiles(ttft),
        tpot_s=_percentiles(tpot),
        rating_ttft=grade("ttft", "p99", finite(ttft.p99)),
        rating_tpot=grade("tpot", "mean", finite(tpot.mean)),
        method="analytic",
    )


def _percentiles(spread: Spread) -> Percentiles:
    names = ("mean", "p50", "p90", "p95", "p99")
    return Percentiles(**{name: finite(getattr(spread, name)) for name in names})


def _sizing(question: Question, deployment: ServingDeployment) -> Sizing:
    """Final = max(by memory, by throughput) x headroom, as the guide sizes.

    By memory: replicas that hold the weights and the cache of what runs at once, at its mean length. By throughput:
    what the bars and the load need.
    """
    packing = deployment.evaluated.packings[deployment.row]
    base = deployment.base_units * packing.replicas_per_unit
    running = deployment.value("running") * base
    replicas = max(1, math.ceil(running / max(deployment.value("sequence_limit"), 1.0) - 1e-9))
    by_memory = -(-replicas // packing.replicas_per_unit) * packing.instances_per_unit
    by_throughput = deployment.base_units * packing.instances_per_unit
    return Sizing(
        chips_by_memory=deployment.layout.seat.platform.chips_of(replicas * deployment.layout.devices),
        instances_by_memory=by_memory,
        instances_by_throughput=by_throughput,
        ha_factor=question.policy.ha_factor,
        binding="memory" if by_memory >= by_throughput else "latency",
    )


def _cost(question: Question, deployment: ServingDeployment, serving: dict[str, Any]) -> Cost:
    hourly, found = deployment.usd_per_hour, deployment.quote
    capacity = serving["saturation_rate"].scaled(question.serving.osl_tokens)
    return Cost(
        usd_per_hour=hourly,
        usd_per_million_output_tokens=usd_per_million_tokens(hourly, serving["output_tokens_per_s"]),
        usd_per_million_at_capacity=usd_per_million_tokens(hourly, capacity),
        usd_per_unit=None,
        usd_per_run=None,
        price_as_of=found.as_of if found else None,
        price_kind=found.kind if found else None,
        purchase=purchase_lines(question, deployment),
        caveats=caveats_of(found),
    )


def _scale(question: Question, deployment: ServingDeployment) -> Scale:
    """Start with what was sized; the signal is the guide's capacity row for the model, with the question's own bar."""
    bar = question.serving.ttft_p99_s
    row = scale_signal(kind="inference", params=float(question.model.params_total))
    threshold = f"P99 TTFT above {bar * 1e3:.0f} ms" if bar else "waiting requests above 0 for a minute"
    packing = deployment.evaluated.packings[deployment.row]
    copies = "1 replica" if packing.replicas_per_unit == 1 else f"{packing.replicas_per_unit} replicas"
    more = f"{packing.instances_per_unit} x {deployment.instance.name} ({copies})"
    guide = f"; the guide: {row.signal} ({row.source})" if row else ""
    return Scale(
        start_with=f"{deployment.instances} x {deployment.instance.name}",
        signal=f"P99 TTFT, waiting requests and KV-cache use of the engine{guide}",
        threshold=threshold,
        next=f"add {more}" if deployment.share == 1.0 or deployment.profile is None else _free_slices(deployment, more),
    )


def _free_slices(deployment: ServingDeployment, more: str) -> str:
    free = deployment.instances * deployment.layout.seat.platform.devices - deployment.replicas
    return f"add replicas on the {free} slices that are left, then {more}"


def _communication_share(serving: dict[str, Any]) -> float:
    total = sum(term["decode_s"] or 0.0 for term in serving["terms"])
    wire = sum(term["decode_s"] or 0.0 for term in serving["terms"] if term["bound_by"] == "communication")
    return wire / total if total else 0.0
