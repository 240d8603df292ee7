"""The terms of a serving budget on one device, each a plain formula over floats or arrays that broadcast."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from chipwise.parallelism import ExpertShard, GemmShard, LayerShard, LayerShards, Number, ceil_div
from chipwise.precision.formats import format_facts

_ADAPTED = frozenset({"attention", "mlp", "shared-expert"})
_FLOAT32_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """How an engine version lays out what a checkpoint stores: widths it pads, formats it expands or packs."""

    expert_multiple: Mapping[str, float] = field(default_factory=dict)
    """Formats whose expert width on a device is padded, and to a multiple of how many."""
    expert_hidden_multiple: Mapping[str, float] = field(default_factory=dict)
    """The same of what enters and leaves an expert."""
    held_as: Mapping[str, str] = field(default_factory=dict)
    """Formats that are held in another one."""


AS_STORED = Storage()


def gemm_bytes(gemm: GemmShard, storage: Storage = AS_STORED) -> Number:
    """Bytes of one weight on one device: `rows x cols x bits / 8`, plus a scale a row or a block."""
    facts = format_facts(storage.held_as.get(gemm.format, gemm.format))
    row_scales = facts.scale_bits / 8 if facts.scale_rows == 1 and facts.scale_cols is None else 0.0
    return gemm.rows_out * gemm.cols_in * (facts.bits_per_weight / 8) + gemm.rows_out * row_scales


def _padding(size: Number, multiple: float | None) -> Number:
    """How much wider a size up to the next multiple is than itself."""
    return 1.0 if multiple is None else ceil_div(size, multiple) * multiple / size


def _expert_padding(experts: ExpertShard, storage: Storage) -> Number:
    """How much larger a kernel makes experts: both sides of their matrices up to the next multiple."""
    down = next((gemm for gemm in experts.gemms if gemm.reduced), None)
    if down is None:
        return 1.0
    wider = _padding(down.cols_in, storage.expert_multiple.get(down.format))
    return wider * _padding(down.rows_out, storage.expert_hidden_multiple.get(down.format))


def _layer_bytes(layer: LayerShard, storage: Storage) -> Number:
    each: Number = sum((gemm_bytes(gemm, storage) for gemm in layer.gemms if gemm.stored), start=0.0)
    if layer.experts:
        one = sum((gemm_bytes(gemm, storage) for gemm in layer.experts.gemms), start=0.0)
        each = each + layer.experts.local * one * _expert_padding(layer.experts, storage)
    return layer.count * layer.stored_fraction * each


def layers_bytes(layers: Iterable[LayerShard], *, storage: Storage = AS_STORED) -> Number:
    """Weights of a stack of layers on one device."""
    return sum((_layer_bytes(layer, storage) for layer in layers), start=0.0)


def weights_bytes(shards: LayerShards, *, storage: Storage = AS_STORED, whole_towers: bool = False) -> Number:
    """Weights on the fullest device: layers of its stage, what it holds of embedding and head, towers.

    `sum over weights of copies x rows x cols x bytes`, each weight in its own format with its scales.

    Args:
        shards: one device of a replica; towers are held by every stage's devices as the engine shards them.
        storage: how the engine lays formats out.
        whole_towers: every device holds its towers uncut.

    Returns:
        Bytes, with the shape of the split.
    """
    copies = shards.outer_copies or tuple(float(gemm.stored) for gemm in shards.outer)
    outer = sum((n * gemm_bytes(gemm, storage) for n, gemm in zip(copies, shards.outer, strict=True)), start=0.0)
    held = shards.whole_towers if whole_towers else shards.towers
    towers = sum((n * gemm_bytes(gemm, storage) for gemm, n in held if gemm.stored), start=0.0)
    return (layers_bytes(shards.layers, storage=storage) + outer + towers) * shards.stated_fraction


def cache_bytes_per_token(shards: LayerShards, *, element_bytes: Number) -> Number:
    """What one more token of context adds on one device, all layers of its stage, before padding.

    Full attention adds its share of the KV heads, MLA its whole latent on every device, a compressed past one entry in
    so many tokens; windows and states add 0.

    >>> from chipwise.parallelism import CacheShard, LayerShard, LayerShards, Split
    >>> cache = CacheShard(kind="full", query_heads=64, kv_heads=8, head_dim=128, value_head_dim=128,
    ...     elements_per_token=2048, window_tokens=None, state_bytes_per_sequence=0, kv_lora_rank=0,
    ...     rope_head_dim=0, indexer_dim=0, sparse_tokens=None, causal=True)
    >>> layer = LayerShard(count=80, count_total=80, gemms=(), cache=cache, experts=None)
    >>> llama = LayerShards(split=Split(), layers=(layer,), outer=(), towers=(), hidden_size=8192,
    ...     vocab_size=128256, layer_count=80)
    >>> float(cache_bytes_per_token(llama, element_bytes=2.0))
    327680.0
    """
    growing = (layer for layer in shards.layers if layer.cache.kind in {"full", "mla"} or layer.cache.compressed_every)
    each = (layer.count * layer.cache.elements_per_token / (layer.cache.compressed_every or 1) for layer in growing)
    return sum((elements * element_bytes for elements in each), start=0.0)


def cache_bytes_per_sequence(shards: LayerShards, *, element_bytes: Number) -> Number:
    """What a long sequence holds on one device beside its tokens: full windows and recurrent states."""
    total: Number = 0.0
    for layer in shards.layers:
        cache = layer.cache
        window = cache.window_tokens or 0 if cache.kind in {"sliding", "chunked"} else 0
        held = window * cache.elements_per_token * element_bytes + cache.state_bytes_per_sequence
        total = total + layer.count * held
    return total


def sampler_peak_bytes(*, rows: Number, vocab_size: int, element_bytes: Number, float_copies: Number) -> Number:
    """Logits while sampling: one copy in the model's type and `float_copies` copies in 32 bits.

    `rows x vocabulary x (element_bytes + 4 float_copies)`. Logits are gathered whole on every device.

    >>> peak_bytes = sampler_peak_bytes(rows=1024, vocab_size=128256, element_bytes=2, float_copies=3)
    >>> round(peak_bytes / 2**30, 3)
    1.712
    """
    return rows * vocab_size * (element_bytes + _FLOAT32_BYTES * float_copies)


def _widths(gemms: Iterable[GemmShard], part: str) -> Number:
    """Elements a token holds inside one part: what the first GEMMs give plus what the last one takes."""
    mine = [gemm for gemm in gemms if gemm.part == part and gemm.gemm]
    given = sum((gemm.rows_out for gemm in mine if not gemm.reduced), start=0.0)
    taken = max((gemm.cols_in for gemm in mine if gemm.reduced), key=np.max, default=0.0)
    return given + taken


def layer_peak_bytes(
    shards: LayerShards,
    *,
    tokens: Number,
    element_bytes: Number,
    hidden_copies: Number,
    recurrent_copies: Number,
) -> Number:
    """The largest working set of one layer: what MLP or attention hold of every token, plus hidden states.

    `tokens x element_bytes x (max over parts of (rows out of the first GEMMs + columns into the last)
    + hidden_copies x hidden size)`; a recurrent layer adds `recurrent_copies` of its values.
    """
    widest: Number = 0.0
    for layer in shards.layers:
        cache = layer.cache
        attention = _widths(layer.gemms, "attention")
        if cache.kind in {"linear", "mamba"}:
            attention = attention + recurrent_copies * cache.query_heads * cache.value_head_dim
        widest = np.maximum(widest, np.maximum(attention, _widths(layer.gemms, "mlp")))
    return tokens * element_bytes * (widest + hidden_copies * shards.hidden_size)


def encoder_peak_bytes(
    shards: LayerShards, *, tokens: Number, patches_per_token: float, element_bytes: Number, hidden_copies: Number
) -> Number:
    """The largest working set of a tower over the patches of `tokens`; 0 without towers.

    A layer as `layer_peak_bytes`; or twice what the widest matrix behind the layers reads a token (Llama 3.2
    Vision joins six hidden states there).
    """
    peak: Number = 0.0
    for count in {count for _, count in shards.towers}:
        gemms = [gemm for gemm, held in shards.towers if held == count and gemm.gemm]
        widest = np.maximum(_widths(gemms, "mlp"), _widths(gemms, "attention"))
        outputs = max((gemm.rows_out for gemm in gemms if gemm.reduced), key=np.max, default=0.0)
        peak = np.maximum(peak, patches_per_token * (widest + hidden_copies * outputs))
    joined = max((gemm.cols_in for gemm, _ in shards.towers if gemm.gemm and gemm.part == "other"), default=0.0)
    return tokens * element_bytes * np.maximum(peak, 2 * joined)


def experts_peak_bytes(
    shards: LayerShards, *, tokens: Number, element_bytes: Number, freed_formats: frozenset[str] = frozenset()
) -> Number:
    """Buffers of a fused expert kernel.

    `tokens x experts per token x (max(gate and up, hidden) + down)` elements.
    Experts in one of `freed_formats` run in kernels that keep no such buffers.
    """
    peak: Number = 0.0
    for layer in shards.layers:
        if layer.experts is None or {gemm.format for gemm in layer.experts.gemms} & freed_formats:
            continue
        given = sum((gemm.rows_out for gemm in layer.experts.gemms if not gemm.reduced), start=0.0)
        taken = max((gemm.cols_in for gemm in layer.experts.gemms if gemm.reduced), key=np.max, default=0.0)
        wide = np.maximum(given, shards.hidden_size) + taken
        peak = np.maximum(peak, tokens * layer.experts.per_token * wide * element_bytes)
    return peak


def graph_sizes(max_num_seqs: Number, *, largest: Number = 512) -> Number:
    """How many batch sizes are captured: 1, 2, 4, each 8th below 256, each 16th, to `min(2 seqs, largest)`.

    >>> [float(graph_sizes(seqs)) for seqs in (1, 2, 256, 1024)]
    [2.0, 3.0, 51.0, 51.0]
    """
    most = np.minimum(2 * np.asarray(max_num_seqs, dtype=float), largest)
    small = np.minimum(np.floor(np.log2(np.maximum(most, 1))) + 1, 3)
    sizes: Number = small + np.floor(np.minimum(most, 248) / 8) + np.maximum(np.floor(most / 16) - 15, 0)
    return sizes


def rotary_bytes(shards: LayerShards, *, element_bytes: Number) -> Number:
    """The table of sines and cosines that every device holds: `longest context x head size` elements."""
    dims = [layer.cache.rope_head_dim or layer.cache.head_dim for layer in shards.layers]
    return float(shards.max_context_tokens or 0) * max(dims, default=0) * element_bytes


def adapters_bytes(shards: LayerShards, *, adapters: Number, rank: Number, element_bytes: Number) -> Number:
    """LoRA slots held at serving: `adapters x rank x sum over adapted weights of (rows + columns)` elements.

    Every attention, MLP and expert weight has a slot of the largest rank, used or not.
    """
    sides: Number = 0.0
    for layer in shards.layers:
        each = sum((g.rows_out + g.cols_in for g in layer.gemms if g.gemm and g.part in _ADAPTED), start=0.0)
        if layer.experts:
            wide = sum((g.rows_out + g.cols_in for g in layer.experts.gemms), start=0.0)
            each = each + layer.experts.local * wide
        sides = sides + layer.count * each
    return adapters * rank * sides * element_bytes
