"""Counts of one training device: parameters held and trained, and the bytes a token leaves for the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields

import numpy as np

from chipwise.memory.training_job import Adapter, TrainingLayout
from chipwise.parallelism import GemmShard, LayerShard, LayerShards, Number

ELEMENT_BYTES = 2.0
"""Of an activation."""
_ADAPTED: Mapping[str, Callable[[GemmShard], bool]] = {
    "query-value": lambda gemm: gemm.part == "attention" and gemm.name.rpartition(".")[2].startswith(("q", "v")),
    "attention": lambda gemm: gemm.part == "attention",
    "all-linear": lambda gemm: gemm.part in {"attention", "mlp", "shared-expert"},
}
_SCORELESS = frozenset({"none", "mamba", "linear"})


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


def adapted(layer: LayerShard, adapter: Adapter) -> list[GemmShard]:
    """The matrices of a layer that an adapter stands beside. Those of routed experts get none.

    Raises:
        KeyError: targets that `Adapter` does not know.
    """
    chosen = _ADAPTED[adapter.targets]
    return [gemm for gemm in layer.gemms if gemm.gemm and chosen(gemm)]


def adapter_params(shards: LayerShards, adapter: Adapter) -> Number:
    """Parameters of the adapters on one device: rank x (in + out) for every matrix they stand beside."""
    per_rank: Number = 0.0
    for layer in shards.layers:
        each = sum((gemm.rows_out + gemm.cols_in for gemm in adapted(layer, adapter)), start=0.0)
        per_rank = per_rank + each * layer.count
    return adapter.rank * per_rank


def embedding_params(shards: LayerShards) -> Number:
    """Parameters of embedding and head on one device, a tied pair counted once."""
    return sum((gemm.params for gemm in shards.outer if gemm.part in {"embedding", "head"}), start=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """What a trainer's kernels leave of one element, in bytes, for one job.

    `norm_bytes` of what enters a norm; `input_bytes` of what enters a matrix that is trained (0 where it is frozen);
    `adapter_bytes` of the copy an adapter makes of its input (0: adapters share what enters their matrix).
    `fused_activation`: gate and activation are one kernel. `expanded_kv`: keys and values are repeated for every query
    head. `routed_outputs`: 1 where what an expert gives is weighted
    by its router afterwards, 0 where its input is weighted.
    """

    norm_bytes: float
    input_bytes: float
    adapter_bytes: float
    fused_activation: bool
    expanded_kv: bool
    routed_outputs: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """Bytes that one token leaves on one device, a field for what can be recomputed by itself.

    `norm_inputs` and `norm_outputs` of every norm as wide as the model; `attention` is query, key, value and what
    attention gives, `up_projected` the part of them that comes out of a latent; `mlp`, `shared` and `routed` are the
    outputs of the first matrices of dense MLPs, shared and routed experts, `..._products` what their last matrices
    take; `adapters` what adapters keep of their own. `heads` counts the query heads of layers that have scores.
    """

    norm_inputs: Number = 0.0
    norm_outputs: Number = 0.0
    attention: Number = 0.0
    up_projected: Number = 0.0
    mlp: Number = 0.0
    mlp_products: Number = 0.0
    shared: Number = 0.0
    shared_products: Number = 0.0
    routed: Number = 0.0
    routed_products: Number = 0.0
    adapters: Number = 0.0
    heads: Number = 0.0

    def times(self, count: Number) -> Saved:
        """The same of `count` layers."""
        return Saved(**{one.name: getattr(self, one.name) * count for one in fields(self)})

    def plus(self, other: Saved) -> Saved:
        """Both together."""
        return Saved(**{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)})

    def without(self, names: Iterable[str]) -> Saved:
        """What is left where the fields of these names are recomputed."""
        gone = set(names)
        return Saved(**{one.name: 0.0 if one.name in gone else getattr(self, one.name) for one in fields(self)})

    @property
    def total(self) -> Number:
        """Bytes of all of them; scores are no bytes of a token alone."""
        return sum((getattr(self, one.name) for one in fields(self) if one.name != "heads"), start=0.0)


def _gate_outputs(gemms: list[GemmShard], kernels: Kernels) -> Number:
    """What the first matrices give; a kernel for the activation alone leaves its output too where there is a gate."""
    given = sum((gemm.rows_out for gemm in gemms if not gemm.reduced), start=0.0)
    taken = sum((gemm.cols_in for gemm in gemms if gemm.reduced), start=0.0)
    activated = np.where(given > taken, taken, 0.0) if not kernels.fused_activation else 0.0
    return ELEMENT_BYTES * (given + activated)


def _products(gemms: list[GemmShard], kernels: Kernels) -> Number:
    return kernels.input_bytes * sum((gemm.cols_in for gemm in gemms if gemm.reduced), start=0.0)


def expert_width(layer: LayerShard) -> Number:
    """Elements of a token as it is sent to an expert: what its first matrix takes (a latent where it has one)."""
    if layer.experts is None:
        return 0.0
    return max((gemm.cols_in for gemm in layer.experts.gemms if not gemm.reduced), default=0.0, key=np.max)


def _of(layer: LayerShard, part: str) -> list[GemmShard]:
    return [gemm for gemm in layer.gemms if gemm.gemm and gemm.part == part]


def _repeated(layer: LayerShard, kernels: Kernels) -> Number:
    """Elements that repeating keys and values for every query head adds."""
    cache = layer.cache
    if not kernels.expanded_kv or cache.kind in {*_SCORELESS, "mla"}:
        return 0.0
    return np.maximum(cache.query_heads - cache.kv_heads, 0.0) * (cache.head_dim + cache.value_head_dim)


def saved_by(layer: LayerShard, *, hidden: int, layout: TrainingLayout, kernels: Kernels) -> Saved:
    """What one token leaves in one layer, on one device.

    A norm leaves its input (twice as wide where its kernel works in 32 bits) and, where the matrices behind it are
    trained, its output. A token that is routed counts for every expert it visits, on a device that holds
    `1 / min(ep, tp)` of them: its input where experts are trained, and its output where that is weighted afterwards.

    Source: Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022,
    arXiv:2205.05198, section 4 (34 s b h bytes a layer with a 4 h MLP and dropout masks).
    """
    cut = layout.tp if layout.sequence_parallel else 1.0
    norms = sum(gemm.part == "norm" and gemm.rows_out == hidden for gemm in layer.gemms if "bias" not in gemm.name)
    attention, dense, shared = (_of(layer, part) for part in ("attention", "mlp", "shared-expert"))
    up_projected: Number = 0.0
    if layer.cache.kind == "mla":
        up_projected = sum((g.rows_out for g in attention if not g.reduced and g.cols_in < hidden), start=0.0)
    kept = sum((gemm.cols_in if gemm.reduced else gemm.rows_out for gemm in attention), start=0.0)
    visits: Number = 0.0
    experts: list[GemmShard] = []
    if layer.experts is not None:
        experts = [gemm for gemm in layer.experts.gemms if gemm.gemm]
        visits = layer.experts.per_token / np.minimum(layout.ep, cut)
    carried = expert_width(layer) * (kernels.input_bytes + ELEMENT_BYTES * kernels.routed_outputs)
    return Saved(
        norm_inputs=norms * hidden * kernels.norm_bytes / cut,
        norm_outputs=norms * hidden * kernels.input_bytes / cut,
        attention=ELEMENT_BYTES * (kept - up_projected + _repeated(layer, kernels)),
        up_projected=ELEMENT_BYTES * up_projected,
        mlp=_gate_outputs(dense, kernels),
        mlp_products=_products(dense, kernels),
        shared=_gate_outputs(shared, kernels),
        shared_products=_products(shared, kernels),
        routed=visits * (_gate_outputs(experts, kernels) + carried),
        routed_products=visits * _products(experts, kernels),
        heads=0.0 if layer.cache.kind in _SCORELESS else layer.cache.query_heads,
    )


def adapter_inputs(layer: LayerShard, adapter: Adapter, kernels: Kernels) -> Number:
    """Bytes a token leaves for the adapters of a layer: a copy for each, or once what several matrices read alike."""
    own = adapted(layer, adapter)
    if kernels.adapter_bytes:
        return kernels.adapter_bytes * sum((gemm.cols_in for gemm in own), start=0.0)
    alone = sum((gemm.cols_in for gemm in own if gemm.reduced), start=0.0)
    parts = {gemm.part for gemm in own if not gemm.reduced}
    alike = (max((g.cols_in for g in own if g.part == part and not g.reduced), key=np.max) for part in parts)
    return ELEMENT_BYTES * (alone + sum(alike, start=0.0))


def adapter_outputs(layer: LayerShard, adapter: Adapter) -> Number:
    """Bytes a token leaves where adapters scale what their matrix gives (DoRA's magnitudes): that, once.

    Source: Liu et al., "DoRA: Weight-Decomposed Low-Rank Adaptation", 2024, arXiv:2402.09353, section 4.3.
    """
    return ELEMENT_BYTES * sum((gemm.rows_out for gemm in adapted(layer, adapter)), start=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedElements:
    """Elements of one token that are read and written between the matrices of one device's layers, forward.

    `stream` is the residual stream and what norms make of it, `inner` what attention and dense MLPs hold, `routed`
    what experts do, `scores` the heads whose scores pass where attention has no fused kernel.
    """

    stream: Number
    inner: Number
    routed: Number
    scores: Number


def _feeds(layer: LayerShard) -> bool:
    return layer.experts is not None or bool(_of(layer, "mlp"))


def _outputs_and_last_input(gemms: Iterable[GemmShard]) -> Number:
    return sum((gemm.cols_in if gemm.reduced else gemm.rows_out for gemm in gemms), start=0.0)


def saved_elements(shards: LayerShards, layout: TrainingLayout) -> PassedElements:
    """What passes between the matrices, by kind, over the layers of one device."""
    cut = layout.tp if layout.sequence_parallel else 1.0
    stream: Number = 0.0
    inner: Number = 0.0
    routed: Number = 0.0
    scores: Number = 0.0
    for layer in shards.layers:
        norms = int(bool(_of(layer, "attention"))) + int(_feeds(layer))
        stream = stream + layer.count * 2.0 * norms * shards.hidden_size / cut
        own = [*_of(layer, "attention"), *_of(layer, "mlp"), *_of(layer, "shared-expert")]
        inner = inner + layer.count * _outputs_and_last_input(own)
        if layer.experts is not None:
            each = _outputs_and_last_input(gemm for gemm in layer.experts.gemms if gemm.gemm)
            routed = routed + layer.count * layer.experts.per_token * (each + 2.0 * expert_width(layer))
        if layer.cache.kind not in _SCORELESS:
            scores = scores + layer.count * layer.cache.query_heads
    return PassedElements(stream=stream, inner=inner, routed=routed, scores=scores)
