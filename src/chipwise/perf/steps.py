"""Seconds of one engine step: some prefill tokens, some decoding sequences, through every layer of a replica.

The step is described per replica (`StepLoad`); data-parallel attention ranks share it evenly. With pp
stages the batch is cut into pp micro-batches that follow each other, so a token takes pp stage times and pp
micro-batches are under way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from chipwise.parallelism import Number, anywhere
from chipwise.perf import operators as op
from chipwise.perf.costs import (
    BANDWIDTH,
    COMPUTE,
    OVERHEAD,
    ExpertCosts,
    LayerCosts,
    Linear,
    Streams,
    lifted,
    present,
    stacked,
)
from chipwise.perf.machine import Machine

EXACT = 0.5
"""`exact_fraction` above this: lengths and batches are computed as they come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLoad:
    """What one step of a replica carries."""

    prefill_tokens: Number = 0.0
    prefill_past: Number = 0.0
    """Tokens already cached of the sequences being prefilled."""
    prefill_sequences: Number = 0.0
    prompt_ranks: Number = np.inf
    """Data-parallel ranks that the prompts stand on, at most all: a prompt stands on one, and the others wait."""
    decode_sequences: Number = 0.0
    """Computed; `idle_sequences` of them only fill a compiled graph."""
    decode_context: Number = 0.0
    idle_sequences: Number = 0.0
    tokens_per_sequence: Number = 1.0
    """Tokens that a decoding sequence puts through the model: 1, with speculation 1 + draft tokens."""


FIELDS = tuple(StepLoad.__dataclass_fields__)
_values = attrgetter(*FIELDS)
_FLOATS = frozenset({float, np.float64})


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One operation of a step: seconds of all its layers; `roof` where FLOPs and bytes compete."""

    operation: str
    seconds: Number
    kind: float = OVERHEAD
    roof: op.Roofline | None = None

    @property
    def bound(self) -> Number:
        """What bound it: a place in `BOUNDS`."""
        if self.roof is None:
            return self.kind
        return BANDWIDTH + (COMPUTE - BANDWIDTH) * (self.roof.compute_s >= self.roof.bandwidth_s)


def _of_roofline(operation: str, count: Number, roof: op.Roofline) -> Term:
    return Term(operation=operation, seconds=count * roof.seconds, roof=roof)


def expert_term(machine: Machine, layer: LayerCosts, *, tokens: Number) -> Term:
    """Routed experts on the fullest device for `tokens` tokens of the whole stage."""
    experts = layer.experts
    if experts is None:
        return Term(operation="routed experts", seconds=0.0)
    pairs = tokens * experts.per_token * experts.local / experts.routed * experts.skew
    computed, touched = _computed_and_touched(machine, experts, tokens=tokens, pairs=pairs)
    roof = op.Roofline(
        compute_s=computed * experts.compute_s, bandwidth_s=pairs * experts.moved_s + touched * experts.read_s
    )
    return _of_roofline("routed experts", layer.count, roof)


def _computed_and_touched(
    machine: Machine, experts: ExpertCosts, *, tokens: Number, pairs: Number
) -> tuple[Number, Number]:
    """Tokens computed in a device's experts, and experts whose weights are read.

    An expert's tokens fill whole tiles of the grouped GEMM: half a tile each is computed for nothing. Compiled graphs
    hold the worst case.
    """
    parameters, skew = machine.parameters, experts.skew
    sizes = {"tokens": tokens, "routed": experts.routed, "per_token": experts.per_token, "local": experts.local}
    touched = op.distinct_experts(**(sizes | {"tokens": tokens * skew}), variance=parameters.expert_variance)
    computed = pairs + touched * parameters.expert_tile_tokens / 2.0
    exact = parameters.exact_fraction > EXACT
    if not anywhere(parameters.exact_fraction <= EXACT):
        return computed, touched
    compiled = op.compiled_experts(**sizes, tile=parameters.expert_tile_tokens)
    return np.where(exact, computed, compiled[0]), np.where(exact, touched, compiled[1])


def _prompt_ranks(machine: Machine, load: StepLoad) -> Number:
    ranks = load.prompt_ranks
    return machine.dp if isinstance(ranks, float) and ranks == np.inf else np.minimum(machine.dp, ranks)


def prefill_attention_term(machine: Machine, layer: LayerCosts, load: StepLoad) -> Term:
    """Attention of the prefill tokens; sparse attention looks back at `sparse_tokens` at most."""
    cache, ranks = layer.cache, _prompt_ranks(machine, load)
    tokens = load.prefill_tokens / ranks
    each = load.prefill_tokens / np.maximum(load.prefill_sequences, 1.0)
    if cache.kind in {"linear", "mamba", "none"}:
        size = op.state_bytes(state_bytes_per_sequence=cache.state_bytes_per_sequence, sequences=0.0, tokens=tokens)
        roof = op.roofline(flops=0.0, flops_per_s=1.0, size_bytes=size, bytes_per_s=machine.bytes_per_s)
        return _of_roofline("attention", layer.count, roof)
    window: Number | None = cache.window_tokens or cache.sparse_tokens
    if cache.compressed_every:
        window = (cache.window_tokens or 0) + _past_entries(layer, load.prefill_past + each / 2.0)
    flops = op.prefill_attention_flops(
        query_heads=cache.query_heads,
        head_dims=cache.head_dim + cache.value_head_dim,
        tokens=each,
        past=load.prefill_past,
        window=window,
    )
    size = cache.elements_per_token * machine.kv_element_bytes * (tokens + load.prefill_past)
    roof = op.roofline(
        flops=flops * np.maximum(load.prefill_sequences, 1.0) / ranks / machine.cp,
        flops_per_s=machine.attention_flops_per_s,
        size_bytes=size,
        bytes_per_s=machine.bytes_per_s,
    )
    return _of_roofline("attention", layer.count * present(tokens), roof)


def _past_entries(layer: LayerCosts, past: Number) -> Number:
    cache = layer.cache
    return op.compressed_entries(past=past, every=cache.compressed_every or 1, at_most=cache.sparse_tokens)


def _decode_head_dims(layer: LayerCosts) -> Number:
    """MLA decodes absorbed: scores over the latent and rotary parts, values over the latent."""
    cache = layer.cache
    if cache.kind == "mla":
        return 2.0 * cache.kv_lora_rank + cache.rope_head_dim
    return float(cache.head_dim + cache.value_head_dim)


def decode_attention_term(machine: Machine, layer: LayerCosts, load: StepLoad) -> Term:
    """Attention of the decoding sequences: their caches (or states) are read once."""
    each = _decode_attention_of_one(machine, layer, load)
    return _of_roofline("attention", layer.count * (load.decode_sequences / machine.dp), each)


def _decode_attention_of_one(machine: Machine, layer: LayerCosts, load: StepLoad) -> op.Roofline:
    """Attention of one sequence: everything but how many there are, so far smaller arrays where many are asked."""
    cache = layer.cache
    whole = load.decode_context / machine.cp
    span = whole if cache.window_tokens is None else np.minimum(whole, cache.window_tokens)
    indexed = whole / cache.compressed_every if cache.compressed_every else span
    read = span if cache.sparse_tokens is None else np.minimum(span, cache.sparse_tokens)
    if cache.compressed_every:
        read = span + _past_entries(layer, whole)
    size = op.decode_attention_bytes(
        cache_elements=cache.elements_per_token,
        element_bytes=machine.kv_element_bytes,
        sequences=1.0,
        context=read,
    )
    state = op.state_bytes(state_bytes_per_sequence=cache.state_bytes_per_sequence, sequences=1.0, tokens=0.0)
    flops = op.decode_attention_flops(
        query_heads=cache.query_heads if cache.kind not in {"linear", "mamba", "none"} else 0.0,
        head_dims=_decode_head_dims(layer),
        sequences=load.tokens_per_sequence,
        context=read,
    )
    return op.roofline(
        flops=flops,
        flops_per_s=machine.attention_flops_per_s,
        size_bytes=size + cache.indexer_dim * indexed + state,
        bytes_per_s=machine.cache_bytes_per_s,
    )


def _layer_terms(machine: Machine, layer: LayerCosts, load: StepLoad) -> Iterator[Term]:
    """What does not grow with the tokens alone: experts, and attention."""
    if layer.experts is not None:
        whole = load.prefill_tokens + load.decode_sequences * load.tokens_per_sequence
        yield expert_term(machine, layer, tokens=whole)
    if not _nothing(load.prefill_tokens):
        yield prefill_attention_term(machine, layer, load)
    if not _nothing(load.decode_sequences):
        yield decode_attention_term(machine, layer, load)


def _nothing(carried: Number) -> bool:
    """Whether a step is said to carry none of it: attention of nothing takes no time, and need not be worked out."""
    return isinstance(carried, float) and carried == 0.0


def _with_prompts(load: StepLoad, there: Number, absent: Number) -> Number:
    """One value where the step carries prompts, another where it does not."""
    if _nothing(load.prefill_tokens):
        return absent
    return np.where(load.prefill_tokens > 0, there, absent)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Carried:
    """A step as one pipeline stage of one data-parallel rank sees it."""

    cut: StepLoad
    tokens: Number
    sampled: Number
    sequences: Number


def _carried(machine: Machine, load: StepLoad) -> _Carried:
    cut, dp = _micro_batch(load, machine.pp), machine.dp
    return _Carried(
        cut=cut,
        tokens=cut.prefill_tokens / _prompt_ranks(machine, cut) + cut.decode_sequences * cut.tokens_per_sequence / dp,
        sampled=(cut.decode_sequences * cut.tokens_per_sequence + cut.prefill_sequences) / dp,
        sequences=(load.decode_sequences + load.prefill_sequences) / dp,
    )


def step_terms(machine: Machine, load: StepLoad) -> Iterator[Term]:
    """Every operation of a step of one pipeline stage, then what the engine adds."""
    costs, carried = machine.costs, _carried(machine, load)
    yield from _stream_terms(costs.streams, carried.tokens)
    for layer in machine.costs.layers:
        yield from _layer_terms(machine, layer, carried.cut)
    yield from (_linear_term(one, carried.tokens) for one in costs.linear)
    yield Term(operation="launches", seconds=_with_prompts(load, *costs.launches_s))
    yield from _stream_terms(costs.head, carried.sampled)
    yield _sampling_term(machine, carried.cut, carried.sampled)
    yield Term(operation="engine", seconds=_engine_s(machine, load, carried.sequences))


def _stream_terms(streams: Streams, tokens: Number) -> Iterator[Term]:
    roof, there = streams.roof(tokens), present(tokens)
    sides = zip(streams.operations, np.asarray(roof.compute_s), np.asarray(roof.bandwidth_s), strict=True)
    for operation, compute_s, bandwidth_s in sides:
        yield _of_roofline(operation, there, op.Roofline(compute_s=compute_s, bandwidth_s=bandwidth_s))


def _linear_term(one: Linear, tokens: Number) -> Term:
    return Term(operation=one.operation, seconds=one.fixed_s + one.token_s * tokens, kind=one.kind)


def _engine_s(machine: Machine, load: StepLoad, sequences: Number) -> Number:
    parameters = machine.parameters
    prefill = _with_prompts(load, parameters.prefill_step_s, 0.0)
    return (parameters.step_s + prefill + parameters.sequence_s * sequences) / machine.pp


def _sampling_term(machine: Machine, cut: StepLoad, sampled: Number) -> Term:
    """Sampling of `sampled` sequences of a rank: on the device, or on the host after it."""
    parameters = machine.parameters
    seconds = op.sampling_bytes(sequences=sampled, vocab_size=machine.vocab_size) / machine.bytes_per_s
    if anywhere(machine.host_sampling > 0):
        idle = np.minimum(cut.idle_sequences * cut.tokens_per_sequence / machine.dp, sampled)
        seconds = seconds + machine.host_sampling * op.host_sampling_s(
            computed=sampled,
            sampled=sampled - idle,
            vocab_size=machine.vocab_size,
            copy_s=parameters.host_copy_s,
            sample_s=parameters.host_sample_s,
        )
    return Term(operation="sampling", seconds=seconds / machine.pp, kind=BANDWIDTH)


def _micro_batch(load: StepLoad, pp: Number) -> StepLoad:
    """A step's decodes are cut into `pp` micro-batches (at least one sequence); prefill chunks stay whole."""
    if _nothing(load.decode_sequences):
        return load
    sequences = np.where(load.decode_sequences > 0, np.maximum(load.decode_sequences / pp, 1.0), 0.0)
    return StepLoad(
        prefill_tokens=load.prefill_tokens,
        prefill_past=load.prefill_past,
        prefill_sequences=load.prefill_sequences,
        prompt_ranks=load.prompt_ranks,
        decode_sequences=sequences,
        decode_context=load.decode_context,
        idle_sequences=load.idle_sequences / pp,
        tokens_per_sequence=load.tokens_per_sequence,
    )


def step_s(machine: Machine, load: StepLoad) -> Number:
    """Seconds until a step's tokens have passed every stage: the sum of `step_terms`, times the stages."""
    costs, carried = machine.costs, _carried(machine, load)
    total = costs.streams.seconds(carried.tokens) + costs.head.seconds(carried.sampled)
    for layer in machine.costs.layers:
        for term in _layer_terms(machine, layer, carried.cut):
            total = total + term.seconds
    total = total + _with_prompts(load, *costs.launches_s) + (costs.fixed_s + costs.token_s * carried.tokens)
    total = total + _sampling_term(machine, carried.cut, carried.sampled).seconds
    return (total + _engine_s(machine, load, carried.sequences)) * machine.pp


def each_s(machine: Machine, loads: Sequence[StepLoad]) -> list[Number]:
    """`step_s` of several loads, those of one shape worked out at once."""
    shapes = [np.broadcast(load.prefill_tokens, load.decode_sequences).shape for load in loads]
    if len(set(shapes)) == 1:
        return list(np.asarray(step_s(machine, abreast(machine, loads))))
    found: dict[int, Number] = {}
    for shape in dict.fromkeys(shapes):
        places = [place for place, one in enumerate(shapes) if one == shape]
        found |= zip(places, each_s(machine, [loads[place] for place in places]), strict=True)
    return [found[place] for place in range(len(loads))]


def abreast(machine: Machine, loads: Sequence[StepLoad]) -> StepLoad:
    """Several loads as one: elements of a new first axis."""
    rows = list(zip(*map(_values, loads), strict=True))
    arrays = (value for row in rows for value in row if not isinstance(value, float))
    dimensions = max(machine.dimensions, max(map(np.ndim, arrays), default=0))
    joined = (_joined(row, dimensions) for row in rows)
    return StepLoad(**dict(zip(FIELDS, joined, strict=True)))


def _joined(values: Sequence[Number], dimensions: int) -> Number:
    """A number that all loads share stays one."""
    if _FLOATS.issuperset(map(type, values)):
        return values[0] if len(set(values)) == 1 else lifted(np.array(values), dimensions)
    return lifted(stacked(values), dimensions)
