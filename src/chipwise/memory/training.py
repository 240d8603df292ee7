"""Bytes of a training step on its fullest device, term by term."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from chipwise.memory.terms import cache_bytes_per_sequence, cache_bytes_per_token
from chipwise.memory.training_activations import activation_bytes, held_format
from chipwise.memory.training_job import TrainingJob, TrainingLayout, training_shards
from chipwise.memory.training_recipes import Fitted, Optimizer, Recipe, fitted, optimizer_of, recipe_of
from chipwise.memory.training_samples import SampleCounts, sample_bytes
from chipwise.memory.training_shapes import (
    ELEMENT_BYTES,
    DeviceParams,
    adapter_params,
    device_params,
    embedding_params,
)
from chipwise.model import ModelSpec
from chipwise.parallelism import LayerShards, Number
from chipwise.precision import bytes_per_param

ADAPTER_BYTES = 4.0
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
    """A job of `model` laid out on devices; `recipe` and `fitted` beat what the tables hold (calibration only).

    `sample` is there where the model is no language model: what one sample of a micro-batch counts.
    """

    model: ModelSpec
    layout: TrainingLayout
    job: TrainingJob
    roles: RolesInput = field(default_factory=RolesInput)
    recipe: Recipe | None = None
    fitted: Fitted | None = None
    sample: SampleCounts | None = None


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


def _gathered(params: DeviceParams, shards: LayerShards, given: TrainingMemoryInput, recipe: Recipe) -> Number:
    """What fully sharded weights bring back: the layer at work and the next one, and the embedding or head once.

    The gradients of the layer at work are whole too until they are reduced.
    """
    layout = given.layout
    layers = np.maximum(sum((layer.count for layer in shards.layers), start=0.0), 1.0)
    inner = params.dense + params.expert
    buckets = recipe.bucket_bytes * (np.asarray(layout.replicas) > 1)
    if layout.shard != "zero3":
        return 0.0 if given.job.adapts else buckets
    live = np.minimum(np.maximum(GATHERED_LAYERS * inner / layers, recipe.live_params), inner)
    own = 0.0 if given.job.adapts else inner / layers
    gathered: Number = (live + params.outer) * recipe.gather_bytes + own * ELEMENT_BYTES
    return np.where(np.asarray(layout.replicas) > 1, gathered, 0.0)


def _shard_widths(layout: TrainingLayout) -> tuple[Number, Number]:
    dense = layout.replicas if layout.sharded_over is None else layout.sharded_over
    return dense, np.minimum(layout.expert_replicas, np.maximum(dense, 1.0))


def _trained_states(params: DeviceParams, layout: TrainingLayout, recipe: Recipe, optimizer: Optimizer) -> StateBytes:
    """States of layers, of routed experts, and of embedding and head, which some optimizers leave to AdamW."""
    dense, expert = (shard_counts(layout.shard, width) for width in _shard_widths(layout))
    ends = replace(optimizer, moments=optimizer.outer_moments)
    each = (
        state_bytes(params=params.dense, recipe=recipe, optimizer=optimizer, shards=dense),
        state_bytes(params=params.expert, recipe=recipe, optimizer=optimizer, shards=expert),
        state_bytes(params=params.outer, recipe=recipe, optimizer=ends, shards=dense),
    )
    return StateBytes(
        weights_bytes=sum((one.weights_bytes for one in each), start=0.0),
        gradients_bytes=sum((one.gradients_bytes for one in each), start=0.0),
        optimizer_bytes=sum((one.optimizer_bytes for one in each), start=0.0),
    )


def _trained_count(params: DeviceParams, layout: TrainingLayout) -> Number:
    """Parameters that one device updates."""
    dense, expert = (shard_counts(layout.shard, width)[2] for width in _shard_widths(layout))
    return (params.dense + params.outer) / dense + params.expert / expert


def _largest_share(params: DeviceParams, shards: LayerShards) -> Number:
    """The share of a device's parameters that its largest layer has, or its embedding and head."""
    layers = np.maximum(sum((layer.count for layer in shards.layers), start=0.0), 1.0)
    largest = np.maximum((params.dense + params.expert) / layers, params.outer)
    return largest / np.maximum(params.total, 1.0)


def _at_load(params: DeviceParams, own: StateBytes, recipe: Recipe, layout: TrainingLayout) -> Number:
    """What loading a checkpoint takes beyond the states: all weights beside the shard, before gradients are there."""
    if layout.shard != "zero3" or not recipe.whole_at_load:
        return 0.0
    return params.total * recipe.gather_bytes - own.gradients_bytes - own.optimizer_bytes


def _frozen_weights(params: DeviceParams, layout: TrainingLayout, weight_bytes: float) -> Number:
    dense, expert = _shard_widths(layout)
    cut = layout.shard == "zero3"
    own = params.dense / (dense if cut else 1.0) + params.expert / (expert if cut else 1.0)
    return own * weight_bytes + params.outer * ELEMENT_BYTES / (dense if cut else 1.0)


def _adapter_bytes(shards: LayerShards, given: TrainingMemoryInput, optimizer: Optimizer) -> Number:
    """Adapters with their gradients and fp32 moments, each over the devices that share it.

    The low-rank ones are held in fp32, copies of embedding and head in bf16. DoRA's magnitudes are lost in rounding.
    """
    job = given.job
    copies = embedding_params(shards) if job.adapter.train_embeddings else 0.0
    widths = shard_counts(given.layout.shard, _shard_widths(given.layout)[0])
    return _held(adapter_params(shards, job.adapter), ADAPTER_BYTES, widths, optimizer) + _held(
        copies, ELEMENT_BYTES, widths, optimizer
    )


def _held(params: Number, width_bytes: float, widths: tuple[Number, Number, Number], optimizer: Optimizer) -> Number:
    """Weights and gradients of a width and fp32 moments of so many parameters, each kind over its shards."""
    weights, gradients, states = widths
    moments = (optimizer.moments * ADAPTER_BYTES + optimizer.state_bytes) * (1.0 - optimizer.on_host) / states
    return params * (width_bytes / weights + width_bytes / gradients + moments)


def _sample_memory(counts: SampleCounts, given: TrainingMemoryInput, recipe: Recipe, numbers: Fitted) -> TrainingMemory:
    """A step of a model that is trained on samples: tables dealt over the devices, all else copied or sharded."""
    layout, job, optimizer = given.layout, given.job, optimizer_of(given.job)
    widths = shard_counts(layout.shard, layout.replicas)
    dealt: tuple[Number, Number, Number] = (layout.replicas, np.inf, layout.replicas)
    if job.adapts:
        frozen = (counts.params / widths[0] + counts.table_params / dealt[0]) * bytes_per_param(held_format(job))
        own = StateBytes(weights_bytes=frozen, gradients_bytes=0.0, optimizer_bytes=0.0)
    else:
        dense = state_bytes(params=counts.params, recipe=recipe, optimizer=optimizer, shards=widths)
        tables = state_bytes(params=counts.table_params, recipe=recipe, optimizer=optimizer, shards=dealt)
        own = StateBytes(
            weights_bytes=dense.weights_bytes + tables.weights_bytes,
            gradients_bytes=dense.gradients_bytes,
            optimizer_bytes=dense.optimizer_bytes + tables.optimizer_bytes,
        )
    held, gathered = sample_bytes(counts, job, layout)
    return TrainingMemory(
        weights_bytes=own.weights_bytes * (0.0 if job.offload == "optimizer+weights" else 1.0),
        gradients_bytes=own.gradients_bytes,
        optimizer_bytes=own.optimizer_bytes * (0.0 if job.offload != "none" else 1.0),
        activations_bytes=held,
        adapters_bytes=_held(counts.adapter_params(job), ADAPTER_BYTES, widths, optimizer) if job.adapts else 0.0,
        cache_bytes=0.0,
        overhead_bytes=numbers.process_bytes
        + numbers.group_bytes * (np.asarray(layout.devices) > 1)
        + numbers.slack_fraction * held
        + gathered * recipe.gather_bytes,
    )


def generation_cache_bytes(model: ModelSpec, *, tp: Number, sequences: Number, tokens: Number) -> Number:
    """The cache on one device of a generation engine while it answers `sequences` of up to `tokens` tokens at once."""
    shards = training_shards(model, TrainingLayout(tp=tp))
    grows = cache_bytes_per_token(shards, element_bytes=ELEMENT_BYTES)
    return sequences * (tokens * grows + cache_bytes_per_sequence(shards, element_bytes=ELEMENT_BYTES))


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
    A model that is no language model is counted by its samples.

    Returns:
        Terms of the broadcast shape of the layout's and the job's numbers.

    Raises:
        UnknownNameError: a trainer, an optimizer or a format that is not known.
    """
    layout, job = given.layout, given.job
    recipe, optimizer, numbers = given.recipe or recipe_of(job), optimizer_of(job), given.fitted or fitted()
    if given.sample is not None:
        return _sample_memory(given.sample, given, recipe, numbers)
    shards = training_shards(given.model, layout)
    params = device_params(shards)
    activations = activation_bytes(shards, layout, job, recipe, numbers)
    if job.adapts:
        frozen = _frozen_weights(params, layout, bytes_per_param(held_format(job)))
        own = StateBytes(weights_bytes=frozen, gradients_bytes=0.0, optimizer_bytes=0.0)
        adapters = _adapter_bytes(shards, given, optimizer)
    else:
        own = _offloaded(_trained_states(params, layout, recipe, optimizer), job)
        if job.update_in_backward:
            own = replace(own, gradients_bytes=own.gradients_bytes * _largest_share(params, shards))
        adapters = 0.0
    others = _roles(given, recipe, optimizer)
    filled = np.where((recipe.gradients_persist > 0) | (np.asarray(job.micro_batches) > 1), 0.0, own.gradients_bytes)
    update = 0.0 if job.adapts else recipe.step_bytes * _trained_count(params, layout)
    activations = np.maximum(activations - filled, np.maximum(update, _at_load(params, own, recipe, layout)))
    return TrainingMemory(
        weights_bytes=own.weights_bytes + others.weights_bytes,
        gradients_bytes=own.gradients_bytes + others.gradients_bytes,
        optimizer_bytes=own.optimizer_bytes + others.optimizer_bytes,
        activations_bytes=activations,
        adapters_bytes=adapters,
        cache_bytes=given.roles.generation_cache_bytes,
        overhead_bytes=numbers.process_bytes
        + numbers.group_bytes * (np.asarray(layout.devices) > 1)
        + numbers.slack_fraction * activations
        + _gathered(params, shards, given, recipe),
    )
