"""Continuous batching in its steady state: sequences that decode, step time, prompt work.

Every formula describes one replica and takes a `Machine`, a `Lengths` and limits, all of which broadcast.

A running sequence needs `osl - 1` decode steps. In the same time the scheduler must prefill as many prompts
as finish, so a step carries `b * isl / osl` prompt tokens on average, in chunks of `c` tokens: a share `f`
of the steps carries a chunk and is longer by `delta`. `tpot = t0 + f * delta` (prefill/decode
interference).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from chipwise.parallelism import Number, anywhere
from chipwise.perf.costs import cache_bytes_per_sequence
from chipwise.perf.machine import Machine
from chipwise.perf.steps import StepLoad, each_s, step_s

ROUNDS = 3
"""Fixed-point rounds of a closed loop; the share of time in prefill is stable to a per cent after three."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Mean lengths of a request. `cached` prompt tokens need no prefill."""

    isl: Number
    osl: Number
    cached: Number
    fresh: Number
    """Prompt tokens to prefill: at least one."""
    decode_context: Number
    """Mean tokens a decoding sequence looks back at: the prompt and half of the output."""


def lengths_of(
    *, isl: Number, osl: Number, cached: Number = 0.0, exact: Number = 1.0, compiled: Number = 0.0
) -> Lengths:
    """Lengths as they are computed.

    Compiled graphs have a fixed size: with `exact` 0 a length is computed as the next power of two, and as `compiled`
    tokens where there is one graph for all lengths.

    >>> found = lengths_of(isl=1500.0, osl=200.0, exact=0.0)
    >>> float(found.fresh), float(found.decode_context)
    (2048.0, 2048.0)
    """

    def computed(tokens: Number) -> Number:
        if not anywhere(exact <= 0.5):
            return tokens
        return np.where(exact > 0.5, tokens, np.maximum(bucket(tokens), compiled))

    return Lengths(
        isl=isl,
        osl=osl,
        cached=cached,
        fresh=computed(np.maximum(isl - cached, 1.0)),
        decode_context=computed(isl + osl / 2.0),
    )


def bucket(tokens: Number) -> Number:
    """The graph that a length runs in: the next power of two.

    >>> float(bucket(1500.0)), float(bucket(2048.0))
    (2048.0, 2048.0)
    """
    return 2.0 ** np.ceil(np.log2(tokens))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the scheduler allows a replica: sequences that run together, prefill tokens in a step."""

    sequences: Number
    chunk_tokens: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """Draft tokens a step and the mean number accepted; each step yields `1 + accepted` tokens."""

    draft_tokens: Number = 0.0
    accepted: Number = 0.0
    draft_s: Number = 0.0

    @property
    def tokens_per_step(self) -> Number:
        """Tokens that a sequence gains each step."""
        return 1.0 + self.accepted


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """A replica in its steady state."""

    running: Number
    """Sequences that decode."""
    tpot_s: Number
    plain_step_s: Number
    """A step without prefill tokens."""
    prefill_delta_s: Number
    """What a chunk of prefill adds to a step."""
    prefill_share: Number
    """Share of steps that carry a chunk."""
    chunk_tokens: Number
    requests_per_s: Number
    prompt_work_s: Number
    """Seconds that the prefill of one request takes from everyone."""


def sequence_limit(machine: Machine, lengths: Lengths, *, kv_pool_bytes: Number, max_num_seqs: Number) -> Number:
    """Sequences of a replica that fit the cache and the scheduler; at least one per data-parallel rank.

    A sequence holds its prompt, half of its output on average, and `reserve_fraction` of the other half
    kept free.
    """
    held = lengths.isl + lengths.osl * (0.5 + 0.5 * machine.parameters.reserve_fraction)
    each = cache_bytes_per_sequence(
        machine.costs.layers, cp=machine.cp, context=held, element_bytes=machine.kv_element_bytes
    )
    fits = np.floor(kv_pool_bytes / np.maximum(each, 1.0))
    return np.maximum(np.minimum(fits, max_num_seqs), 1.0) * machine.dp


def acceptance_length(*, draft_tokens: Number, acceptance: Number) -> Number:
    """Mean accepted tokens of `draft_tokens` proposed.

    Each is accepted with probability `acceptance` if all before it were: `(1 - a ** (k + 1)) / (1 - a) - 1`.

    Source: Leviathan, Kalman, Matias, "Fast Inference from Transformers via Speculative Decoding", 2023,
    eq. 1.

    >>> round(float(acceptance_length(draft_tokens=3.0, acceptance=0.5)), 3)
    0.875
    """
    a: Number = np.minimum(np.asarray(acceptance, dtype=float), 0.9999)
    return (1.0 - a ** (draft_tokens + 1.0)) / (1.0 - a) - 1.0


def prompt_chunks(lengths: Lengths, limits: Limits) -> tuple[Number, Number]:
    """How many steps the prompt of one request takes, and the tokens each of them carries."""
    fresh = lengths.fresh
    steps = np.ceil(fresh / limits.chunk_tokens)
    return steps, fresh / steps


def prefill_alone_s(machine: Machine, lengths: Lengths, limits: Limits, *, requests: Number = 1.0) -> Number:
    """Prefill of `requests` prompts that come together to an idle replica."""
    load, passages = prefill_alone_load(machine, lengths, limits, requests=requests)
    return passages * step_s(machine, load)


def prefill_alone_load(
    machine: Machine, lengths: Lengths, limits: Limits, *, requests: Number = 1.0
) -> tuple[StepLoad, Number]:
    """The step that stands for all of `prefill_alone_s`, and how many full passages of the pipeline they take.

    The prompts fill steps of `chunk_tokens`; all steps are alike but for what lies behind the chunk: one at the mean
    past stands for all.
    """
    fresh = lengths.fresh
    total = fresh * requests
    ranks = np.minimum(machine.dp, requests)
    steps = np.ceil(total / (limits.chunk_tokens * ranks))
    own_steps = np.ceil(fresh / limits.chunk_tokens)
    load = StepLoad(
        prefill_tokens=total / steps,
        prefill_sequences=np.maximum(requests / steps * own_steps, requests / np.maximum(steps, requests)),
        prompt_ranks=ranks,
        prefill_past=lengths.cached + (fresh - fresh / own_steps) / 2.0,
    )
    return load, _pipelined(machine, steps)


def _pipelined(machine: Machine, steps: Number) -> Number:
    """Full passages of a pipeline that `steps` chunks take: `(steps + pp - 1) / pp`."""
    return (steps + machine.pp - 1.0) / machine.pp


def decode_load(machine: Machine, lengths: Lengths, running: Number, speculation: Speculation) -> StepLoad:
    """A step of `running` decoding sequences and no prefill; a compiled graph computes its whole batch."""
    computed = np.maximum(running, machine.compiled_sequences)
    return StepLoad(
        decode_sequences=computed,
        idle_sequences=computed - running,
        decode_context=lengths.decode_context,
        tokens_per_sequence=1.0 + speculation.draft_tokens,
    )


def chunk_load(lengths: Lengths, beside: Number, chunk: Number) -> StepLoad:
    """A step that carries `chunk` prefill tokens, `beside` sequences decoding with them.

    Of a long prompt the mean chunk stands behind half of the others.
    """
    fresh = lengths.fresh
    own_steps = np.ceil(fresh / np.maximum(chunk, 1.0))
    return StepLoad(
        prefill_tokens=chunk,
        prefill_sequences=np.maximum(chunk / fresh, 1.0),
        prefill_past=lengths.cached + (fresh - fresh / own_steps) / 2.0,
        decode_sequences=beside,
        decode_context=lengths.decode_context,
    )


def chunk_delta_s(
    machine: Machine, lengths: Lengths, running: Number, plain_s: Number, chunk: Number, *, ranks: Number = np.inf
) -> Number:
    """What `chunk` prefill tokens on so many ranks add to a step of `running` decodes, or take in one of their own."""
    mixed = machine.parameters.mixed_fraction
    load = replace(chunk_load(lengths, running * mixed, chunk), prompt_ranks=ranks)
    return np.maximum(step_s(machine, load) - plain_s * mixed, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Steady states to work out: `running` sequences, and a state for each number of prompts that come together."""

    running: Number
    together: tuple[Number, ...] = (1.0,)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """What is known of `Asked` before any step is timed."""

    decoding: Number
    per_step: Number
    """Prompt tokens that a step must carry in the mean."""
    chunks: Sequence[Number]
    """Prompt tokens of a step that carries any."""


def steady_at(
    machine: Machine,
    lengths: Lengths,
    limits: Limits,
    speculation: Speculation,
    asked: Sequence[Asked],
    *,
    beside: Sequence[StepLoad] = (),
) -> tuple[list[Steady], list[Number]]:
    """The steady states in which `running` sequences decode and prompts arrive as fast as sequences finish.

    Where prefill rides in decode steps, no more sequences decode than `chunk * osl / isl` per micro-batch:
    the prompts of more would not fit into their steps. A step that carries prompts carries as many as come together,
    as far as the engine's chunk goes. All that is asked is worked out at once: states in the order of `asked`, then
    seconds of the steps `beside`.
    """
    steps_of_one = np.maximum((lengths.osl - 1.0) / speculation.tokens_per_step, 1.0)
    batches = [_batch(machine, lengths, limits, one, steps_of_one) for one in asked]
    mixed = machine.parameters.mixed_fraction
    loads = list(beside)
    for batch in batches:
        loads.append(decode_load(machine, lengths, batch.decoding, speculation))
        loads += [chunk_load(lengths, batch.decoding * mixed, chunk) for chunk in batch.chunks]
    each = each_s(machine, loads)
    seconds = iter(each[len(beside) :])
    found = []
    for batch in batches:
        plain_s = next(seconds) + speculation.draft_s
        for chunk in batch.chunks:
            delta_s, share = np.maximum(next(seconds) - plain_s * mixed, 0.0), batch.per_step / chunk
            step = plain_s + share * delta_s
            found.append(
                Steady(
                    running=batch.decoding,
                    tpot_s=step / speculation.tokens_per_step,
                    plain_step_s=plain_s,
                    prefill_delta_s=delta_s,
                    prefill_share=share,
                    chunk_tokens=chunk,
                    requests_per_s=batch.decoding / (steps_of_one * step),
                    prompt_work_s=lengths.fresh / chunk * delta_s,
                )
            )
    return found, each[: len(beside)]


def _batch(machine: Machine, lengths: Lengths, limits: Limits, asked: Asked, steps_of_one: Number) -> _Batch:
    pp, fresh, budget = machine.pp, lengths.fresh, limits.chunk_tokens * machine.dp
    most = np.where(machine.parameters.mixed_fraction > 0.5, budget * pp * steps_of_one / fresh, np.inf)
    decoding = np.minimum(asked.running, most)
    per_step = decoding * fresh / steps_of_one / pp
    chunks = [np.minimum(budget, np.maximum(per_step, fresh * prompts)) for prompts in asked.together]
    return _Batch(decoding=decoding, per_step=per_step, chunks=chunks)
