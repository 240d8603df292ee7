"""What a training step keeps between its forward and its backward pass, and what the loss adds at the peak."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np

from chipwise.memory.training_job import TrainingJob, TrainingLayout
from chipwise.memory.training_recipes import Fitted, Recipe
from chipwise.memory.training_shapes import ELEMENT_BYTES, Kernels, Saved, adapter_inputs, adapter_outputs, saved_by
from chipwise.parallelism import LayerShards, Number
from chipwise.precision import bytes_per_param

NARROW = frozenset({"fp8", "mxfp8", "nvfp4", "mxfp4"})
SCORE_GRADIENT_BYTES = 10.0
"""Of one attention score while its layer is at work without a fused kernel: its gradients in 16 and in 32 bits."""
RECOMPUTED: Mapping[str, tuple[str, ...]] = {
    "core_attn": ("heads",),
    "layernorm": ("norm_outputs",),
    "mla_up_proj": ("up_projected",),
    "mlp_act": ("mlp_products",),
    "moe_act": ("routed_products", "shared_products"),
    "mlp": ("mlp", "mlp_products"),
    "shared_experts": ("shared", "shared_products"),
    "moe": ("routed", "routed_products", "shared", "shared_products"),
}
"""What is not kept where a part is recomputed, by the names Megatron-Core gives the parts."""
SELECTIVE = ("core_attn", "layernorm", "mlp_act", "moe_act")
"""What `selective` recomputes where a job does not say: everything that is cheap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Bytes a token leaves on one device: `between` the passes, and `working` while one layer is brought back."""

    between: Number
    working: Number
    heads: Number
    """Query heads, over all layers, whose scores are kept."""
    heads_working: Number
    """Those of one layer whose scores are brought back."""
    heads_widest: Number
    """Those of the layer that has most."""


def kernels_of(job: TrainingJob, recipe: Recipe) -> Kernels:
    """What the kernels of a job leave: less where the base is frozen, inputs of 8 bits where it is trained in such."""
    frozen = job.adapts
    quantised = frozen and bytes_per_param(held_format(job)) < ELEMENT_BYTES
    inputs = recipe.quantised_inputs if quantised else 0.0 if frozen else ELEMENT_BYTES
    if inputs and job.precision in NARROW and not frozen:
        inputs = ELEMENT_BYTES / 2.0
    return Kernels(
        norm_bytes=recipe.norm_bytes + (ELEMENT_BYTES if recipe.eager and not frozen else 0.0),
        input_bytes=inputs,
        adapter_bytes=recipe.adapter_input_bytes,
        fused_activation=recipe.fused_activation > 0,
        expanded_kv=recipe.expanded_kv > 0 and job.flash_attention,
        routed_outputs=recipe.routed_outputs,
    )


def held_format(job: TrainingJob) -> str:
    """What a frozen base is held in."""
    return job.base_format or ("nf4" if job.method == "qlora" else "bf16")


def _layers(
    shards: LayerShards, layout: TrainingLayout, job: TrainingJob, how: tuple[Kernels, Fitted]
) -> list[tuple[Number, Saved]]:
    kernels, fitted = how
    hot = 1.0 if job.even_routing else fitted.hot_expert_factor
    found = []
    for layer in shards.layers:
        saved = saved_by(layer, hidden=shards.hidden_size, layout=layout, kernels=kernels)
        saved = replace(saved, routed=saved.routed * hot, routed_products=saved.routed_products * hot)
        if job.adapts:
            own = adapter_inputs(layer, job.adapter, kernels)
            own = own + (adapter_outputs(layer, job.adapter) if job.method == "dora" else 0.0)
            saved = replace(saved, adapters=own)
        found.append((layer.count, saved))
    return found


def kept_by(shards: LayerShards, layout: TrainingLayout, job: TrainingJob, recipe: Recipe, fitted: Fitted) -> Kept:
    """What one token leaves on one device under the job's recomputation.

    Full recomputation keeps the inputs of layers, and works on one layer at a time; selective recomputation drops the
    parts it names.
    """
    dropped = recomputed(job)
    total = Saved()
    working: Number = 0.0
    heads_working: Number = 0.0
    heads_widest: Number = 0.0
    for count, saved in _layers(shards, layout, job, (kernels_of(job, recipe), fitted)):
        left = saved.without(dropped)
        total = total.plus(left.times(count))
        working = np.maximum(working, saved.total - left.total)
        heads_working = np.maximum(heads_working, saved.heads - left.heads)
        heads_widest = np.maximum(heads_widest, saved.heads)
    inputs: Number = 0.0
    if job.recompute == "full" and not recipe.host_checkpoints:
        cut = layout.tp if layout.sequence_parallel else 1.0
        inputs = sum((layer.count for layer in shards.layers), start=0.0) * shards.hidden_size * ELEMENT_BYTES / cut
    return Kept(
        between=total.total + inputs,
        working=working,
        heads=total.heads,
        heads_working=heads_working,
        heads_widest=heads_widest,
    )


def recomputed(job: TrainingJob) -> tuple[str, ...]:
    """The fields of `Saved` that a job does not keep."""
    if job.recompute == "none":
        return ()
    if job.recompute == "full":
        return tuple(one.name for one in fields(Saved))
    names = SELECTIVE if job.recompute_modules is None else job.recompute_modules
    return tuple(field for name in names for field in RECOMPUTED[name])


def in_flight(*, pp: Number, vp: Number, micro_batches: Number) -> Number:
    """Micro-batches whose activations the first stage holds at once; never more than there are.

    pp with 1F1B, `pp (1 + (pp - 1) / (pp vp))` when stages are interleaved.

    Source: Korthikanti et al., 2022, arXiv:2205.05198, section 4.2.3.

    >>> float(in_flight(pp=8, vp=1, micro_batches=64)), float(in_flight(pp=8, vp=2, micro_batches=64))
    (8.0, 11.5)
    """
    pp, vp = np.asarray(pp, dtype=float), np.asarray(vp, dtype=float)
    held = np.where(vp > 1, pp + (pp - 1.0) / np.maximum(vp, 1.0), pp)
    return np.minimum(held, np.maximum(micro_batches, 1.0))


def logits_bytes(shards: LayerShards, job: TrainingJob, recipe: Recipe) -> Number:
    """What one token's logits take at the peak of the loss: nothing where the loss is fused with the head."""
    fused = recipe.fused_loss > 0 if job.fused_loss is None else job.fused_loss
    vocabulary = max((gemm.rows_out for gemm in shards.outer if gemm.part == "head"), default=0.0, key=np.max)
    return vocabulary * (0.0 if fused else recipe.logits_bytes)


def activation_bytes(
    shards: LayerShards, layout: TrainingLayout, job: TrainingJob, recipe: Recipe, fitted: Fitted
) -> Number:
    """Peak of activations: the first stage with its micro-batches in flight, or the last with one and the logits.

    Recomputation adds one layer brought back, or the logits where they are more. Without a fused attention kernel
    the scores of every layer (of one when recomputed) are kept: heads x context a token.
    """
    tokens = job.tokens_per_micro_batch / layout.cp
    kept = kept_by(shards, layout, job, recipe, fitted)
    plain = 0.0 if job.flash_attention else job.seq_len
    factor = fitted.eager_factor if recipe.eager else fitted.fused_factor
    between = factor * kept.between + recipe.score_bytes * plain * kept.heads
    at_work = recipe.score_bytes * kept.heads_working + SCORE_GRADIENT_BYTES * kept.heads_widest
    working = factor * kept.working + plain * at_work
    held = in_flight(pp=layout.pp, vp=layout.vp, micro_batches=job.micro_batches)
    last = between + np.maximum(working, logits_bytes(shards, job, recipe))
    return tokens * np.maximum(np.where(np.asarray(layout.pp) > 1, held * between + working, 0.0), last)
