"""Prefill and decode on two pools, alike or not: prompts queue for one, answers run on the other.

The prefill pool is an M/D/1 queue of whole prompts a replica; the cache of a prompt then crosses the
network; the decode pool sees requests whose prompts are cached.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from chipwise.parallelism import Number
from chipwise.perf.compositions import SATURATION, arrival_s
from chipwise.perf.load import ServingInput, ServingPrediction, prepare
from chipwise.perf.serving import predict_serving
from chipwise.perf.steady import prefill_alone_s
from chipwise.perf.work import cache_bytes_per_sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """Two candidates under the same load of kind `rate`, and what joins them."""

    prefill: ServingInput
    decode: ServingInput
    transfer_bytes_per_s: Number
    """From one prefill replica to one decode replica."""


def predict_disaggregated(pools: Pools) -> ServingPrediction:
    """Latency and throughput of two pools at `rate_per_s`; the decode pool gives TPOT, both give TTFT.

    `ttft = arrival + prompt + rho * prompt / (2 * (1 - rho)) + cache bytes / transfer rate + one decode
    step`, `rho` the share of time a prefill replica is busy. The pool that saturates first gives the
    saturation rate.

    Raises:
        InputError: as `predict_serving`.

    Source: Zhong et al., "DistServe", 2024, section 3.1 (M/D/1 of the prefill instance).
    """
    case = prepare(pools.prefill)
    cached = replace(pools.decode.load, prefix_hit_fraction=1.0)
    answer = predict_serving(replace(pools.decode, load=cached))
    prompt_s = prefill_alone_s(case.machine, case.lengths, case.limits)
    prompts_per_s = case.replicas / prompt_s
    rho = np.minimum(case.load.rate_per_s / prompts_per_s, SATURATION)
    size = cache_bytes_per_sequence(
        case.machine.work, context=case.lengths.isl, element_bytes=case.machine.kv_element_bytes
    )
    wait_s = rho * prompt_s / (2.0 * (1.0 - rho))
    ttft_s = arrival_s(case) + prompt_s + wait_s + size / pools.transfer_bytes_per_s + answer.plain_step_s
    most = np.minimum(answer.saturation_rate_per_s, prompts_per_s)
    saturated = np.where(case.load.rate_per_s > most * SATURATION, 1.0, 0.0)
    ttft_s = np.where(saturated > 0, np.inf, ttft_s)
    share = np.minimum(1.0, most / np.maximum(case.load.rate_per_s, most))
    return replace(
        answer,
        ttft_s=ttft_s,
        wait_s=np.where(saturated > 0, np.inf, wait_s),
        e2e_s=ttft_s + answer.tpot_s * (case.lengths.osl - 1.0),
        requests_per_s=case.load.rate_per_s * share,
        output_tokens_per_s=case.load.rate_per_s * share * case.lengths.osl,
        total_tokens_per_s=case.load.rate_per_s * share * (case.lengths.osl + case.lengths.isl),
        saturated=saturated,
        saturation_rate_per_s=most,
        prefill_utilisation=rho,
        own_prefill_s=prompt_s,
    )
