"""What serving a model takes of one chip, term by term, and what fits in the rest.

    capacity = reserved + weights + activations + graphs + overhead + adapters + draft + pool
    pool     = cache needed + free            (or cache needed - shortfall)

What works outside the share that an engine fills (graphs, the driver's context) and finds no room in the reserve is
an overrun: the engine takes its pool all the same and then fails. The overrun counts as a term, beside the pool.

Every number may be an array: `plan` sizes thousands of candidates at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chipwise.memory.answer import MemoryAnswer, MemoryBudget, PoolAnswer, fits
from chipwise.memory.cache import (
    CacheLayout,
    cache_kinds,
    cache_layout,
    longest_context,
    pool_blocks,
    pool_tokens,
    request_blocks,
    request_bytes,
    state_limit,
    usable_bytes,
)
from chipwise.memory.encoder import EncoderFacts, encoder_facts, profiled_items, profiled_rows
from chipwise.memory.profile import MemoryProfile, memory_profile
from chipwise.memory.terms import (
    adapters_bytes,
    encoder_peak_bytes,
    experts_peak_bytes,
    graph_sizes,
    layer_peak_bytes,
    layers_bytes,
    rotary_bytes,
    sampler_peak_bytes,
    weights_bytes,
)
from chipwise.parallelism import LayerShards, Number
from chipwise.precision.formats import format_facts, kv_bytes_per_element

_NO_LIMIT_TOKENS = 2**24
_PLAIN_BITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingMemoryInput:
    """A question to `size_serving`: one split of one model on one kind of chip, under one load."""

    shards: LayerShards
    capacity_bytes: Number
    """Of one chip, as its driver reports it."""
    utilization: Number
    """Share of the device the engine may fill; what it is a share of is the engine's rule."""
    context_tokens: Number
    """Longest prompt plus answer: sizes a request's cache."""
    concurrency: Number
    """Requests in flight on one replica."""
    chunk_tokens: Number
    """Tokens of one step at most (`max_num_batched_tokens`, chunked prefill size)."""
    max_num_seqs: Number
    """Sequences of one step at most: rows of the sampler."""
    whole_prompts: bool = False
    """The engine does not cut prompts into chunks: a step holds at least one of the full context. Versions that chunk
    by themselves beyond some length (`chunks_beyond_tokens`) do so for models without a tower."""
    kv_format: str = "bf16"
    element_bytes: Number = 2.0
    """Of an activation: 2 for 16-bit models."""
    engine: str = "vllm"
    engine_version: str | None = None
    eager: bool = False
    graph_max_batch: Number = 512
    """Largest batch captured as a graph, if twice `max_num_seqs` reaches it."""
    nvlink: Any = True
    """Whether the chips of a replica are joined by NVLink (or NeuronLink); PCIe takes smaller buffers."""
    devices_per_chip: int = 1
    """Devices that tp counts on one chip: 1 for a GPU, else logical NeuronCores."""
    lora_adapters: int = 0
    lora_rank: int = 16
    draft: LayerShards | None = None
    """A draft model laid over the same devices."""
    draft_tokens: int = 0
    """Tokens speculated a step; without `draft`, by the model's own multi-token-prediction layers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """Bytes of one device."""

    weights: Number
    activations: Number
    graphs: Number
    overhead: Number
    adapters: Number
    draft: Number


def step_tokens(asked: ServingMemoryInput, profile: MemoryProfile) -> Number:
    """Tokens that one step holds at most: a chunk, or where prompts run whole the longest of them."""
    context, beyond = np.asarray(asked.context_tokens, dtype=float), profile.chunks_beyond_tokens
    chunked = (beyond > 0) & (context > beyond) & (not asked.shards.towers)
    whole: Number = np.where(chunked | (not asked.whole_prompts), 0.0, context)
    return np.maximum(asked.chunk_tokens, whole)


def _activations(asked: ServingMemoryInput, profile: MemoryProfile) -> Number:
    """The larger peak: the sampler's, or the widest layer's; expert buffers may outlive their layer.

    A model with a tower holds a chunk of encoded tokens besides, and its encoder may peak above both. What
    all-reduces keep until the profile ends comes on top.
    """
    shards, tokens, size = asked.shards, step_tokens(asked, profile), asked.element_bytes
    facts = encoder_facts(shards.model_type)
    items = profiled_items(facts, profile, chunk_tokens=tokens, max_num_seqs=asked.max_num_seqs)
    hidden = tokens * shards.hidden_size * size
    experts = experts_peak_bytes(shards, tokens=tokens, element_bytes=size, freed_formats=profile.experts_freed_formats)
    layer = layer_peak_bytes(
        shards,
        tokens=tokens,
        element_bytes=size,
        hidden_copies=profile.hidden_copies,
        recurrent_copies=profile.recurrent_copies,
    )
    sampling = _sampler_bytes(asked, profile, facts, items)
    sampler = hidden + sampling + (experts if profile.experts_kept else 0.0)
    peak = np.maximum(sampler, np.maximum(layer, experts + profile.hidden_copies * hidden))
    encoded = hidden if shards.towers else 0.0
    kept = profile.reductions_kept * hidden * _layer_count(shards) * (np.asarray(shards.split.tp) > 1)
    return profile.fixed_bytes + kept + np.maximum(_encoder_bytes(asked, facts, items), encoded + peak)


def _layer_count(shards: LayerShards) -> Number:
    return sum((layer.count for layer in shards.layers), start=0.0)


def _sampler_bytes(asked: ServingMemoryInput, profile: MemoryProfile, facts: EncoderFacts, items: Number) -> Number:
    seeing = bool(asked.shards.towers)
    return sampler_peak_bytes(
        rows=profiled_rows(facts, profile, items=items, max_num_seqs=asked.max_num_seqs, seeing=seeing),
        vocab_size=asked.shards.vocab_size,
        element_bytes=asked.element_bytes,
        float_copies=profile.sampler_copies,
    )


def _encoder_bytes(asked: ServingMemoryInput, facts: EncoderFacts, items: Number) -> Number:
    return encoder_peak_bytes(
        asked.shards,
        tokens=items * facts.tokens_per_item,
        patches_per_token=facts.patches_per_token,
        element_bytes=asked.element_bytes,
        hidden_copies=facts.hidden_copies,
    )


def _weights(shards: LayerShards, profile: MemoryProfile) -> Number:
    whole = encoder_facts(shards.model_type).replicated
    return weights_bytes(shards, storage=profile.storage, whole_towers=whole)


def _draft_bytes(asked: ServingMemoryInput, profile: MemoryProfile) -> Number:
    if asked.draft is not None:
        return _weights(asked.draft, profile)
    if asked.draft_tokens:
        return layers_bytes(asked.shards.mtp, storage=profile.storage)
    return 0.0


def _parts(asked: ServingMemoryInput, profile: MemoryProfile) -> _Parts:
    shards, split = asked.shards, asked.shards.split
    largest = np.maximum(asked.graph_max_batch, profile.graph_max.get(shards.model_type, 0.0))
    captured = 0.0 if asked.eager else graph_sizes(asked.max_num_seqs, largest=largest)
    rotary = rotary_bytes(shards, element_bytes=asked.element_bytes)
    joined = np.where(asked.nvlink, profile.nvlink_bytes, profile.pcie_bytes)
    return _Parts(
        weights=_weights(shards, profile) + rotary,
        activations=_activations(asked, profile),
        graphs=captured * (profile.graph_size_bytes + _layer_count(shards) * profile.graph_layer_bytes),
        overhead=np.where(split.tp * split.dp > 1, joined, profile.single_bytes),
        adapters=adapters_bytes(
            shards, adapters=asked.lora_adapters, rank=asked.lora_rank, element_bytes=asked.element_bytes
        ),
        draft=_draft_bytes(asked, profile),
    )


def _without_drafts(asked: ServingMemoryInput) -> tuple[str, ...]:
    """What to say where tokens are drafted by nothing that takes memory."""
    if not asked.draft_tokens or asked.draft is not None or asked.shards.mtp:
        return ()
    return ("no draft model and no multi-token-prediction layers: drafted tokens take no memory (an n-gram drafter)",)


def _capped(sized: Sized) -> tuple[str, ...]:
    """What to say where the engine gives its cache less than it could have."""
    share = sized.profile.cache_cap_fraction
    if share >= 1.0 or not np.any(np.asarray(sized.room.capped) > 0):
        return ()
    return (f"the engine gives its cache at most {share:.0%} of what it may fill: the rest counts as reserved",)


def _bounded_by_states(sized: Sized, concurrency: Number) -> tuple[str, ...]:
    """What to say where the part of the pool that is set aside for recurrent states is full before the tokens' is."""
    states = sized.layout.states
    if states is None:
        return ()
    most = np.maximum(state_limit(sized.layout, pool_bytes=sized.room.pool), 1.0)
    if not np.any(np.floor(concurrency / sized.asked.shards.split.dp) >= most):
        return ()
    share, copies = f"{states.share:.0%}", f"{states.copies:.0f} a request"
    return (f"the engine keeps {share} of its cache for recurrent states, {copies}: they bound what runs at once",)


def _layout(asked: ServingMemoryInput, profile: MemoryProfile) -> CacheLayout:
    layers = list(asked.shards.layers)
    if asked.draft is not None:
        layers += asked.draft.layers
    elif asked.draft_tokens:
        layers += asked.shards.mtp
    kinds = cache_kinds(layers, element_bytes=kv_bytes_per_element(asked.kv_format), profile=profile)
    chunk_tokens = step_tokens(asked, profile)
    return cache_layout(kinds, profile=profile, chunk_tokens=chunk_tokens, draft_tokens=asked.draft_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Room:
    """How the engine's rule divides one device: what each term counts, what is reserved, what is left.

    `activations` and `graphs` hold what of them counts; `reserve_room` is what the reserve has left beside what works
    in it, and `overrun` what it lacks.
    """

    reserved: Number
    activations: Number
    graphs: Number
    overhead: Number
    pool: Number
    capped: Number
    """What the cache might have had, but for the engine's ceiling."""
    reserve_room: Number

    @property
    def overrun(self) -> Number:
        """What works outside the utilization and finds no room there."""
        lacking: Number = np.maximum(-np.asarray(self.reserve_room), 0.0)
        return lacking


def _divide(asked: ServingMemoryInput, profile: MemoryProfile, parts: _Parts, device_bytes: Number) -> _Room:
    """The pool by the engine's rule, and what works outside the utilization where the reserve is short."""
    held = parts.weights + parts.adapters + parts.draft
    if profile.utilization_rule == "free":
        return _divide_free(asked, parts, device_bytes - held)
    share = asked.utilization
    static = profile.utilization_rule == "static"
    counted = parts.graphs if profile.graphs_counted and not static else 0.0
    inside = 0.0 if static else parts.activations + counted
    overhead = share * parts.overhead if static else parts.overhead
    pool = share * device_bytes - held - inside - overhead
    capped = np.maximum(pool - profile.cache_cap_fraction * share * device_bytes, 0.0)
    reserved = (1 - share) * device_bytes + capped
    beside = parts.activations + (1 - share) * parts.overhead if static else profile.context_bytes
    outside = parts.graphs - counted + beside
    lacking = np.maximum(outside - reserved, 0.0)
    return _Room(
        reserved=reserved,
        activations=lacking if static else parts.activations,
        graphs=np.zeros_like(lacking) if static else counted + lacking,
        overhead=overhead,
        pool=pool - capped,
        capped=capped,
        reserve_room=reserved - outside,
    )


def _divide_free(asked: ServingMemoryInput, parts: _Parts, unheld_bytes: Number) -> _Room:
    left = unheld_bytes - parts.activations - parts.graphs - parts.overhead
    reserved = (1 - asked.utilization) * np.maximum(left, 0.0)
    return _Room(
        reserved=reserved,
        activations=parts.activations,
        graphs=parts.graphs,
        overhead=parts.overhead,
        pool=left - reserved,
        capped=0.0,
        reserve_room=reserved,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """A layout sized but for its load: all that context and requests in flight do not change. Bytes of one device.

    `asked` is the question that it was sized for; `context_tokens` and `concurrency` are the load that it stands under.
    """

    asked: ServingMemoryInput
    context_tokens: Number
    concurrency: Number
    profile: MemoryProfile
    parts: _Parts
    layout: CacheLayout
    room: _Room
    on_chip: Number
    beside: _Beside | None = None
    """`settled` sets it where many loads are asked for the whole answer."""

    def under(self, *, context_tokens: Number, concurrency: Number) -> Sized:
        """The same layout under another load: sized anew only where prompts run whole, in steps as long as they are."""
        if self.asked.whole_prompts:
            return sized(replace(self.asked, context_tokens=context_tokens, concurrency=concurrency))
        return Sized(
            asked=self.asked,
            context_tokens=context_tokens,
            concurrency=concurrency,
            profile=self.profile,
            parts=self.parts,
            layout=self.layout,
            room=self.room,
            on_chip=self.on_chip,
            beside=self.beside,
        )


def sized(asked: ServingMemoryInput) -> Sized:
    """Size a layout: what `size_pool` and `size_serving` say of every load rests on it.

    Raises:
        UnknownNameError: as `size_serving`.
    """
    profile = memory_profile(asked.engine, asked.engine_version)
    parts = _parts(asked, profile)
    return Sized(
        asked=asked,
        context_tokens=asked.context_tokens,
        concurrency=asked.concurrency,
        profile=profile,
        parts=parts,
        layout=_layout(asked, profile),
        room=_divide(asked, profile, parts, asked.capacity_bytes / asked.devices_per_chip),
        on_chip=np.minimum(asked.devices_per_chip, asked.shards.split.devices),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beside:
    """What a whole answer says beside its pool, and no load changes. Bytes of a device."""

    error_bytes: Number
    low_fraction: Number
    high_fraction: Number
    warnings: tuple[str, ...]


def settled(one: Sized) -> Sized:
    """The same with all of `answer_of` that no load changes."""
    return replace(one, beside=_beside(one))


def _beside(one: Sized) -> _Beside:
    error_bytes = _error_bytes(one.asked, one.profile, one.parts)
    low, high = _fractions(one.room.pool, error_bytes)
    return _Beside(
        error_bytes=error_bytes,
        low_fraction=low,
        high_fraction=high,
        warnings=(*one.profile.warnings, *_capped(one), *_without_drafts(one.asked)),
    )


def size_pool(asked: ServingMemoryInput) -> PoolAnswer:
    """Budget, shortfall and pool of `size_serving`, without what else it says: for those who try many layouts.

    Raises:
        UnknownNameError: as `size_serving`.
    """
    return pool_of(sized(asked))


def pool_of(one: Sized) -> PoolAnswer:
    """`size_pool` of a layout that is sized already."""
    asked, room, on_chip = one.asked, one.room, one.on_chip
    need = _need_bytes(one)
    return PoolAnswer(
        budget=_budget(asked, one.parts, room, need, on_chip),
        shortfall_bytes=_lacking_bytes(one, need) * on_chip,
        kv_pool_bytes=np.maximum(room.pool, 0.0) * on_chip,
        usable_pool_bytes=np.maximum(usable_bytes(one.layout, pool_bytes=room.pool), 0.0) * on_chip,
        state_limit=state_limit(one.layout, pool_bytes=room.pool),
        max_concurrency_at_context=_most_at_once(one),
    )


def _need_bytes(one: Sized) -> Number:
    """Cache that the load takes of a device."""
    split = one.asked.shards.split
    return one.concurrency / split.dp * request_bytes(one.layout, context_tokens=one.context_tokens / split.cp)


def _lacking_bytes(one: Sized, need_bytes: Number) -> Number:
    lacking: Number = np.maximum(need_bytes + one.room.overrun - one.room.pool, 0.0)
    return lacking


def holds(one: Sized) -> Any:
    """`fits` of `pool_of`, alone."""
    return fits(_lacking_bytes(one, _need_bytes(one)))


def _most_at_once(one: Sized) -> Number:
    """Requests of the stated context that the pools of a replica hold: each data-parallel rank has one of its own."""
    split, pool_bytes = one.asked.shards.split, one.room.pool
    if one.layout.groups:
        per_request = request_blocks(one.layout, context_tokens=one.context_tokens / split.cp)
        concurrency = pool_blocks(one.layout, pool_bytes=pool_bytes) / per_request
    else:
        concurrency = np.where(np.asarray(pool_bytes) >= 0, one.asked.max_num_seqs, 0.0) / split.dp
    return concurrency * split.dp


def size_serving(asked: ServingMemoryInput) -> MemoryAnswer:
    """The budget of one chip, the cache pool, and what fits in it.

    Per device: `pool = utilization x capacity - weights - activations - overhead - adapters - draft` under
    vLLM's rule (graphs too since 0.21), in whole blocks. A request holds its blocks by kind of layer. With
    data-parallel attention each rank has a pool of its own and serves its share of the requests.

    Args:
        asked: the shards and the load; arrays broadcast.

    Returns:
        The answer, its numbers with the broadcast shape.

    Raises:
        UnknownNameError: an engine or cache format that no table holds.
    """
    return answer_of(sized(asked))


def answer_of(one: Sized) -> MemoryAnswer:
    """`size_serving` of a layout that is sized already."""
    pool, parts, room, on_chip = pool_of(one), one.parts, one.room, one.on_chip
    beside = one.beside or _beside(one)
    return MemoryAnswer(
        budget=pool.budget,
        shortfall_bytes=pool.shortfall_bytes,
        kv_pool_bytes=pool.kv_pool_bytes,
        usable_pool_bytes=pool.usable_pool_bytes,
        state_limit=pool.state_limit,
        max_concurrency_at_context=pool.max_concurrency_at_context,
        need_bytes=pool.budget.cache_bytes,
        activations_total_bytes=parts.activations * on_chip,
        graphs_total_bytes=parts.graphs * on_chip,
        room_bytes=room.pool * on_chip,
        reserve_room_bytes=room.reserve_room * on_chip,
        error_bytes=beside.error_bytes * on_chip,
        low_fraction=beside.low_fraction,
        high_fraction=beside.high_fraction,
        evidence=one.profile.evidence,
        warnings=(*beside.warnings, *_bounded_by_states(one, pool.max_concurrency_at_context)),
        **_capacities(one),
    )


def _fractions(pool_bytes: Number, error_bytes: Number) -> tuple[Number, Number]:
    """The pool's range as fractions of it: `1 -+ error / pool`, at least 0; both 1 where there is no pool."""
    error = error_bytes / np.where(np.asarray(pool_bytes) > 0, pool_bytes, np.inf)
    return np.maximum(1 - error, 0.0), 1 + error


def _error_bytes(asked: ServingMemoryInput, profile: MemoryProfile, parts: _Parts) -> Number:
    """By how many bytes of a device the pool may be off, 8 times in 10.

    Shares of the terms that are fitted, as errors that know nothing of each other: the root of their squares' sum.
    """
    counted = parts.graphs if profile.graphs_counted else 0.0
    return np.sqrt(
        (weights_error(asked.shards, profile) * parts.weights) ** 2
        + (profile.activations_error * parts.activations) ** 2
        + (profile.overhead_error * parts.overhead) ** 2
        + (profile.graphs_error * counted) ** 2
        + (profile.capacity_error * asked.capacity_bytes / asked.devices_per_chip) ** 2
    )


def weights_error(shards: LayerShards, profile: MemoryProfile) -> float:
    """The share of the weights by which they may be off, 8 times in 10: more where they are quantised."""
    formats = {gemm.format for layer in shards.layers for gemm in layer.gemms}
    formats |= {gemm.format for layer in shards.layers if layer.experts for gemm in layer.experts.gemms}
    plain = all(format_facts(name).bits_per_weight >= _PLAIN_BITS for name in formats)
    return profile.weights_error if plain else profile.quantised_error


def _capacities(one: Sized) -> dict[str, Any]:
    """Tokens that the pools of a replica hold, and the longest context of which the load fits."""
    shards, layout, pool_bytes = one.asked.shards, one.layout, one.room.pool
    split, per_group = shards.split, one.profile.tokens_per_group
    context_tokens = one.context_tokens / split.cp
    tokens = pool_tokens(layout, pool_bytes=pool_bytes, context_tokens=context_tokens, per_group=per_group)
    longest = longest_context(
        layout,
        pool_bytes=pool_bytes,
        concurrency=one.concurrency / split.dp,
        most_tokens=shards.max_context_tokens or _NO_LIMIT_TOKENS,
    )
    return {
        "kv_cache_tokens": tokens * split.dp * split.cp,
        "longest_context": longest * split.cp,
    }


def _budget(asked: ServingMemoryInput, parts: _Parts, room: _Room, need: Number, on_chip: Number) -> MemoryBudget:
    return MemoryBudget(
        capacity_bytes=asked.capacity_bytes / asked.devices_per_chip * on_chip,
        free_bytes=np.maximum(room.pool - room.overrun - need, 0.0) * on_chip,
        reserved_bytes=room.reserved * on_chip,
        weights_bytes=parts.weights * on_chip,
        cache_bytes=need * on_chip,
        activations_bytes=room.activations * on_chip,
        graphs_bytes=room.graphs * on_chip,
        overhead_bytes=room.overhead * on_chip,
        adapters_bytes=parts.adapters * on_chip,
        draft_bytes=parts.draft * on_chip,
    )
