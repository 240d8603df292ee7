"""What a training run is, before any chip: method, batch, precision, optimizer, and how it is laid over devices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from chipwise.errors import InputError, UnknownNameError
from chipwise.model import ModelSpec
from chipwise.parallelism import LayerShards, Number, Split, shard

Method = Literal["pretrain", "full-ft", "lora", "qlora", "dora", "dpo", "ppo", "grpo"]
Shard = Literal["none", "zero1", "zero2", "zero3"]
Recompute = Literal["none", "selective", "full"]
Offload = Literal["none", "optimizer", "optimizer+weights"]
Targets = Literal["query-value", "attention", "all-linear"]

PREFERENCE_METHODS = frozenset({"dpo", "ppo", "grpo"})
ADAPTER_METHODS = frozenset({"lora", "qlora", "dora"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingLayout:
    """How a model is laid over devices: `devices` = tp x pp x cp x dp.

    `dp` counts the copies whose gradients are averaged; `ep` deals whole experts over tp x cp x dp; `shard` cuts
    optimizer states (zero1), gradients too (zero2), weights too (zero3, FSDP) over `sharded_over` devices, None
    meaning cp x dp. `vp` is how many chunks of layers a pipeline stage holds (interleaving). Every number broadcasts.

    >>> TrainingLayout(tp=8, pp=4, dp=2).devices
    64
    """

    tp: Number = 1
    pp: Number = 1
    vp: Number = 1
    cp: Number = 1
    ep: Number = 1
    dp: Number = 1
    shard: Shard = "none"
    sequence_parallel: bool = True
    sharded_over: Number | None = None

    @property
    def devices(self) -> Number:
        """Devices of the whole run."""
        return self.tp * self.pp * self.cp * self.dp

    @property
    def replicas(self) -> Number:
        """Devices that hold the same dense weights: cp x dp."""
        return self.cp * self.dp

    @property
    def expert_replicas(self) -> Number:
        """Devices that hold the same experts: tp x cp x dp over ep and what still cuts an expert."""
        return np.maximum(self.replicas * self.tp / np.maximum(self.ep, self.tp), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """Low-rank adapters: `rank` on the matrices of `targets`. `train_embeddings` also trains embedding and head."""

    rank: Number = 16
    targets: Targets = "all-linear"
    train_embeddings: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJob:
    """What is trained and how, whatever the devices.

    `seq_len` is what a sequence is padded or packed to, in tokens; `micro_batch` sequences go through at a time on
    one data-parallel copy; `micro_batches` of them make one optimizer step. `trainer` names a row of the recipes
    (None: the usual one for the method). `base_format` is what a frozen base is held in (None: bf16, or nf4 in QLoRA).

    Raises:
        InputError: a number that is not positive, or a method, optimizer or mode that does not exist.
    """

    method: Method
    seq_len: Number
    micro_batch: Number
    micro_batches: Number = 1
    precision: str = "bf16"
    optimizer: str = "adamw"
    recompute: Recompute = "none"
    trainer: str | None = None
    adapter: Adapter = field(default_factory=Adapter)
    base_format: str | None = None
    flash_attention: bool = True
    fused_loss: bool | None = None
    offload: Offload = "none"
    update_in_backward: bool = False
    """Each weight is updated as soon as its gradient is there, so that gradients of one layer exist at a time."""
    recompute_modules: tuple[str, ...] | None = None
    """Parts that selective recomputation brings back (`training_activations.RECOMPUTED`); None: what is cheap."""
    even_routing: bool = False
    """Every expert gets as many tokens as the next: a benchmark may force it; else the busiest device gets more."""

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        for name, allowed in (("method", Method), ("recompute", Recompute), ("offload", Offload)):
            value = getattr(self, name)
            if value not in get_args(allowed):
                raise UnknownNameError(name, value, get_args(allowed))
        for name in ("seq_len", "micro_batch", "micro_batches"):
            if np.any(np.asarray(getattr(self, name)) <= 0):
                raise InputError(
                    f"{name} must be positive, not {getattr(self, name)}",
                    why="a step without a token trains nothing",
                    fix=f"give {name} of at least 1",
                )

    @property
    def adapts(self) -> bool:
        """Whether only adapters are trained and the base is frozen."""
        return self.method in ADAPTER_METHODS

    @property
    def tokens_per_micro_batch(self) -> Number:
        """Tokens of one micro-batch of one data-parallel copy, before cp cuts the sequence."""
        return self.seq_len * self.micro_batch


def training_shards(model: ModelSpec, layout: TrainingLayout) -> LayerShards:
    """What one device of the fullest pipeline stage holds: `shard` with the experts dealt out as trainers do.

    A trainer deals experts over tp x cp x dp and cuts one only where ep is smaller than tp.
    """
    spread = np.maximum(np.asarray(layout.ep, dtype=float) / layout.tp, 1.0)
    return shard(model, Split(tp=layout.tp, pp=layout.pp, cp=layout.cp, ep=layout.ep, dp=spread))


def layout_problem(model: ModelSpec, layout: TrainingLayout) -> str | None:
    """Why a scalar `layout` cannot train `model`; None where it can."""
    experts = {layer.experts.routed for layer in model.layers if layer.experts}
    if layout.ep != 1 and not experts:
        return f"ep={layout.ep} needs a mixture-of-experts model"
    uneven = [count for count in experts if count % layout.ep]
    if uneven:
        return f"ep={layout.ep} does not divide the {uneven[0]} experts"
    if (layout.tp * layout.replicas) % layout.ep:
        return f"ep={layout.ep} does not divide tp x cp x dp = {layout.tp * layout.replicas}"
    if layout.pp * layout.vp > max(model.layer_count, 1):
        return f"pp x vp = {layout.pp * layout.vp} stages are more than the {model.layer_count} layers"
    return None
