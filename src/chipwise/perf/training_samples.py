"""A model that is trained on samples rather than tokens: its counts, the seconds of a micro-batch, what it sends."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from chipwise.memory.training_activations import held_format
from chipwise.memory.training_samples import SampleCounts
from chipwise.perf.collectives import all_gather_s, all_to_all_s
from chipwise.perf.other.build import passes_of
from chipwise.perf.other.encoders import lacking
from chipwise.perf.other.facts import training_fact
from chipwise.perf.other.layers import layer_stack
from chipwise.perf.other.passes import ELEMENT_BYTES, Forward
from chipwise.perf.other.rows import walks_trees
from chipwise.perf.training_communication import MicroCommunication
from chipwise.perf.training_operators import ATTENTION_BACKWARD, Extra, Seconds, unpacking_s
from chipwise.perf.training_work import backward_factor
from chipwise.perf.work import OTHER_KERNELS
from chipwise.precision import bytes_per_param

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from chipwise.memory.training_job import TrainingJob, TrainingLayout
    from chipwise.model import ModelSpec
    from chipwise.model.spec import Weight
    from chipwise.parallelism import Number
    from chipwise.perf.hardware import Hardware
    from chipwise.perf.other.passes import Item, Passes
    from chipwise.perf.training_coefficients import TrainingCoefficients
    from chipwise.perf.training_communication import Fabric

LAYER_KERNELS = 7.0 + OTHER_KERNELS
"""Kernels of a layer of the language models that launches were fitted on: seven matrices and what is around them."""
ADAPTED = frozenset({"attention", "mlp", "shared-expert"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """One sample: what it makes a device do forward (`once`), what it is called, and what the model counts."""

    passes: Passes
    once: Forward
    counts: SampleCounts
    looked_up_elements: float
    """Of the rows of tables that a sample asks for."""


def sampled(model: ModelSpec, item: Item) -> Sampled:
    """One sample of `item`'s sizes.

    Raises:
        KnowledgeError: trees, whose growing no source times; or see `passes_of`.
    """
    if walks_trees(model):
        why = "trees are grown by counting rows into bins, and no source that was read gives a rate for that"
        raise lacking(model, "how fast its trees are grown", why)
    passes = passes_of(model, replace(item, batch=1.0, taught=True))
    once = _together([*passes.forwards, *_text(model)])
    return Sampled(
        passes=passes,
        once=once,
        counts=_counts(model, once),
        looked_up_elements=float(sum(table.in_features for table in _tables(model))),
    )


def _text(model: ModelSpec) -> Iterator[Forward]:
    """The text that goes with an image where a model pairs the two."""
    if model.architecture == "vision-language" and model.max_context_tokens:
        yield layer_stack("text encoder", model.layers, tokens=float(model.max_context_tokens))


def sample_spread_factor(vendor: str, *, tables: bool = False) -> float:
    """What a time is multiplied and divided by for its range: nothing was fitted on such models.

    Wider on Neuron, and where rows of tables are looked up.

    >>> sample_spread_factor("nvidia"), sample_spread_factor("aws"), sample_spread_factor("nvidia", tables=True)
    (2.0, 4.0, 4.0)
    """
    known = ["spread_factor"]
    known += ["neuron_spread_factor"] if vendor == "aws" else []
    known += ["tables_spread_factor"] if tables else []
    return max(map(training_fact, known))


def _tables(model: ModelSpec) -> list[Weight]:
    """Tables of which a sample asks for a row each."""
    return [one for one in model.outer if one.part == "embedding"] if model.architecture == "recommender" else []


def _together(forwards: Iterable[Forward]) -> Forward:
    """All passes of a sample as one."""
    total = Forward(name="sample")
    for one in forwards:
        times = one.passes
        total = total.plus(
            replace(
                one,
                gemm_flops=times * one.gemm_flops,
                attention_flops=times * one.attention_flops,
                moved_bytes=times * one.moved_bytes,
                elementwise_bytes=times * one.elementwise_bytes,
                kernels=times * one.kernels,
            )
        )
    return total


def _trained_weights(model: ModelSpec) -> Iterator[tuple[Weight, float]]:
    """Every weight that is trained and how often it is there: a denoiser's text encoders and decoder are not."""
    yield from ((weight, 1.0) for weight in model.outer)
    yield from ((weight, float(layer.count)) for layer in model.layers for weight in layer.weights)
    for tower in model.towers if model.architecture != "diffusion" else ():
        yield from ((weight, 1.0) for weight in tower.weights)
        yield from ((weight, float(layer.count)) for layer in tower.layers for weight in layer.weights)


def _counts(model: ModelSpec, once: Forward) -> SampleCounts:
    held = list(_trained_weights(model))
    tables = sum(table.params for table in _tables(model))
    gemms = [(one, count) for one, count in held if one.gemm]
    return SampleCounts(
        params=sum(count * one.params for one, count in held) - tables,
        table_params=float(tables),
        adapter_params_per_rank=sum(n * (g.out_features + g.in_features) for g, n in gemms if g.part in ADAPTED),
        saved_bytes=once.moved_bytes,
        matrices=sum(count for _, count in gemms),
    )


def sample_seconds(
    *, sample: Sampled, job: TrainingJob, hardware: Hardware, coefficients: TrainingCoefficients, extra: Extra
) -> Seconds:
    """Seconds of forward, backward and recomputation of one micro-batch on one device.

    As `micro_batch_seconds`, with the FLOPs and bytes of a sample's layers in place of a token's: matrices cost both
    of theirs, attention its FLOPs, norms and activations their bytes; a pass over each kernel costs a launch, which
    waits for the host where that takes longer.
    """
    own, once, again = coefficients, sample.once, extra.again_fraction
    peak = hardware.gemm_flops_per_s[job.precision] * own.gemm_fraction / own.slowdown_factor
    wide = hardware.attention_flops_per_s * own.attention_fraction / own.slowdown_factor
    bandwidth = hardware.memory_bandwidth_bytes_per_s * own.bandwidth_fraction / own.slowdown_factor
    size = job.micro_batch * once.moved_bytes + ELEMENT_BYTES * once.weights
    gemm_s = job.micro_batch * once.gemm_flops / peak + size / bandwidth
    attention_s = job.micro_batch * once.attention_flops / wide
    elementwise_s = job.micro_batch * once.elementwise_bytes / bandwidth
    busy = Seconds(
        gemm_s=gemm_s * (1.0 + backward_factor(job)),
        expert_s=0.0,
        attention_s=attention_s * (1.0 + ATTENTION_BACKWARD),
        elementwise_s=elementwise_s * 3.0,
        head_s=0.0,
        unpacking_s=_unpacking(sample, job, hardware, own, 2.0 + again),
        recompute_s=(gemm_s + attention_s + elementwise_s) * again,
        host_s=0.0,
    )
    layers = once.kernels / LAYER_KERNELS * (3.0 + again)
    idle = layers * own.kernel_s
    return replace(busy, host_s=idle + np.maximum(layers * own.layer_s - busy.device_s - idle, 0.0))


def _unpacking(
    sample: Sampled, job: TrainingJob, hardware: Hardware, own: TrainingCoefficients, passes: Number
) -> Number:
    packed, wide = bytes_per_param(held_format(job)), bytes_per_param(job.precision)
    if not job.adapts or packed >= wide:
        return 0.0
    return unpacking_s(
        params=sample.counts.params,
        passes=passes,
        packed_bytes=packed,
        wide_bytes=wide,
        bytes_per_s=hardware.memory_bandwidth_bytes_per_s * own.dequantise_fraction,
    )


def sample_flops(sample: Sampled, job: TrainingJob) -> Number:
    """FLOPs of one micro-batch by the definition of MFU: forward and backward, nothing twice, frozen weights 4 of 6."""
    once = sample.once
    return job.micro_batch * (once.gemm_flops * (1.0 + backward_factor(job)) + 3.0 * once.attention_flops)


def sample_communication(
    *, sample: Sampled, job: TrainingJob, layout: TrainingLayout, fabric: Fabric
) -> MicroCommunication:
    """What a micro-batch sends: rows of tables to the samples that ask for them, and sharded weights.

    A device holds `1 / devices` of the tables: the rows of its samples come from all others, and their gradients go
    back. Sharded weights come together forward and backward, and gradients are scattered once.
    """
    links, hardware = fabric.links, fabric.hardware
    asked = job.micro_batch * ELEMENT_BYTES * sample.looked_up_elements
    rows_s = 2.0 * all_to_all_s(size_bytes=asked, devices=layout.replicas, hardware=hardware, parameters=links)
    gathered: Number = 0.0
    if layout.shard == "zero3":
        held = min(bytes_per_param(held_format(job)), ELEMENT_BYTES) if job.adapts else ELEMENT_BYTES
        segments = sample.counts.segments
        size = sample.counts.params * held / segments
        once = all_gather_s(size_bytes=size, devices=layout.replicas, hardware=hardware, parameters=links)
        gathered = segments * once * (2.0 if job.adapts else 3.0)
    whole = np.where(np.asarray(layout.replicas) > 1, rows_s * (sample.counts.table_params > 0) + gathered, 0.0)
    return MicroCommunication(tp_s=0.0, ep_s=0.0, cp_s=0.0, gather_s=whole, pp_s=0.0)
