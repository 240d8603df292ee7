"""Two pools in full: the `serving` object of both together, and what stands in `pools`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from chipwise.decide.serving.holding import hold, memory_object
from chipwise.perf.costs import BOUNDS
from chipwise.perf.ranges import range_of
from chipwise.perf.serving import bound_by, predict_serving, serving_terms
from chipwise.units import finite

if TYPE_CHECKING:
    from chipwise.decide.pools.deployment import Pool, PooledDeployment
    from chipwise.decide.question import Question
    from chipwise.model import ModelSpec
    from chipwise.perf.load import ServingInput
    from chipwise.perf.ranges import Metric
    from chipwise.units import Range


def serving_object(deployment: PooledDeployment) -> dict[str, Any]:
    """CONTRACT's `serving` object: TTFT of both pools, TPOT and throughput of the decode pool.

    The terms of TTFT are those of the prefill pool, the crossing and what is left as waiting; they add up to it.
    """
    found, chips = deployment.prediction, sum(pool.chips_used for pool in deployment.pools)
    throughput = _ranged(deployment, found.output_tokens_per_s, "throughput")
    answers = _cached(deployment.decode)
    alone_s = float(found.own_prefill_s) + deployment.crossing.seconds + float(found.isolated_tpot_s)
    return {
        "ttft_s": _ranged(deployment, found.ttft_s, "ttft"),
        "tpot_s": _ranged(deployment, found.tpot_s, "tpot"),
        "e2e_s": _ranged(deployment, found.e2e_s, "tpot"),
        "isolated": {
            "ttft_s": _ranged(deployment, alone_s, "ttft"),
            "tpot_s": _ranged(deployment, found.isolated_tpot_s, "tpot"),
        },
        "output_tokens_per_s": throughput,
        "output_tokens_per_s_per_chip": throughput.scaled(1.0 / chips),
        "total_tokens_per_s": _ranged(deployment, found.total_tokens_per_s, "throughput"),
        "batch": _ranged(deployment, found.running, "throughput"),
        "saturated": bool(found.saturated),
        "saturation_rate": _ranged(deployment, found.saturation_rate_per_s, "throughput"),
        "bound_by": bound_by(answers, predict_serving(answers), serving_terms(answers))[0],
        "terms": [_term(one) for one in _terms(deployment)],
    }


def _ranged(deployment: PooledDeployment, mid: Any, metric: Metric) -> Range:
    return range_of(float(mid), evidence=deployment.evidence, metric=metric, load="rate")


def _cached(pool: Pool) -> ServingInput:
    return replace(pool.asked, load=replace(pool.asked.load, prefix_hit_fraction=1.0))


def _terms(deployment: PooledDeployment) -> list[tuple[str, float, float, str]]:
    """Operation, its part of TTFT, its part of TPOT, what binds it."""
    alone = replace(deployment.prefill.asked, load=replace(deployment.prefill.asked.load, kind="single"))
    prompts = {one.operation: one for one in serving_terms(alone)}
    answers = {one.operation: one for one in serving_terms(_cached(deployment.decode))}
    found = [
        (
            name,
            _number(prompts[name].prefill_s) if name in prompts else 0.0,
            _number(answers[name].decode_s) if name in answers else 0.0,
            BOUNDS[int(np.ravel((answers.get(name) or prompts[name]).bound)[0])],
        )
        for name in dict.fromkeys([*prompts, *answers])
        if name != "waiting"
    ]
    found.append(("cache crossing", deployment.crossing.seconds, 0.0, "communication"))
    rest_s = float(deployment.prediction.ttft_s) - sum(prefill_s for _, prefill_s, _, _ in found)
    return [*found, ("waiting", rest_s, 0.0, "overhead")]


def _number(value: Any) -> float:
    return float(np.ravel(value)[0])


def _term(one: tuple[str, float, float, str]) -> dict[str, Any]:
    name, prefill_s, decode_s, bound = one
    return {"op": name, "prefill_s": finite(prefill_s), "decode_s": finite(decode_s), "bound_by": bound}


def pool_object(question: Question, deployment: PooledDeployment, pool: Pool, model: ModelSpec) -> dict[str, Any]:
    """One entry of `pools`; `instances` is 0 for a role that lives in the other's instances."""
    seat, crossing = pool.layout.seat, deployment.crossing
    prefills = pool.role == "prefill"
    in_flight = _busy(deployment) if prefills else float(deployment.prediction.running)
    held = hold(model, pool.layout, context_tokens=question.serving.context_tokens, concurrency=max(1.0, in_flight))
    return {
        "role": pool.role,
        "instance": pool.instance.name,
        "instances": pool.instances,
        "chip": seat.platform.chip.id,
        "chips": pool.instances * (pool.instance.chips or 1),
        "chips_used": pool.chips_used,
        "replicas": pool.replicas,
        "devices_per_replica": pool.layout.devices,
        "parallelism": pool.parallelism,
        "engine": seat.engine.name,
        "settings": {
            "max_num_seqs": seat.limits.max_num_seqs,
            "max_model_len": round(question.serving.context_tokens),
            "gpu_memory_utilization": seat.limits.utilization,
            "max_num_batched_tokens": seat.limits.chunk_tokens,
            "engine_version": seat.engine.version,
            "kv_cache_dtype": seat.limits.kv_format,
        },
        "memory": memory_object(model, pool.layout, held),
        "busy_fraction": _busy(deployment) if prefills else None,
        "in_flight_per_replica": in_flight,
        "kv_transfer": {
            "bytes_per_request": round(crossing.bytes_per_request),
            "seconds": crossing.seconds,
            "over": crossing.over,
            "use_fraction": crossing.use_fraction,
        },
        "usd_per_hour": pool.usd_per_hour if pool.instances else None,
    }


def _busy(deployment: PooledDeployment) -> float:
    return float(deployment.prediction.prefill_utilisation)
