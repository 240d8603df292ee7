"""Prefill and decode on two pools, alike or not: prompts queue for one, answers run on the other.

The prefill pool is an M/D/1 queue of whole prompts a replica; the cache of a prompt then crosses to the
decode pool, over the link of one node or over the network between two; the decode pool sees requests whose
prompts are cached. `predict_disaggregated` is both pools under one load; a search predicts each pool once
and joins many.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from chipwise.parallelism import Number
from chipwise.perf.collectives import send_s
from chipwise.perf.costs import cache_bytes_per_sequence
from chipwise.perf.load import Case, ServingInput, ServingPrediction, prepare
from chipwise.perf.phases import SATURATION, arrival_s, highest
from chipwise.perf.serving import predict_case
from chipwise.perf.steady import prefill_alone_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Wires:
    """Seconds in which one replica sends or takes the cache of one prompt; `use` the share of time it does."""

    link_s: Number
    network_s: Number
    replica_rate_per_s: Number

    def seconds(self, across: Number) -> Number:
        """Over the network where `across` is 1, over the link of the node where it is 0."""
        found: Number = np.where(np.asarray(across) > 0, self.network_s, self.link_s)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillPool:
    """Prompts at a rate: `ttft_s` ends when the prompt is done, `busy_fraction` of the time a replica works."""

    ttft_s: Number
    wait_s: Number
    prompt_s: Number
    busy_fraction: Number
    prompts_per_s: Number
    wires: Wires


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodePool:
    """Answers to cached prompts at a rate."""

    answer: ServingPrediction
    rate_per_s: Number
    isl: Number
    osl: Number
    wires: Wires


@dataclass(frozen=True, slots=True, kw_only=True)
class Disaggregated:
    """What two pools do together, and what passes between them."""

    prediction: ServingPrediction
    crossing_s: Number
    """Seconds in which the cache of one prompt reaches the decode pool."""
    crossing_use: Number
    """Share of time that the busier side's wires carry caches; at most 1 where the load can be moved at all."""


def predict_disaggregated(*, prefill: ServingInput, decode: ServingInput, across: Number) -> Disaggregated:
    """Latency and throughput of two pools under one load of kind `rate`.

    Against 264 published runs of two models on five chips, at the rate that their clients reach by Little's law, TPOT
    was 9 % too long in the median, and within a factor of 1.16 in every second run, 1.38 in eight of ten. TTFT of runs
    that start with all clients at once is several times that of this steady state.

    Args:
        prefill: the pool that takes prompts.
        decode: the pool that answers; the same lengths and rate.
        across: 1 where the network joins the pools, 0 where the link of one node does.

    Raises:
        InputError: as `predict_serving`.

    Source: Zhong et al., "DistServe", 2024, section 3.1. Runs: ai-dynamo/aiconfigurator@095f58a51c4c,
    silicon_sample.csv, disaggregated rows that state their workers.
    """
    return joined(prefill_pool(prefill), decode_pool(decode), across)


def prefill_pool(asked: ServingInput) -> PrefillPool:
    """`ttft = arrival + prompt + rho * prompt / (2 * (1 - rho))`, `rho` the share of time a replica is busy."""
    case = prepare(asked)
    prompt_s = prefill_alone_s(case.machine, case.lengths, case.limits)
    prompts_per_s = case.replicas / prompt_s
    rho = np.minimum(case.load.rate_per_s / prompts_per_s, SATURATION)
    wait_s = rho * prompt_s / (2.0 * (1.0 - rho))
    return PrefillPool(
        ttft_s=arrival_s(case) + prompt_s + wait_s,
        wait_s=wait_s,
        prompt_s=prompt_s,
        busy_fraction=rho,
        prompts_per_s=prompts_per_s,
        wires=_wires(asked, case),
    )


def decode_pool(asked: ServingInput) -> DecodePool:
    """The serving model with every prompt in the cache."""
    load = replace(asked.load, prefix_hit_fraction=1.0)
    case = prepare(replace(asked, load=load))
    return DecodePool(
        answer=predict_case(case),
        rate_per_s=load.rate_per_s,
        isl=load.isl,
        osl=load.osl,
        wires=_wires(asked, case),
    )


def answers_per_s(asked: ServingInput) -> Number:
    """Answers a second of one replica of a decode pool with every seat taken: its saturation rate over its replicas.

    Raises:
        InputError: as `predict_serving`.
    """
    return highest(prepare(replace(asked, load=replace(asked.load, prefix_hit_fraction=1.0)))).requests_per_s


def joined(prefill: PrefillPool, decode: DecodePool, across: Number) -> Disaggregated:
    """`ttft = prefill's + crossing + one decode step`; the pool that saturates first gives the saturation rate.

    A cache takes as long as the slower side.
    """
    sent_s, taken_s = prefill.wires.seconds(across), decode.wires.seconds(across)
    crossing_s = np.maximum(sent_s, taken_s)
    use = np.maximum(sent_s * prefill.wires.replica_rate_per_s, taken_s * decode.wires.replica_rate_per_s)
    answer, rate_per_s = decode.answer, decode.rate_per_s
    most = np.minimum(answer.saturation_rate_per_s, prefill.prompts_per_s)
    saturated = np.where(rate_per_s > most * SATURATION, 1.0, 0.0)
    ttft_s = np.where(saturated > 0, np.inf, prefill.ttft_s + crossing_s + answer.plain_step_s)
    answered_per_s = np.minimum(rate_per_s, most)
    prediction = replace(
        answer,
        ttft_s=ttft_s,
        wait_s=np.where(saturated > 0, np.inf, prefill.wait_s),
        queue_s=prefill.wait_s,
        burst_s=0.0 * prefill.wait_s,
        e2e_s=ttft_s + answer.tpot_s * (decode.osl - 1.0),
        requests_per_s=answered_per_s,
        output_tokens_per_s=answered_per_s * decode.osl,
        total_tokens_per_s=answered_per_s * (decode.osl + decode.isl),
        saturated=saturated,
        saturation_rate_per_s=most,
        prefill_utilisation=prefill.busy_fraction,
        own_prefill_s=prefill.prompt_s,
    )
    return Disaggregated(prediction=prediction, crossing_s=crossing_s, crossing_use=use)


def _wires(asked: ServingInput, case: Case) -> Wires:
    """Every device of a replica moves its part at once; between nodes all devices of a node share its network.

    Nothing is counted as hidden behind the prefill of later layers.
    """
    machine, hardware, parameters = case.machine, asked.hardware, asked.parameters
    size = cache_bytes_per_sequence(
        machine.costs.layers, cp=machine.cp, context=case.lengths.isl, element_bytes=machine.kv_element_bytes
    )
    return Wires(
        link_s=send_s(size_bytes=size, across=0.0, hardware=hardware, parameters=parameters),
        network_s=send_s(size_bytes=size * hardware.node_devices, across=1.0, hardware=hardware, parameters=parameters),
        replica_rate_per_s=case.load.rate_per_s / case.replicas,
    )
