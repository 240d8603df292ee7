"""`shard(model, split)`: what one device of a replica holds and multiplies. Memory and perf both read it.

The device described is the fullest one: `stages.fullest_stage` says which layers and which of embedding and
head its pipeline stage holds. Every field is a float or an array that broadcasts over those of the split.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from chipwise.parallelism.arrays import Number, ceil_div
from chipwise.parallelism.stages import fullest_stage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chipwise.model import Attention, Layer, ModelSpec, Weight
    from chipwise.model.spec import Part
    from chipwise.parallelism.split import Split

VOCABULARY_PADDING = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmShard:
    """One weight on one device: `rows_out` x `cols_in` after the split, in `format`.

    `reduced` says that its output is a partial sum that tensor parallelism must all-reduce. `gemm` is False
    for what is looked up or scaled by (embedding, norms, biases) and costs memory only.
    """

    name: str
    part: Part
    rows_out: Number
    cols_in: Number
    format: str
    gemm: bool
    reduced: bool
    stored: bool

    @property
    def params(self) -> Number:
        """Stored parameters of this weight on the device."""
        return self.rows_out * self.cols_in if self.stored else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertShard:
    """The routed experts on one device: `local` whole experts, each cut `expert_tp` ways."""

    routed: int
    per_token: int
    local: Number
    gemms: tuple[GemmShard, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheShard:
    """What one layer caches on one device, in elements: a token's share, its window, a sequence's state.

    `compressed_every`: beside its window, one entry of that size for every so many tokens of the whole past.
    """

    kind: str
    query_heads: Number
    kv_heads: Number
    head_dim: int
    value_head_dim: int
    elements_per_token: Number
    window_tokens: int | None
    state_bytes_per_sequence: Number
    kv_lora_rank: int
    rope_head_dim: int
    indexer_dim: int
    sparse_tokens: int | None
    causal: bool
    compressed_every: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerShard:
    """`count` equal layers of the fullest pipeline stage (`count_total` in the whole model) on one device.

    `stored_fraction` is below 1 where layers share their weights (ALBERT stores 1 of 12).
    """

    count: Number
    count_total: int
    gemms: tuple[GemmShard, ...]
    cache: CacheShard
    experts: ExpertShard | None
    stored_fraction: float = 1.0

    @property
    def all_reduces(self) -> int:
        """Tensor-parallel all-reduces a layer: one behind each partial sum, experts counted once."""
        partial = {gemm.part for gemm in self.gemms if gemm.reduced}
        dense = len(partial - {"shared-expert"})
        return dense + (1 if self.experts is not None or "shared-expert" in partial else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerShards:
    """A model on one device of a replica: its layers, its embedding and head, the towers beside.

    `outer` lists every outer weight of the model; `outer_copies` says how many copies of each the fullest
    stage stores. `mtp` are the multi-token-prediction layers, which an engine loads only to speculate.
    `stated_fraction` scales the weights to a total that a better source than the layer list gave. `model_type` names
    the family, for engines that treat one apart.
    """

    split: Split
    layers: tuple[LayerShard, ...]
    outer: tuple[GemmShard, ...]
    towers: tuple[tuple[GemmShard, float], ...]
    """Cut over tp as the model is."""
    hidden_size: int
    vocab_size: int
    layer_count: int
    outer_copies: tuple[Number, ...] = ()
    mtp: tuple[LayerShard, ...] = ()
    stated_fraction: float = 1.0
    max_context_tokens: int | None = None
    model_type: str = ""
    whole_towers: tuple[tuple[GemmShard, float], ...] = ()
    """The same weights uncut, for engines that give every device a whole tower."""


def tp_share(units: int, tp: Number) -> Number:
    """The share of a weight that one device holds when `units` indivisible pieces go over `tp` devices.

    `ceil(units / tp) / units`: 8 KV heads over 16 devices are replicated, so each holds one of eight.

    >>> float(tp_share(8, 16)), float(tp_share(64, 8)), float(tp_share(1, 8))
    (0.125, 0.125, 1.0)
    """
    return ceil_div(units, tp) / units


Share = Callable[[int], Number]
"""`tp_share` at one degree, by units: many weights of a model have as many pieces."""


def _shares(tp: Number) -> Share:
    @cache
    def share(units: int) -> Number:
        return tp_share(units, tp)

    return share


def _gemm_shard(weight: Weight, share_of: Share) -> GemmShard:
    share = share_of(weight.tp_units)
    padded = weight.out_features
    if weight.part in {"embedding", "head"} and weight.tp_units > 1:
        padded = -(-weight.out_features // VOCABULARY_PADDING) * VOCABULARY_PADDING
        share = share_of(padded)
    return GemmShard(
        name=weight.name,
        part=weight.part,
        rows_out=padded * (share if weight.cut == "out" else 1.0),
        cols_in=weight.in_features * (share if weight.cut == "in" else 1.0),
        format=weight.format,
        gemm=weight.gemm,
        reduced=weight.cut == "in" and weight.tp_units > 1,
        stored=weight.stored,
    )


def _cache_shard(attention: Attention, tp: Number) -> CacheShard:
    heads = np.maximum(ceil_div(attention.query_heads, tp), min(attention.query_heads, 1))
    kv_heads = ceil_div(attention.kv_heads, tp)
    mla = attention.kind == "mla"
    growing = attention.cache_elements_per_token
    per_token = growing * np.ones_like(kv_heads) if mla else kv_heads * (growing / max(attention.kv_heads, 1))
    state_parts = np.minimum(tp, max(attention.kv_heads, 1))
    return CacheShard(
        kind=attention.kind,
        query_heads=heads,
        kv_heads=kv_heads,
        head_dim=attention.head_dim,
        value_head_dim=attention.value_head_dim,
        elements_per_token=per_token if growing else np.zeros_like(kv_heads),
        window_tokens=attention.window_tokens,
        state_bytes_per_sequence=attention.state_bytes_per_sequence / state_parts,
        kv_lora_rank=attention.kv_lora_rank,
        rope_head_dim=attention.rope_head_dim,
        indexer_dim=attention.indexer_dim,
        sparse_tokens=attention.sparse_tokens,
        causal=attention.causal,
        compressed_every=attention.compressed_every,
    )


def _expert_shard(layer: Layer, split: Split) -> ExpertShard | None:
    if layer.experts is None:
        return None
    share = _shares(split.stage_devices / split.ep)
    return ExpertShard(
        routed=layer.experts.routed,
        per_token=layer.experts.per_token,
        local=ceil_div(layer.experts.routed, split.ep),
        gemms=tuple(_gemm_shard(weight, share) for weight in layer.experts.weights),
    )


def _layer_shard(layer: Layer, split: Split, share: Share, count: Number) -> LayerShard:
    return LayerShard(
        count=count,
        count_total=layer.count,
        gemms=tuple(_gemm_shard(weight, share) for weight in layer.weights),
        cache=_cache_shard(layer.attention, split.tp),
        experts=_expert_shard(layer, split),
        stored_fraction=1.0 if layer.stored_count is None else layer.stored_count / layer.count,
    )


def shard(model: ModelSpec, split: Split) -> LayerShards:
    """Lay `model` over `split`; the result describes the fullest device of one replica.

    A device holds `tp_share` of each weight; experts are dealt out whole over ep and cut over `tp * dp / ep`.

    Args:
        model: the layers, whatever their family.
        split: whole numbers, or arrays of them that broadcast against each other.

    Returns:
        Shards whose numbers have the broadcast shape of the split.
    """
    stage = fullest_stage(model, split.pp, split.spare_layers)
    towers = [(weight, float(copies)) for weight, copies in _tower_weights(model)]
    placed = zip(model.layers, stage.layer_counts, strict=True)
    share, whole = _shares(split.tp), _shares(1)
    return LayerShards(
        split=split,
        layers=tuple(_layer_shard(layer, split, share, count) for layer, count in placed),
        outer=tuple(_gemm_shard(weight, share) for weight in model.outer),
        towers=tuple((_gemm_shard(weight, share), copies) for weight, copies in towers),
        hidden_size=model.hidden_size,
        vocab_size=model.vocab_size,
        layer_count=model.layer_count,
        outer_copies=stage.outer_copies,
        mtp=tuple(_layer_shard(layer, split, share, float(layer.count)) for layer in model.mtp),
        stated_fraction=_stated_fraction(model),
        max_context_tokens=model.max_context_tokens,
        model_type=model.model_type,
        whole_towers=tuple((_gemm_shard(weight, whole), copies) for weight, copies in towers),
    )


@lru_cache(maxsize=256)
def _stated_fraction(model: ModelSpec) -> float:
    counted = sum(layer.params for layer in model.layers) + sum(weight.params for weight in model.outer)
    counted += sum(tower.params for tower in model.towers)
    return model.params_total / counted if counted else 1.0


def _tower_weights(model: ModelSpec) -> Iterable[tuple[Weight, int]]:
    for tower in model.towers:
        for layer in tower.layers:
            yield from ((weight, layer.count) for weight in layer.weights)
        yield from ((weight, 1) for weight in tower.weights)
