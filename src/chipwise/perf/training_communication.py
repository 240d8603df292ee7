"""Seconds a training step spends in collectives, by kind: whole, and what compute does not hide."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from chipwise.memory.training_activations import held_format
from chipwise.memory.training_job import TrainingJob, TrainingLayout
from chipwise.memory.training_recipes import Recipe
from chipwise.memory.training_shapes import DeviceParams, device_params, expert_width
from chipwise.parallelism import LayerShards, Number
from chipwise.perf.collectives import all_gather_s, all_reduce_s, all_to_all_s, reduce_scatter_s, send_s
from chipwise.perf.hardware import Hardware
from chipwise.perf.parameters import Parameters, parameters_for
from chipwise.perf.training_coefficients import TrainingCoefficients
from chipwise.perf.training_work import ELEMENT_BYTES, stage_share
from chipwise.precision import bytes_per_param


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """The links of a run: one device's hardware and how fast collectives go over it."""

    hardware: Hardware
    links: Parameters


def training_fabric(
    *, hardware: Hardware, coefficients: TrainingCoefficients, generation: str, fabric: str = "nvswitch"
) -> Fabric:
    """The links of a run, with the rates and latencies that the training model was fitted with.

    Args:
        hardware: one device; its `gemm_flops_per_s` must hold the job's precision.
        coefficients: fitted for the generation, precision and trainer.
        generation: of the chip, `Chip.architecture`.
        fabric: what joins the devices of a node.
    """
    links = parameters_for(chip="", generation=generation, engine="", fabric=fabric)
    return Fabric(
        hardware=hardware,
        links=replace(
            links,
            link_fraction=coefficients.link_fraction,
            network_fraction=coefficients.network_fraction,
            collective_s=coefficients.collective_s,
            hop_s=coefficients.hop_s,
            network_s=coefficients.network_s,
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroCommunication:
    """Seconds of collectives of one micro-batch, all of them, hidden or not."""

    tp_s: Number
    ep_s: Number
    cp_s: Number
    gather_s: Number
    pp_s: Number


def strided(hardware: Hardware, stride: Number) -> Hardware:
    """The hardware as a group sees it whose members stand `stride` devices apart.

    Fewer of them share a node, and the groups that interleave share the node's network.

    >>> import numpy as np
    >>> one = Hardware(gemm_flops_per_s={}, attention_flops_per_s=1.0, memory_bandwidth_bytes_per_s=1.0, fabric=0.0,
    ...     link_bytes_per_s=450e9, peer_to_peer=1.0, node_devices=8.0, network_bytes_per_s=400e9)
    >>> apart = strided(one, 8.0)
    >>> float(apart.node_devices), float(apart.network_bytes_per_s)
    (1.0, 50000000000.0)
    """
    inside = np.maximum(hardware.node_devices / stride, 1.0)
    return replace(
        hardware,
        node_devices=inside,
        network_bytes_per_s=hardware.network_bytes_per_s * inside / hardware.node_devices,
    )


def _tp(shards: LayerShards, layout: TrainingLayout, job: TrainingJob, fabric: Fabric, passes: Number) -> Number:
    size = job.tokens_per_micro_batch / layout.cp * shards.hidden_size * ELEMENT_BYTES
    each = all_reduce_s(size_bytes=size, devices=layout.tp, hardware=fabric.hardware, parameters=fabric.links)
    count = sum((layer.count_total * layer.all_reduces for layer in shards.layers), start=0)
    return np.where(np.asarray(layout.tp) > 1, count * stage_share(shards, layout) * each * passes, 0.0)


def _copies_sent(per_token: int, nodes: Number) -> Number:
    """Copies of a token that leave for experts: one for each expert in a node, across nodes one for each node met.

    `nodes (1 - (1 - 1 / nodes)^k)` nodes are met on average; the node's own link hands the copies on.
    """
    met = nodes * (1.0 - (1.0 - 1.0 / np.maximum(nodes, 1.0)) ** per_token)
    return np.where(nodes > 1, np.minimum(met, per_token), per_token)


def _ep(shards: LayerShards, layout: TrainingLayout, job: TrainingJob, fabric: Fabric, passes: Number) -> Number:
    tokens = job.tokens_per_micro_batch / layout.cp / np.where(np.asarray(layout.ep) > 1, layout.tp, 1.0)
    nodes = np.ceil(np.asarray(layout.ep) / np.maximum(fabric.hardware.node_devices, 1.0))
    total: Number = 0.0
    for layer in shards.layers:
        if layer.experts is None:
            continue
        size = tokens * _copies_sent(layer.experts.per_token, nodes) * expert_width(layer) * ELEMENT_BYTES
        each = all_to_all_s(size_bytes=size, devices=layout.ep, hardware=fabric.hardware, parameters=fabric.links)
        total = total + layer.count_total * 2.0 * each
    return np.where(np.asarray(layout.ep) > 1, total * stage_share(shards, layout) * passes, 0.0)


def _cp(shards: LayerShards, layout: TrainingLayout, job: TrainingJob, fabric: Fabric, passes: Number) -> Number:
    """Keys and values of the whole sequence come round forward; they and their gradients backward."""
    apart = strided(fabric.hardware, layout.tp)
    total: Number = 0.0
    for layer in shards.layers:
        size = job.tokens_per_micro_batch * layer.cache.elements_per_token * ELEMENT_BYTES
        each = all_gather_s(size_bytes=size, devices=layout.cp, hardware=apart, parameters=fabric.links)
        total = total + layer.count_total * each
    return np.where(np.asarray(layout.cp) > 1, total * stage_share(shards, layout) * (passes + 1.0), 0.0)


def _gather(shards: LayerShards, layout: TrainingLayout, job: TrainingJob, fabric: Fabric) -> Number:
    """FSDP, layer by layer: weights come together for forward and backward, gradients are scattered once whole.

    A frozen base comes together as it is held, and has no gradients.
    """
    if layout.shard != "zero3":
        return 0.0
    over = layout.replicas if layout.sharded_over is None else layout.sharded_over
    apart = strided(fabric.hardware, layout.tp)
    units = np.maximum(shards.layer_count * stage_share(shards, layout), 1.0)
    held = min(bytes_per_param(held_format(job)), ELEMENT_BYTES) if job.adapts else ELEMENT_BYTES
    size = device_params(shards).total * held / units
    once = units * all_gather_s(size_bytes=size, devices=over, hardware=apart, parameters=fabric.links)
    return once * (2.0 + (0.0 if job.adapts else 1.0))


def _pp(shards: LayerShards, layout: TrainingLayout, job: TrainingJob, fabric: Fabric) -> Number:
    """A stage hands a micro-batch on, and its gradient back, once for each of its chunks of layers."""
    size = job.tokens_per_micro_batch / layout.cp / layout.tp * shards.hidden_size * ELEMENT_BYTES
    inner = layout.tp * layout.cp * layout.dp
    shared = strided(fabric.hardware, inner)
    across = np.where(np.asarray(inner) >= fabric.hardware.node_devices, 1.0, 0.0)
    each = send_s(size_bytes=size, across=across, hardware=shared, parameters=fabric.links)
    return np.where(np.asarray(layout.pp) > 1, 2.0 * layout.vp * each, 0.0)


def micro_communication(
    *, shards: LayerShards, layout: TrainingLayout, job: TrainingJob, fabric: Fabric, passes: Number
) -> MicroCommunication:
    """Seconds of the collectives of one micro-batch on one device of the slowest stage.

    tp: two all-reduces of the hidden states a layer and pass (or as many bytes gathered and scattered); ep: tokens
    to their experts and back; cp: keys and values round the ring; FSDP: weights gathered twice, gradients
    scattered; pp: one hand-over a chunk and direction. `passes` counts how often the collectives of a forward pass
    are done: forward, backward, and again as far as layers are recomputed.
    """
    return MicroCommunication(
        tp_s=_tp(shards, layout, job, fabric, passes),
        ep_s=_ep(shards, layout, job, fabric, passes),
        cp_s=_cp(shards, layout, job, fabric, passes),
        gather_s=_gather(shards, layout, job, fabric),
        pp_s=_pp(shards, layout, job, fabric),
    )


def gradient_sync_s(
    *, trained: DeviceParams, layout: TrainingLayout, recipe: Recipe, fabric: Fabric, micro_batches: Number
) -> Number:
    """Seconds of averaging gradients over the copies in one step; 0 with zero3, which scatters every micro-batch.

    With sharded states gradients are scattered and weights gathered, else gradients are all-reduced. zero2 keeps no
    whole gradients: it scatters them after every micro-batch. Experts are averaged over the copies of an expert.
    """
    if layout.shard == "zero3":
        return 0.0
    dense = strided(fabric.hardware, layout.tp)
    routed = strided(fabric.hardware, np.maximum(layout.ep, layout.tp))
    times = micro_batches if layout.shard == "zero2" else 1.0
    total: Number = 0.0
    for params, devices, hardware in (
        (trained.dense + trained.outer, layout.replicas, dense),
        (trained.expert, layout.expert_replicas, routed),
    ):
        scatter = reduce_scatter_s(
            size_bytes=params * recipe.gradient_bytes, devices=devices, hardware=hardware, parameters=fabric.links
        )
        back = params * (recipe.gradient_bytes if layout.shard == "none" else ELEMENT_BYTES)
        gather = all_gather_s(size_bytes=back, devices=devices, hardware=hardware, parameters=fabric.links)
        total = total + np.where(np.asarray(devices) > 1, times * scatter + gather, 0.0)
    return total
