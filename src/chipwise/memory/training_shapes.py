"""Counts of one training device: parameters held, parameters trained, activations saved for the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from chipwise.memory.training_job import Adapter, TrainingLayout
from chipwise.parallelism import GemmShard, LayerShard, LayerShards, Number

_ADAPTED: Mapping[str, Callable[[GemmShard], bool]] = {
    "query-value": lambda gemm: gemm.part == "attention" and gemm.name.startswith(("q", "v")),
    "attention": lambda gemm: gemm.part == "attention",
    "all-linear": lambda gemm: gemm.part in {"attention", "mlp", "shared-expert"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceParams:
    """Parameters on the fullest device: `dense` layers, `expert` layers, `outer` (embedding, head, norm, towers)."""

    dense: Number
    expert: Number
    outer: Number

    @property
    def total(self) -> Number:
        """All of them."""
        return self.dense + self.expert + self.outer


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedElements:
    """Elements one token leaves for the backward pass on one device, summed over the layers of the fullest stage.

    `stream` is the residual stream and what the norms make of it (`tp` cuts it only with sequence parallelism);
    `inner` is what attention and MLP keep, `routed` what experts do, `products` the part of both that only the
    MLP's last matrix needs; `scores` is what attention without a fused kernel keeps for one token of context;
    `checkpoint` is the input of every layer, all that full recomputation keeps; `layer` is the largest layer's
    stream, inner and routed, which recomputation brings back one layer at a time.
    """

    stream: Number
    inner: Number
    routed: Number
    products: Number
    scores: Number
    checkpoint: Number
    layer: Number


def _each_expert(layer: LayerShard) -> Number:
    if layer.experts is None:
        return 0.0
    return layer.experts.local * sum((gemm.params for gemm in layer.experts.gemms), start=0.0)


def device_params(shards: LayerShards) -> DeviceParams:
    """Parameters of the fullest device: its layers, and the copies it holds of embedding, head, norm and towers."""
    dense: Number = 0.0
    expert: Number = 0.0
    for layer in shards.layers:
        copies = layer.count * layer.stored_fraction * shards.stated_fraction
        dense = dense + copies * sum((gemm.params for gemm in layer.gemms), start=0.0)
        expert = expert + copies * _each_expert(layer)
    held = shards.outer_copies or tuple(float(gemm.stored) for gemm in shards.outer)
    outer = sum((n * g.rows_out * g.cols_in for n, g in zip(held, shards.outer, strict=True)), start=0.0)
    towers = sum((gemm.params * copies for gemm, copies in shards.towers), start=0.0)
    return DeviceParams(dense=dense, expert=expert, outer=(outer + towers) * shards.stated_fraction)


def adapter_params(shards: LayerShards, adapter: Adapter) -> Number:
    """Parameters of the adapters on one device: rank x (in + out) for every matrix they stand beside.

    Matrices of routed experts get none.

    Raises:
        KeyError: targets that `Adapter` does not know.
    """
    chosen = _ADAPTED[adapter.targets]
    per_rank: Number = 0.0
    for layer in shards.layers:
        each = sum((gemm.rows_out + gemm.cols_in for gemm in layer.gemms if gemm.gemm and chosen(gemm)), start=0.0)
        per_rank = per_rank + each * layer.count
    return adapter.rank * per_rank


def embedding_params(shards: LayerShards) -> Number:
    """Parameters of embedding and head on one device, a tied pair counted once."""
    return sum((gemm.params for gemm in shards.outer if gemm.part in {"embedding", "head"}), start=0.0)


def kept_by(gemms: tuple[GemmShard, ...], parts: frozenset[str]) -> Number:
    """Elements that the matrices of `parts` leave for one token.

    The outputs of the first ones (query, key, value; gate, up) and the input of the last one (cut along its input).
    """
    own = [gemm for gemm in gemms if gemm.gemm and gemm.part in parts]
    return sum((gemm.cols_in if gemm.reduced else gemm.rows_out for gemm in own), start=0.0)


_ATTENTION = frozenset({"attention"})
_MLP = frozenset({"mlp", "shared-expert"})
_EXPERT = frozenset({"expert"})


def expert_width(layer: LayerShard) -> Number:
    """Elements of a token as it is sent to an expert: what its first matrix takes (a latent where it has one)."""
    if layer.experts is None:
        return 0.0
    return max((gemm.cols_in for gemm in layer.experts.gemms if not gemm.reduced), default=0.0, key=np.max)


def _routed(layer: LayerShard) -> Number:
    if layer.experts is None:
        return 0.0
    kept = kept_by(layer.experts.gemms, _EXPERT) + 2.0 * expert_width(layer)
    return layer.experts.per_token * kept


def _products(layer: LayerShard) -> Number:
    own = sum((g.cols_in for g in layer.gemms if g.part in _MLP and g.reduced), start=0.0)
    if layer.experts is None:
        return own
    return own + layer.experts.per_token * sum((g.cols_in for g in layer.experts.gemms if g.reduced), start=0.0)


def _norms(layer: LayerShard) -> int:
    attends = any(gemm.part == "attention" and gemm.gemm for gemm in layer.gemms)
    feeds = layer.experts is not None or any(gemm.part == "mlp" and gemm.gemm for gemm in layer.gemms)
    return int(attends) + int(feeds)


def saved_elements(shards: LayerShards, layout: TrainingLayout) -> SavedElements:
    """What one token leaves for the backward pass, by kind, over the layers of one device.

    A transformer layer keeps, in multiples of the hidden size h: the input and output of both norms (4 h), query,
    key, value and attention output, and the MLP's outputs and last input. A routed token counts for every expert
    it visits, once when it is sent and once when it is joined.

    Source: Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022,
    arXiv:2205.05198, section 4 (34 s b h bytes a layer with a 4 h MLP and dropout masks).
    """
    cut = layout.tp if layout.sequence_parallel else 1.0
    stream: Number = 0.0
    inner: Number = 0.0
    routed: Number = 0.0
    products: Number = 0.0
    scores: Number = 0.0
    largest: Number = 0.0
    for layer in shards.layers:
        layer_stream = 2.0 * _norms(layer) * shards.hidden_size / cut
        layer_inner = kept_by(layer.gemms, _ATTENTION) + kept_by(layer.gemms, _MLP)
        layer_routed = _routed(layer)
        stream = stream + layer.count * layer_stream
        inner = inner + layer.count * layer_inner
        routed = routed + layer.count * layer_routed
        products = products + layer.count * _products(layer)
        scores = scores + layer.count * np.where(layer.cache.kind in {"none", "mamba", "linear"}, 0.0, 1.0) * (
            layer.cache.query_heads
        )
        largest = np.maximum(largest, layer_stream + layer_inner + layer_routed)
    checkpoint = sum((layer.count for layer in shards.layers), start=0.0) * shards.hidden_size / cut
    return SavedElements(
        stream=stream,
        inner=inner,
        routed=routed,
        products=products,
        scores=scores,
        checkpoint=checkpoint,
        layer=largest,
    )
