"""What is asked of the serving model and what it answers; `prepare` turns a question into a `Case`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from chipwise.errors import InputError
from chipwise.parallelism import LayerShards, Number, anywhere
from chipwise.perf.hardware import Hardware
from chipwise.perf.machine import Machine, machine_of
from chipwise.perf.parameters import Parameters
from chipwise.perf.rates import Site
from chipwise.perf.steady import Lengths, Limits, Speculation, Steady, acceptance_length, lengths_of, sequence_limit
from chipwise.perf.work import Work, work_of

PLAIN = Speculation()
"""A token a step."""
LoadKind = Literal["single", "static", "closed", "rate", "offline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingLoad:
    """What the deployment is asked. Numbers broadcast; `concurrency`, `rate_per_s`, `batch` are totals.

    `kind`: `single` (one request alone), `static` (`batch` requests start together), `closed`
    (`concurrency` clients that each send the next request when the last is answered), `rate` (`rate_per_s`
    arrivals, Poisson), `offline` (all queued).
    """

    kind: LoadKind
    isl: Number
    osl: Number
    concurrency: Number = 1.0
    rate_per_s: Number = 0.0
    batch: Number = 1.0
    requests: Number = np.inf
    """Requests of the whole run where known: fewer than the batch limit cap an offline batch, and a run ends slowly."""
    osl_cv: Number = 0.0
    """Standard deviation of the answers' lengths over their mean."""
    osl_most: Number = np.inf
    """The longest answer that is allowed."""
    prefix_hit_fraction: Number = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seating:
    """What an engine lets in: see `ServingInput`."""

    kv_pool_bytes: Number
    max_num_seqs: Number
    chunk_tokens: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingInput:
    """A laid-out model, a device, an engine's limits and a load: one candidate or arrays that broadcast."""

    shards: LayerShards | Work
    hardware: Hardware
    parameters: Parameters
    weight_bytes: Mapping[str, Number]
    """Bytes a parameter takes by weight format of the model, scales counted."""
    kv_element_bytes: Number
    kv_pool_bytes: Number
    """Per device: what the engine takes for the cache."""
    max_num_seqs: Number
    """Per data-parallel rank of a replica."""
    chunk_tokens: Number
    """Prefill tokens that one step carries at most, per rank."""
    load: ServingLoad
    replicas: Number = 1.0
    eager: Number = 0.0
    compiled_sequences: Number = 0.0
    """Per data-parallel rank: the batch of a compiled decode graph, computed however few run; 0: what runs."""
    compiled_tokens: Number = 0.0
    """The one length that a compiled engine's graphs compute; 0: they come in buckets, or nothing is compiled."""
    host_sampling: Number = 0.0
    """1: tokens are sampled on the host, as Neuron engines do without on-device sampling; 0: on the device."""
    draft_tokens: Number = 0.0
    acceptance: Number = 0.0
    draft_s: Number = 0.0
    """Seconds that drafting adds to a step."""
    machine: Machine | None = None
    """`with_machine` sets it where many loads are asked of one site; a change of anything but the load unsets it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPrediction:
    """Medians (no range yet) in base units; `running` is per replica, throughput of all replicas.

    `ttft_s`, `tpot_s` are means under the load; `wait_s` is the part of `ttft_s` that is waiting: `queue_s` for the
    prompts ahead, `burst_s` for those that a run starts with (a share `burst_share` of the requests waits in that
    burst), the rest for a step and a seat. Where `saturated`, TTFT grows with the length of the run and is infinite.
    """

    ttft_s: Number
    tpot_s: Number
    e2e_s: Number
    isolated_ttft_s: Number
    isolated_tpot_s: Number
    requests_per_s: Number
    output_tokens_per_s: Number
    total_tokens_per_s: Number
    running: Number
    sequence_limit: Number
    saturated: Number
    saturation_rate_per_s: Number
    wait_s: Number
    queue_s: Number
    burst_s: Number
    burst_share: Number
    plain_step_s: Number
    prefill_delta_s: Number
    prefill_share: Number
    prefill_utilisation: Number
    own_prefill_s: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A `ServingInput` prepared: what every composition needs."""

    machine: Machine
    lengths: Lengths
    limits: Limits
    speculation: Speculation
    replicas: Number
    load: ServingLoad


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """Requests that nothing else holds up."""

    ttft_s: Number
    tpot_s: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a composition finds for one replica."""

    ttft_s: Number
    wait_s: Number
    tpot_s: Number
    running: Number
    requests_per_s: Number
    steady: Steady
    isolated: Alone
    """One request alone, whatever the load."""
    apart: Steady | None = None
    """What a prompt that comes apart finds, where `steady` is one in which prompts come together."""
    best: Steady | None = None
    """`highest(case)`, where the composition needed it."""
    queue_s: Number = 0.0
    burst_s: Number = 0.0
    burst_share: Number = 1.0
    saturated: Number = 0.0


def site_of(asked: ServingInput) -> Site:
    """The part of a question that no load changes."""
    work = asked.shards if isinstance(asked.shards, Work) else work_of(asked.shards)
    return Site(
        work=work,
        hardware=asked.hardware,
        parameters=asked.parameters,
        weight_bytes=asked.weight_bytes,
        kv_element_bytes=asked.kv_element_bytes,
        eager=asked.eager,
        compiled_sequences=asked.compiled_sequences * work.dp,
        host_sampling=asked.host_sampling,
    )


def with_machine(asked: ServingInput) -> ServingInput:
    """The question with all of its answer that no load changes: asked of several loads, that is worked out once."""
    return replace(asked, machine=machine_of(site_of(asked)))


def prepare(asked: ServingInput) -> Case:
    """Gather the work and find the limits.

    Raises:
        InputError: lengths below one token, or a prefix-hit fraction outside 0 to 1.
    """
    seating = Seating(
        kv_pool_bytes=asked.kv_pool_bytes, max_num_seqs=asked.max_num_seqs, chunk_tokens=asked.chunk_tokens
    )
    accepted = acceptance_length(draft_tokens=asked.draft_tokens, acceptance=asked.acceptance)
    return case_of(
        asked.machine or machine_of(site_of(asked)),
        seating,
        asked.load,
        replicas=asked.replicas,
        compiled_tokens=asked.compiled_tokens,
        speculation=Speculation(draft_tokens=asked.draft_tokens, accepted=accepted, draft_s=asked.draft_s),
    )


def case_of(
    machine: Machine,
    seating: Seating,
    load: ServingLoad,
    *,
    replicas: Number = 1.0,
    compiled_tokens: Number = 0.0,
    speculation: Speculation = PLAIN,
) -> Case:
    """A load on a machine, within what the engine is set to.

    Raises:
        InputError: lengths below one token, or a prefix-hit fraction outside 0 to 1.
    """
    _checked(load)
    lengths = lengths_of(
        isl=load.isl,
        osl=load.osl,
        cached=load.isl * load.prefix_hit_fraction,
        exact=machine.parameters.exact_fraction,
        compiled=compiled_tokens,
    )
    most = sequence_limit(machine, lengths, kv_pool_bytes=seating.kv_pool_bytes, max_num_seqs=seating.max_num_seqs)
    return Case(
        machine=machine,
        lengths=lengths,
        limits=Limits(sequences=most, chunk_tokens=np.maximum(seating.chunk_tokens, 1.0)),
        speculation=speculation,
        replicas=replicas,
        load=load,
    )


def _checked(load: ServingLoad) -> None:
    if anywhere(load.isl < 1) or anywhere(load.osl < 1):
        raise InputError(
            "isl and osl must be at least one token",
            why="a request has a prompt and an answer",
            fix="give the mean lengths in tokens: --isl 1024 --osl 256",
        )
    hit = load.prefix_hit_fraction
    if anywhere(hit < 0) or anywhere(hit > 1):
        raise InputError(
            "the prefix-hit fraction must lie between 0 and 1",
            why="it is the share of prompt tokens found in the cache",
            fix="--prefix-hit 0.5",
        )
