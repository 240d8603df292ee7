"""Seconds of a collective among devices: a latency and the bytes over the slowest link they must cross.

A group of `devices` fills nodes of `hardware.node_devices`. Inside a node bytes cross the link (twice, and
through host memory, where there is no peer to peer); between nodes they cross the node's network, which its
devices share.
"""

from __future__ import annotations

import numpy as np

from chipwise.parallelism.arrays import Number
from chipwise.perf.hardware import FABRICS, Hardware
from chipwise.perf.parameters import Parameters

TINY = 1e-9


def _inside_and_across(hardware: Hardware, devices: Number) -> tuple[Number, Number]:
    inside = np.minimum(devices, hardware.node_devices)
    return inside, np.ceil(devices / np.maximum(hardware.node_devices, 1.0))


def link_seconds_per_byte(*, hardware: Hardware, parameters: Parameters) -> Number:
    """Seconds a byte takes from one device to another of its node; infinite where nothing joins them.

    Through host memory a byte crosses the link twice.
    """
    staged = 2.0 - hardware.peer_to_peer
    rate = hardware.link_bytes_per_s * parameters.link_fraction
    return np.where(rate > 0, staged / np.maximum(rate, TINY), np.inf)


def network_seconds_per_byte(*, hardware: Hardware, parameters: Parameters) -> Number:
    """Seconds a byte takes from node to node when one device has the whole network; infinite without one."""
    rate = hardware.network_bytes_per_s * parameters.network_fraction
    return np.where(rate > 0, 1.0 / np.maximum(rate, TINY), np.inf)


def latency_s(*, devices: Number, hardware: Hardware, parameters: Parameters) -> Number:
    """A collective of nothing: launch, synchronisation and hops.

    `collective_s`, plus `hop_s` for each device beyond two (a torus of NeuronLink is as wide as their root), plus the
    network's. 0 for one device.
    """
    inside, nodes = _inside_and_across(hardware, devices)
    wide = np.where(hardware.fabric == FABRICS.index("neuronlink"), 2.0 * np.sqrt(inside / 2.0), inside)
    hops = np.maximum(wide - 2.0, 0.0)
    within = np.where(inside > 1, parameters.collective_s + parameters.hop_s * hops, 0.0)
    return within + np.where(nodes > 1, parameters.network_s * np.log2(np.maximum(nodes, 2.0)), 0.0)


def _transfer(
    *, size_bytes: Number, inside_share: Number, across_share: Number, rates: tuple[Number, Number]
) -> Number:
    with np.errstate(invalid="ignore"):
        inside = np.where(inside_share > 0, size_bytes * inside_share * rates[0], 0.0)
        across = np.where(across_share > 0, size_bytes * across_share * rates[1], 0.0)
    return inside + across


def reduce_scatter_s(*, size_bytes: Number, devices: Number, hardware: Hardware, parameters: Parameters) -> Number:
    """Reduce-scatter of `size_bytes` a device.

    A device sends `(n - 1) / n` of it inside its node, the node `(m - 1) / m` of the reduced whole to the
    other `m - 1` nodes.

    An all-gather of `size_bytes` (counted after gathering) takes as long.
    """
    inside, nodes = _inside_and_across(hardware, devices)
    rates = (
        link_seconds_per_byte(hardware=hardware, parameters=parameters),
        network_seconds_per_byte(hardware=hardware, parameters=parameters),
    )
    moved = _transfer(
        size_bytes=size_bytes,
        inside_share=(inside - 1.0) / np.maximum(inside, 1.0),
        across_share=(nodes - 1.0) / np.maximum(nodes, 1.0),
        rates=rates,
    )
    return latency_s(devices=devices, hardware=hardware, parameters=parameters) + moved


def all_gather_s(*, size_bytes: Number, devices: Number, hardware: Hardware, parameters: Parameters) -> Number:
    """All-gather of `size_bytes` (counted after gathering): the mirror image of `reduce_scatter_s`."""
    return reduce_scatter_s(size_bytes=size_bytes, devices=devices, hardware=hardware, parameters=parameters)


def all_reduce_s(*, size_bytes: Number, devices: Number, hardware: Hardware, parameters: Parameters) -> Number:
    """All-reduce of `size_bytes` a device: the bytes of a reduce-scatter and an all-gather, one latency.

    Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", 2005
    (ring and recursive halving move 2 (n - 1) / n of the data).
    """
    once = reduce_scatter_s(size_bytes=size_bytes, devices=devices, hardware=hardware, parameters=parameters)
    return 2.0 * once - latency_s(devices=devices, hardware=hardware, parameters=parameters)


def all_to_all_s(*, size_bytes: Number, devices: Number, hardware: Hardware, parameters: Parameters) -> Number:
    """All-to-all in which a device holds `size_bytes` for all.

    `(inside - 1) / n` of it stays in the node, `(n - inside) / n` leaves. The devices of a node share its
    network, so what leaves counts `inside` times.
    """
    inside, nodes = _inside_and_across(hardware, devices)
    moved = _transfer(
        size_bytes=size_bytes,
        inside_share=(inside - 1.0) / np.maximum(devices, 1.0),
        across_share=np.where(nodes > 1, (devices - inside) / np.maximum(devices, 1.0) * inside, 0.0),
        rates=(
            link_seconds_per_byte(hardware=hardware, parameters=parameters),
            network_seconds_per_byte(hardware=hardware, parameters=parameters),
        ),
    )
    return latency_s(devices=devices, hardware=hardware, parameters=parameters) + moved


def send_s(*, size_bytes: Number, across: Number, hardware: Hardware, parameters: Parameters) -> Number:
    """One device sends `size_bytes` to one other; `across` is 1 where they stand in two nodes, 0 in one."""
    link = link_seconds_per_byte(hardware=hardware, parameters=parameters)
    network = network_seconds_per_byte(hardware=hardware, parameters=parameters)
    with np.errstate(invalid="ignore"):
        moved = np.where(size_bytes > 0, size_bytes * np.where(across > 0, network, link), 0.0)
    return np.where(across > 0, parameters.network_s, parameters.collective_s) + moved
