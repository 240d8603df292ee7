"""What a site reaches: sheet rates times the fractions reached, and its collectives as a latency and a slope."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from chipwise.parallelism import Number
from chipwise.perf.collectives import all_reduce_s, all_to_all_s, send_s
from chipwise.perf.hardware import FABRICS, Hardware
from chipwise.perf.parameters import Parameters
from chipwise.perf.work import Work

UNREACHABLE_S_PER_BYTE = 1e30
"""Stands for an infinite time a byte, so that no bytes take no time."""


PROBE_BYTES = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """A collective of a fixed group: seconds of nothing, and seconds a byte."""

    latency_s: Number
    s_per_byte: Number

    def seconds(self, size_bytes: Number) -> Number:
        """Seconds of `size_bytes`."""
        return self.latency_s + self.s_per_byte * size_bytes


NO_WIRE = Wire(latency_s=0.0, s_per_byte=0.0)
"""Where no group is wide enough for the collective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Sheet rates times the fractions reached, and the collectives of a layer."""

    bytes_per_s: Number
    cache_bytes_per_s: Number
    attention_flops_per_s: Number
    gemm_flops_per_s: Mapping[str, Number]
    expert_flops_per_s: Mapping[str, Number]
    expert_skew: Number
    all_reduce: Wire
    all_to_all: Wire
    send: Wire
    prefill_kernel_s: Number
    decode_kernel_s: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What a machine is made of: the work of a device, its sheet and its fitted numbers."""

    work: Work
    hardware: Hardware
    parameters: Parameters
    weight_bytes: Mapping[str, Number]
    kv_element_bytes: Number
    eager: Number = 0.0
    compiled_sequences: Number = 0.0
    host_sampling: Number = 0.0


def rates_of(site: Site) -> Rates:
    """The reachable rates of a site."""
    hardware, parameters = site.hardware, site.parameters
    bandwidth = hardware.memory_bandwidth_bytes_per_s
    eager = site.eager * parameters.eager_kernel_s
    reachable = {name: _gemm_rate(site, name) for name in hardware.gemm_flops_per_s}
    return Rates(
        bytes_per_s=bandwidth * parameters.bandwidth_fraction,
        cache_bytes_per_s=bandwidth * parameters.cache_bandwidth_fraction,
        attention_flops_per_s=hardware.attention_flops_per_s * parameters.attention_compute_fraction,
        gemm_flops_per_s={name: rate * parameters.compute_fraction for name, rate in reachable.items()},
        expert_flops_per_s={name: rate * parameters.moe_compute_fraction for name, rate in reachable.items()},
        expert_skew=np.where(np.asarray(site.work.ep) > 1, parameters.expert_imbalance, 1.0),
        all_reduce=_all_reduce(site),
        all_to_all=_all_to_all(site),
        send=_send(site),
        prefill_kernel_s=np.maximum(parameters.gap_s + parameters.prefill_kernel_s, eager),
        decode_kernel_s=np.maximum(parameters.gap_s, eager),
    )


def _gemm_rate(site: Site, name: str) -> Number:
    hardware = site.hardware
    widened = np.where(hardware.widened.get(name, 0.0), site.parameters.widened_fraction, 1.0)
    return hardware.gemm_flops_per_s[name] * widened


def _wire(collective: Callable[[float], Number]) -> Wire:
    """A collective is a latency and a slope: two sizes give both."""
    nothing_s = collective(0.0)
    slope = (collective(PROBE_BYTES) - nothing_s) / PROBE_BYTES
    return Wire(latency_s=nothing_s, s_per_byte=np.minimum(slope, UNREACHABLE_S_PER_BYTE))


def _all_reduce(site: Site) -> Wire:
    def seconds(size_bytes: float) -> Number:
        return all_reduce_s(
            size_bytes=size_bytes, devices=site.work.tp, hardware=site.hardware, parameters=site.parameters
        )

    wire = _wire(seconds)
    return Wire(latency_s=wire.latency_s, s_per_byte=wire.s_per_byte * _passages(site))


def _passages(site: Site) -> Number:
    """Bytes over the links of an all-reduce, against `2 (n - 1) / n` of a ring: a switch that reduces takes them once.

    Source: Klenk et al., "An In-Network Architecture for Accelerating Shared-Memory Multiprocessor Collectives", 2020.
    """
    devices = np.maximum(np.asarray(site.work.tp, dtype=float), 2.0)
    switched = site.hardware.fabric == FABRICS.index("nvswitch")
    inside = switched & (devices <= site.hardware.node_devices)
    once = devices / (2.0 * (devices - 1.0))
    ring = site.parameters.ring_fraction
    return np.where(inside, ring + (1.0 - ring) * once, 1.0)


def _all_to_all(site: Site) -> Wire:
    devices = site.work.tp * site.work.dp
    if not np.any(np.asarray(site.work.dp) > 1):
        return NO_WIRE

    def seconds(size_bytes: float) -> Number:
        return all_to_all_s(size_bytes=size_bytes, devices=devices, hardware=site.hardware, parameters=site.parameters)

    return _wire(seconds)


def _send(site: Site) -> Wire:
    work = site.work
    if not np.any(np.asarray(work.pp) > 1):
        return NO_WIRE
    across = np.where(work.tp * work.dp * work.cp * work.pp > site.hardware.node_devices, 1.0, 0.0)

    def seconds(size_bytes: float) -> Number:
        return send_s(size_bytes=size_bytes, across=across, hardware=site.hardware, parameters=site.parameters)

    return _wire(seconds)
