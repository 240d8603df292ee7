"""How one replica of a model is laid over devices, and which splits are legal for a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.model import ModelSpec

if TYPE_CHECKING:
    from chipwise.engines import SpareLayers
    from chipwise.parallelism.arrays import Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """tp, pp, cp devices a replica, times dp where experts are sharded over data-parallel attention.

    `ep` is over how many of a pipeline stage's devices whole experts are dealt out: 1 (every device holds its
    tensor-parallel piece of every expert) up to `tp * dp`. Every degree is a whole number or an array of them.
    `spare_layers` is the engine's rule for layers that pp does not divide.

    >>> Split(tp=8, pp=2).devices
    16
    """

    tp: Number = 1
    pp: Number = 1
    ep: Number = 1
    dp: Number = 1
    cp: Number = 1
    spare_layers: SpareLayers = "before-last"

    @property
    def devices(self) -> Number:
        """Devices of one replica."""
        return self.tp * self.pp * self.dp * self.cp

    @property
    def stage_devices(self) -> Number:
        """Devices of one pipeline stage over which experts may be dealt out."""
        return self.tp * self.dp


def tp_problem(model: ModelSpec, tp: int) -> str | None:
    """Why `tp` is no legal tensor-parallel degree for `model`; None where it is legal.

    tp must divide the query heads, divide or be a multiple of the KV heads (then they are replicated), and
    divide every MLP and expert width. Only layers with attention heads are asked.
    """
    for layer in model.layers:
        attention = layer.attention
        if attention.query_heads and attention.query_heads % tp:
            return f"tp={tp} does not divide the {attention.query_heads} attention heads"
        kv_heads = attention.kv_heads
        if attention.kind in {"full", "sliding", "chunked"} and kv_heads and kv_heads % tp and tp % kv_heads:
            return f"tp={tp} neither divides nor is a multiple of the {kv_heads} KV heads"
        for weight in layer.weights:
            if weight.part in {"mlp", "shared-expert"} and weight.tp_units > 1 and weight.tp_units % tp:
                return f"tp={tp} does not divide the MLP width {weight.tp_units}"
    return None


def legal_tp(model: ModelSpec, most: int = 64) -> list[int]:
    """Every legal tensor-parallel degree up to `most` that is a power of two, or divides the heads.

    Returns an ascending list that starts with 1.
    """
    return [tp for tp in range(1, most + 1) if tp_problem(model, tp) is None]


def ep_problem(model: ModelSpec, split: Split) -> str | None:
    """Why the expert split of scalar `split` is not legal; None where it is."""
    if split.ep == 1:
        return None
    routed = {layer.experts.routed for layer in model.layers if layer.experts}
    if not routed:
        return f"ep={split.ep} needs a mixture-of-experts model"
    if split.stage_devices % split.ep:
        return f"ep={split.ep} does not divide tp x dp = {split.stage_devices}"
    uneven = [count for count in routed if count % split.ep]
    return f"ep={split.ep} does not divide the {uneven[0]} experts" if uneven else None
