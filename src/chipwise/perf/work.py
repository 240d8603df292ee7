"""What one device multiplies, reads and sends per layer kind: `LayerShards` gathered into few numbers.

GEMMs of one part of a layer in one format cross from bandwidth to compute at the same number of tokens, so
their parameters add up to one operation; equal layers that a model interleaves add up to one count. Both
leave the time as it was and make a step a few dozen array operations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from chipwise.parallelism import CacheShard, ExpertShard, GemmShard, LayerShard, LayerShards, Number

OPERATION_OF_PART = {
    "attention": "attention projections",
    "mlp": "mlp",
    "shared-expert": "shared experts",
    "router": "router",
    "head": "head",
    "other": "other projections",
}


OTHER_KERNELS = 4
"""Two norms (with the residual), rotary with the cache write, attention."""
INDEXER_KERNELS = 10
"""Of sparse attention beside its GEMMs: norm, rotary, two rotations, two quantisations, cache write, scores,
selection, gathering."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmWork:
    """GEMMs of one format that run together: their parameters, and the activations of a token."""

    operation: str
    format: str
    params: Number
    activations: Number
    """Elements a token brings in and takes out: the sum of rows and columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertWork:
    """Routed experts of one layer on one device; `gemm` describes a single expert's piece."""

    routed: int
    per_token: int
    local: Number
    gemm: GemmWork
    width: Number
    """Of the piece's narrow side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWork:
    """`count` equal layers of the fullest pipeline stage."""

    count: Number
    gemms: tuple[GemmWork, ...]
    experts: ExpertWork | None
    cache: CacheShard
    all_reduces: int
    kernels: int
    gemm_kernels: tuple[tuple[str, int], ...]
    """By weight format: matrices that are multiplied in one kernel count once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """All that a step needs of a model laid over a split."""

    layers: tuple[LayerWork, ...]
    head: tuple[GemmWork, ...]
    hidden_size: int
    vocab_size: int
    tp: Number
    pp: Number
    ep: Number
    dp: Number
    cp: Number


def _gather(gemms: Iterable[GemmShard]) -> tuple[GemmWork, ...]:
    found: dict[tuple[str, str], GemmWork] = {}
    for gemm in gemms:
        if not gemm.gemm:
            continue
        key = (OPERATION_OF_PART.get(gemm.part, gemm.part), gemm.format)
        before = found.get(key)
        found[key] = GemmWork(
            operation=key[0],
            format=key[1],
            params=gemm.rows_out * gemm.cols_in + (before.params if before else 0.0),
            activations=gemm.rows_out + gemm.cols_in + (before.activations if before else 0.0),
        )
    return tuple(found.values())


def _expert_work(experts: ExpertShard | None) -> tuple[ExpertWork, ...]:
    if experts is None:
        return ()
    return tuple(
        ExpertWork(
            routed=experts.routed, per_token=experts.per_token, local=experts.local, gemm=gemm, width=_width(experts)
        )
        for gemm in _gather(experts.gemms)
    )


def _width(experts: ExpertShard) -> Number:
    """The narrowest side of an expert's matrices on the device."""
    sides = [side for gemm in experts.gemms if gemm.gemm for side in (gemm.rows_out, gemm.cols_in)]
    found: Number = sides[0]
    for side in sides[1:]:
        found = np.minimum(found, side)
    return found


def _kernels(layer: LayerShard) -> int:
    """Kernels a layer launches: matrices of one part with one input fuse into one.

    Sparse attention adds its indexer: scores, selection, gathering.
    """
    gemms = sum(count for _, count in _gemm_kernels(layer))
    return gemms + OTHER_KERNELS + (INDEXER_KERNELS if layer.cache.sparse_tokens is not None else 0)


def _gemm_kernels(layer: LayerShard) -> tuple[tuple[str, int], ...]:
    experts = layer.experts.gemms if layer.experts is not None else ()
    fused = {(g.part, _bytes(g.cols_in), g.reduced): g.format for g in (*layer.gemms, *experts) if g.gemm}
    return tuple(sorted(Counter(fused.values()).items()))


def _layer_work(layer: LayerShard) -> LayerWork:
    gemms = _gather(layer.gemms)
    experts = _expert_work(layer.experts)
    return LayerWork(
        count=layer.count,
        gemms=gemms,
        experts=experts[0] if experts else None,
        cache=layer.cache,
        all_reduces=layer.all_reduces,
        kernels=_kernels(layer),
        gemm_kernels=_gemm_kernels(layer),
    )


def _bytes(number: Number) -> bytes:
    return np.asarray(number, dtype=float).tobytes()


def _signature(layer: LayerShard) -> tuple[object, ...]:
    cache = layer.cache
    gemms = tuple(
        (gemm.part, gemm.format, gemm.gemm, _bytes(gemm.rows_out), _bytes(gemm.cols_in)) for gemm in layer.gemms
    )
    experts = layer.experts
    routed = (experts.routed, experts.per_token, _bytes(experts.local), len(experts.gemms)) if experts else ()
    attention = (
        cache.kind,
        cache.window_tokens,
        cache.sparse_tokens,
        cache.compressed_every,
        cache.indexer_dim,
        cache.head_dim,
        _bytes(cache.query_heads),
        _bytes(cache.kv_heads),
    )
    return (
        gemms,
        routed,
        attention,
        _bytes(cache.elements_per_token),
        _bytes(cache.state_bytes_per_sequence),
    )


def work_of(shards: LayerShards) -> Work:
    """Gather `shards` into `Work`, equal layers into one."""
    found: dict[tuple[object, ...], tuple[LayerShard, Number]] = {}
    for layer in shards.layers:
        key = _signature(layer)
        first, count = found.get(key, (layer, 0.0))
        found[key] = (first, count + layer.count)
    split = shards.split
    counted = ((_layer_work(layer), count) for layer, count in found.values())
    return Work(
        layers=tuple(_with_count(layer, count) for layer, count in counted),
        head=_gather(gemm for gemm in shards.outer if gemm.part == "head"),
        hidden_size=shards.hidden_size,
        vocab_size=shards.vocab_size,
        tp=split.tp,
        pp=split.pp,
        ep=split.ep,
        dp=split.dp,
        cp=split.cp,
    )


def _with_count(layer: LayerWork, count: Number) -> LayerWork:
    return LayerWork(
        count=count,
        gemms=layer.gemms,
        experts=layer.experts,
        cache=layer.cache,
        all_reduces=layer.all_reduces,
        kernels=layer.kernels,
        gemm_kernels=layer.gemm_kernels,
    )
