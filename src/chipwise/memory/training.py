"""Bytes of a training step on its fullest device, term by term."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from chipwise.memory.training_job import TrainingJob, TrainingLayout, training_shards
from chipwise.memory.training_recipes import Optimizer, Recipe, optimizer_of, recipe_of
from chipwise.memory.training_shapes import (
    DeviceParams,
    SavedElements,
    adapter_params,
    device_params,
    embedding_params,
    saved_elements,
)
from chipwise.model import ModelSpec
from chipwise.parallelism import LayerShards, Number
from chipwise.precision import bytes_per_param

NARROW = frozenset({"fp8", "mxfp8", "nvfp4", "mxfp4"})
ELEMENT_BYTES = 2.0
ADAPTER_BYTES = 4.0
SCORE_BYTES = 5.0
GATHERED_LAYERS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RolesInput:
    """The other models a preference method needs, in device bytes of bf16 weights, sharded as the actor is.

    `frozen` are only read (reference, reward); `trained` have states of their own (a critic). `generation_tp` cuts
    the weights of a generation engine on the same devices, and `generation_cache_bytes` is its cache; None: it runs
    elsewhere, or takes the memory in turn.
    """

    frozen: tuple[ModelSpec, ...] = ()
    trained: tuple[ModelSpec, ...] = ()
    generation_tp: Number | None = None
    generation_cache_bytes: Number = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMemoryInput:
    """A job of `model` laid out on devices; `coefficients` beats the recipe the job names (calibration only)."""

    model: ModelSpec
    layout: TrainingLayout
    job: TrainingJob
    roles: RolesInput = field(default_factory=RolesInput)
    coefficients: Recipe | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMemory:
    """Bytes on the fullest device; the terms add up to `total_bytes`.

    Where gradients fill what activations free, `activations_bytes` is what they need beyond that.
    """

    weights_bytes: Number
    gradients_bytes: Number
    optimizer_bytes: Number
    activations_bytes: Number
    adapters_bytes: Number
    cache_bytes: Number
    overhead_bytes: Number

    @property
    def total_bytes(self) -> Number:
        """The sum of the terms."""
        states = self.weights_bytes + self.gradients_bytes + self.optimizer_bytes + self.adapters_bytes
        return states + self.activations_bytes + self.cache_bytes + self.overhead_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBytes:
    """Weights, gradients and optimizer states of some parameters on one device."""

    weights_bytes: Number
    gradients_bytes: Number
    optimizer_bytes: Number


def state_bytes(
    *, params: Number, recipe: Recipe, optimizer: Optimizer, shards: tuple[Number, Number, Number]
) -> StateBytes:
    """Bytes of `params` trained parameters: each kind over its number of shards (weights, gradients, optimizer).

    `optimizer = params (master + moments x moment width) / shards`; AdamW in mixed precision is 2 + 4 + 12 = 18
    bytes a parameter with fp32 gradients, 16 with bf16 ones.

    Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", 2019,
    arXiv:1910.02054, section 3.1.
    """
    per_param = recipe.master_bytes * optimizer.needs_master
    per_param += optimizer.moments * recipe.moment_bytes + optimizer.state_bytes
    return StateBytes(
        weights_bytes=params * recipe.weight_bytes / shards[0],
        gradients_bytes=params * recipe.gradient_bytes / shards[1],
        optimizer_bytes=params * per_param * (1.0 - optimizer.on_host) / shards[2],
    )


def shard_counts(shard: str, replicas: Number) -> tuple[Number, Number, Number]:
    """Over how many devices weights, gradients and optimizer states are cut.

    >>> shard_counts("zero2", 8)
    (1.0, 8, 8)
    """
    return (
        replicas if shard == "zero3" else 1.0,
        replicas if shard in {"zero2", "zero3"} else 1.0,
        replicas if shard != "none" else 1.0,
    )


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


def kept_elements(saved: SavedElements, job: TrainingJob) -> Number:
    """Elements one token keeps on one device until its backward pass.

    Full recomputation keeps layer inputs. Selective recomputes what is cheap: attention scores and the outputs of
    the activation function. Adapters on attention alone leave nothing of the MLP's inputs to keep. In 8 and 4 bit
    training the inputs of matrices (norm outputs, the MLP's last input) are kept in one byte instead of two.
    """
    if job.recompute == "full":
        return saved.checkpoint
    inner = saved.inner + saved.routed
    if job.recompute == "selective":
        return saved.stream + inner - saved.products
    if job.adapts and job.adapter.targets != "all-linear":
        return saved.stream * 0.75 + inner - saved.products
    narrow = saved.stream / 2.0 + saved.products if job.precision in NARROW else 0.0
    return saved.stream + inner - narrow / 2.0


def activation_bytes(
    *, saved: SavedElements, shards: LayerShards, layout: TrainingLayout, job: TrainingJob, recipe: Recipe
) -> Number:
    """Peak of activations: the first stage with its micro-batches in flight, or the last with one and the logits.

    Full recomputation adds one layer brought back. Without a fused attention kernel the scores of every layer
    (one layer when recomputed) are kept: heads x context a token.
    """
    tokens = job.tokens_per_micro_batch / layout.cp
    unit = ELEMENT_BYTES * recipe.activation_factor
    frozen_codes = job.adapts and _base_bytes(job) < ELEMENT_BYTES and job.recompute != "full"
    kept = kept_elements(saved, job) * unit * (recipe.quantised_factor if frozen_codes else 1.0)
    scores = (0.0 if job.flash_attention else SCORE_BYTES) * saved.scores * job.seq_len
    layers = sum((layer.count for layer in shards.layers), start=0.0)
    working = (saved.layer * unit + scores / np.maximum(layers, 1.0)) if job.recompute == "full" else 0.0
    kept = kept + (0.0 if job.recompute != "none" else scores)
    held = in_flight(pp=layout.pp, vp=layout.vp, micro_batches=job.micro_batches)
    fused = recipe.fused_loss > 0 if job.fused_loss is None else job.fused_loss
    vocabulary = max((gemm.rows_out for gemm in shards.outer if gemm.part == "head"), default=0.0, key=np.max)
    logits = vocabulary * (0.0 if fused else recipe.logits_bytes)
    last = kept + np.maximum(working, logits)
    return tokens * np.maximum(np.where(np.asarray(layout.pp) > 1, held * kept + working, 0.0), last)


def _gathered(params: DeviceParams, shards: LayerShards, layout: TrainingLayout, recipe: Recipe) -> Number:
    """FSDP brings back the layer it works on and the next one, and the embedding or head once."""
    if layout.shard != "zero3":
        return 0.0
    layers = np.maximum(sum((layer.count for layer in shards.layers), start=0.0), 1.0)
    return (GATHERED_LAYERS * (params.dense + params.expert) / layers + params.outer) * recipe.gather_bytes


def _shard_widths(layout: TrainingLayout) -> tuple[Number, Number]:
    dense = layout.replicas if layout.sharded_over is None else layout.sharded_over
    return dense, np.minimum(layout.expert_replicas, np.maximum(dense, 1.0))


def _trained_states(params: DeviceParams, layout: TrainingLayout, recipe: Recipe, optimizer: Optimizer) -> StateBytes:
    dense, expert = _shard_widths(layout)
    own = state_bytes(
        params=params.dense + params.outer, recipe=recipe, optimizer=optimizer, shards=shard_counts(layout.shard, dense)
    )
    routed = state_bytes(
        params=params.expert, recipe=recipe, optimizer=optimizer, shards=shard_counts(layout.shard, expert)
    )
    return StateBytes(
        weights_bytes=own.weights_bytes + routed.weights_bytes,
        gradients_bytes=own.gradients_bytes + routed.gradients_bytes,
        optimizer_bytes=own.optimizer_bytes + routed.optimizer_bytes,
    )


def _frozen_weights(params: DeviceParams, layout: TrainingLayout, weight_bytes: float) -> Number:
    dense, expert = _shard_widths(layout)
    cut = layout.shard == "zero3"
    own = params.dense / (dense if cut else 1.0) + params.expert / (expert if cut else 1.0)
    return own * weight_bytes + params.outer * ELEMENT_BYTES / (dense if cut else 1.0)


def _base_bytes(job: TrainingJob) -> float:
    held = job.base_format or ("nf4" if job.method == "qlora" else "bf16")
    return bytes_per_param(held)


def _adapter_bytes(shards: LayerShards, job: TrainingJob, optimizer: Optimizer) -> Number:
    """Adapters with their gradients and fp32 moments.

    The low-rank ones are held in fp32, copies of embedding and head in bf16. DoRA's magnitudes are lost in rounding.
    """
    states = (optimizer.moments * ADAPTER_BYTES + optimizer.state_bytes) * (1.0 - optimizer.on_host)
    copies = embedding_params(shards) if job.adapter.train_embeddings else 0.0
    return adapter_params(shards, job.adapter) * (2.0 * ADAPTER_BYTES + states) + copies * (
        2.0 * ELEMENT_BYTES + states
    )


def _generation_bytes(model: ModelSpec, roles: RolesInput) -> Number:
    if roles.generation_tp is None:
        return 0.0
    layout = TrainingLayout(tp=roles.generation_tp)
    return device_params(training_shards(model, layout)).total * ELEMENT_BYTES


def _roles(given: TrainingMemoryInput, recipe: Recipe, optimizer: Optimizer) -> StateBytes:
    """The other models' bytes: frozen ones as bf16 weights, trained ones with their states."""
    weights: Number = _generation_bytes(given.model, given.roles)
    gradients: Number = 0.0
    states: Number = 0.0
    for model in given.roles.frozen:
        params = device_params(training_shards(model, given.layout))
        weights = weights + _frozen_weights(params, given.layout, ELEMENT_BYTES)
    for model in given.roles.trained:
        params = device_params(training_shards(model, given.layout))
        own = _trained_states(params, given.layout, recipe, optimizer)
        weights = weights + own.weights_bytes
        gradients = gradients + own.gradients_bytes
        states = states + own.optimizer_bytes
    return StateBytes(weights_bytes=weights, gradients_bytes=gradients, optimizer_bytes=states)


def _offloaded(states: StateBytes, job: TrainingJob) -> StateBytes:
    keep_states = 0.0 if job.offload != "none" else 1.0
    keep_weights = 0.0 if job.offload == "optimizer+weights" else 1.0
    return StateBytes(
        weights_bytes=states.weights_bytes * keep_weights,
        gradients_bytes=states.gradients_bytes,
        optimizer_bytes=states.optimizer_bytes * keep_states,
    )


def training_memory(given: TrainingMemoryInput) -> TrainingMemory:
    """Bytes of a training step on its fullest device.

    weights + gradients + optimizer states, each over the devices that share it, + activations at their peak +
    what the framework, its buffers and its allocator take. Adapters hold their own states, the frozen base none.

    Returns:
        Terms of the broadcast shape of the layout's and the job's numbers.

    Raises:
        UnknownNameError: a trainer, an optimizer or a format that is not known.
    """
    layout, job = given.layout, given.job
    recipe, optimizer = given.coefficients or recipe_of(job), optimizer_of(job)
    shards = training_shards(given.model, layout)
    params = device_params(shards)
    saved = saved_elements(shards, layout)
    activations = activation_bytes(saved=saved, shards=shards, layout=layout, job=job, recipe=recipe)
    if job.adapts:
        frozen = _frozen_weights(params, layout, _base_bytes(job))
        own = StateBytes(weights_bytes=frozen, gradients_bytes=0.0, optimizer_bytes=0.0)
        adapters = _adapter_bytes(shards, job, optimizer)
    else:
        own = _offloaded(_trained_states(params, layout, recipe, optimizer), job)
        adapters = 0.0
    others = _roles(given, recipe, optimizer)
    filled = np.where((recipe.gradients_persist > 0) | (np.asarray(job.micro_batches) > 1), 0.0, own.gradients_bytes)
    activations = np.maximum(activations - filled, 0.0)
    return TrainingMemory(
        weights_bytes=own.weights_bytes + others.weights_bytes,
        gradients_bytes=own.gradients_bytes + others.gradients_bytes,
        optimizer_bytes=own.optimizer_bytes + others.optimizer_bytes,
        activations_bytes=activations,
        adapters_bytes=adapters,
        cache_bytes=given.roles.generation_cache_bytes,
        overhead_bytes=recipe.fixed_bytes
        + recipe.slack_fraction * activations
        + _gathered(params, shards, layout, recipe),
    )
