"""What perf must know of one device and its links, as plain numbers: rates of a sheet, nothing fitted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from chipwise.catalog.types import Chip, Instance, Link
from chipwise.errors import InputError, KnowledgeError
from chipwise.parallelism.arrays import Number
from chipwise.precision import Capability, capability

FABRICS = ("nvswitch", "nvlink", "neuronlink", "pcie", "none")
"""What can join the devices of a node; the number in `Hardware.fabric` is the place in this list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """One device (a GPU, a slice of one, a logical NeuronCore) and its links. Every field broadcasts.

    `gemm_flops_per_s` is by *weight* format and already says what multiplies it: on a chip that only widens
    int4 to bf16 before it multiplies, `gemm_flops_per_s["int4"]` is the bf16 peak. Rates are dense and one
    way.
    """

    gemm_flops_per_s: Mapping[str, Number]
    widened: Mapping[str, Number] = field(default_factory=dict)
    """1 for a weight format that is widened to 16 bits before it is multiplied, 0 (or absent) where it is
    native."""
    attention_flops_per_s: Number
    memory_bandwidth_bytes_per_s: Number
    fabric: Number
    link_bytes_per_s: Number
    peer_to_peer: Number
    """1 where devices read each other's memory, 0 where every byte stops in host memory."""
    node_devices: Number
    """Devices that one scale-up domain joins; a replica larger than that goes over the network."""
    network_bytes_per_s: Number
    """Of all `node_devices` together (EFA), one way; 0 where they stand alone."""


def hardware_of(
    chip: Chip, *, formats: Iterable[str], instance: Instance | None = None, link: Link | None = None
) -> Hardware:
    """The device that `chip` is under tensor parallelism, with the links that `instance` gives it.

    A chip with several cores is cut into `chip.cores` equal devices.

    Args:
        chip: the accelerator.
        formats: the weight formats of the model.
        instance: the size; None takes the chip's own best link and no network.
        link: beats both, where the caller knows better.

    Raises:
        KnowledgeError: the chip lacks a bandwidth, or the peak of what it multiplies a format in.
        InputError: the chip can neither multiply nor widen a format.
    """
    bandwidth = chip.memory_bandwidth_bytes_per_s
    if bandwidth is None:
        raise KnowledgeError(
            f"no memory bandwidth is known for {chip.id}",
            why="decode time is bytes over bandwidth",
            fix="choose a chip whose facts are complete (chipwise catalog list)",
        )
    used = link or (instance.link if instance is not None else None) or chip.link
    held = {name: capability(chip, name) for name in formats}
    attention = "bf16" if "bf16" in chip.dense_flops_per_s else "fp16"
    return Hardware(
        gemm_flops_per_s={name: _peak(chip, one) for name, one in held.items()},
        widened={name: float(one.mode == "weight-only") for name, one in held.items()},
        attention_flops_per_s=_peak(chip, capability(chip, attention)),
        memory_bandwidth_bytes_per_s=bandwidth / chip.cores,
        fabric=float(FABRICS.index(used.kind if used else "none")),
        link_bytes_per_s=(used.bytes_per_s_one_way or 0.0) / chip.cores if used else 0.0,
        peer_to_peer=float(used is not None and used.peer_to_peer is not False),
        node_devices=_node_devices(chip, instance, used),
        network_bytes_per_s=_network(chip, instance, used),
    )


def _peak(chip: Chip, held: Capability) -> float:
    if held.mode == "none":
        raise InputError(
            f"{chip.id} cannot hold {held.weight_format} weights",
            why=held.why,
            fix="choose another precision (chipwise model MODEL lists them)",
        )
    if held.flops_per_s is None:
        raise KnowledgeError(
            f"no dense {held.compute_format} peak is known for {chip.id}",
            why="compute time is FLOPs over peak",
            fix=f"known formats: {', '.join(sorted(chip.dense_flops_per_s)) or 'none'}",
        )
    return held.flops_per_s / chip.cores


def _node_devices(chip: Chip, instance: Instance | None, link: Link | None) -> float:
    domain = (link.domain_chips or 1) if link is not None else 1
    chips = instance.chips if instance is not None and instance.chips else domain
    return float(max(chips, domain) * chip.cores)


def _network(chip: Chip, instance: Instance | None, link: Link | None) -> float:
    """A domain that joins several instances (NVL72) leaves over the network of all of them."""
    if instance is None or not instance.chips:
        return 0.0
    instances = _node_devices(chip, instance, link) / (instance.chips * chip.cores)
    return float(instance.efa_bytes_per_s or instance.network_bytes_per_s or 0.0) * instances


def stack(hardware: Sequence[Hardware]) -> Hardware:
    """Many devices as one whose fields are arrays, so that one call predicts for all.

    A weight format that a device does not list is NaN there: a candidate that uses it must have been
    refused before.
    """
    formats = sorted({name for one in hardware for name in one.gemm_flops_per_s})

    def column(values: Iterable[Number]) -> Number:
        return np.array(list(values), dtype=float)

    return Hardware(
        gemm_flops_per_s={
            name: column(one.gemm_flops_per_s.get(name, float("nan")) for one in hardware) for name in formats
        },
        widened={name: column(one.widened.get(name, 0.0) for one in hardware) for name in formats},
        attention_flops_per_s=column(one.attention_flops_per_s for one in hardware),
        memory_bandwidth_bytes_per_s=column(one.memory_bandwidth_bytes_per_s for one in hardware),
        fabric=column(one.fabric for one in hardware),
        link_bytes_per_s=column(one.link_bytes_per_s for one in hardware),
        peer_to_peer=column(one.peer_to_peer for one in hardware),
        node_devices=column(one.node_devices for one in hardware),
        network_bytes_per_s=column(one.network_bytes_per_s for one in hardware),
    )
