"""Seconds of one micro-batch on one device: forward, backward and what is done again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from chipwise.memory.training_activations import held_format
from chipwise.memory.training_job import TrainingJob
from chipwise.parallelism import Number
from chipwise.perf.hardware import Hardware
from chipwise.perf.training_coefficients import TrainingCoefficients
from chipwise.perf.training_work import Work, backward_factor
from chipwise.precision import bytes_per_param

ATTENTION_BACKWARD = 2.5
SCORE_ACCESSES = 6.0
"""Of a score in one pass without a fused attention kernel: written, scaled and normalised, dropped out, read."""
NARROW_BYTES = 1.5
"""Formats of fewer bytes a parameter are converted to before they are multiplied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    """Seconds of one micro-batch on one device, communication aside: the terms add up to `total_s`."""

    gemm_s: Number
    expert_s: Number
    attention_s: Number
    elementwise_s: Number
    head_s: Number
    unpacking_s: Number
    recompute_s: Number
    host_s: Number

    @property
    def device_s(self) -> Number:
        """What the device is busy for."""
        own = self.gemm_s + self.expert_s + self.attention_s + self.elementwise_s + self.head_s
        return own + self.unpacking_s + self.recompute_s

    @property
    def total_s(self) -> Number:
        """Busy time plus what the host makes it wait."""
        return self.device_s + self.host_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """`again_fraction`: share of the forward pass done again; `expert_load`: of the fullest device over the mean."""

    again_fraction: Number = 0.0
    expert_load: Number = 1.0


NOTHING = Extra()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """Seconds of one forward pass by what it does."""

    gemm_s: Number
    expert_s: Number
    attention_s: Number
    elementwise_s: Number
    head_s: Number


def unpacking_s(
    *, params: Number, passes: Number, packed_bytes: float, wide_bytes: float, bytes_per_s: Number
) -> Number:
    """Seconds to bring packed weights back to what is multiplied: `passes params (packed + wide) / bandwidth`.

    Each pass reads the packed weight with its scales and writes the wide one; the multiplication's own reading of
    the wide one is counted there.

    Args:
        params: parameters of the matrices on one device.
        passes: how often a micro-batch needs each.
        packed_bytes: bytes of a parameter as it is held, scales included.
        wide_bytes: bytes of a parameter as it is multiplied.
        bytes_per_s: what the kernel moves.

    Source: Dettmers et al., QLoRA, 2023, arXiv:2305.14314, section 3: weights are dequantised to 16 bits for each
    forward and backward pass.

    >>> unpacking_s(params=8e9, passes=3, packed_bytes=0.5, wide_bytes=2.0, bytes_per_s=300e9)
    0.2
    """
    return passes * params * (packed_bytes + wide_bytes) / bytes_per_s


def micro_batch_seconds(
    *,
    work: Work,
    job: TrainingJob,
    layers: tuple[Number, Number],
    hardware: Hardware,
    coefficients: TrainingCoefficients,
    extra: Extra = NOTHING,
) -> Seconds:
    """Seconds of forward, backward and recomputation of one micro-batch on one device.

    `t = FLOPs / (peak x fraction) + bytes / (bandwidth x fraction)` for GEMMs, `FLOPs / (peak x fraction)` for
    attention (a GEMM like others without a fused kernel) and scans, bytes over bandwidth for the rest. The host waits
    where launching takes longer than computing; kernels ramp up and drain whatever their size, and a layer that
    routes waits for the host to learn how many tokens each expert gets.

    Args:
        work: of one forward pass.
        job: method, recomputation and precision.
        layers: layers of the stage, and how many of them route to experts.
        hardware: one device; `gemm_flops_per_s` must hold the job's precision.
        coefficients: fitted fractions and overheads.
        extra: what is done again, and how unevenly experts are used.
    """
    again_fraction = extra.again_fraction
    once = _forward(work, job, hardware, coefficients, extra.expert_load)
    passes = 1.0 + backward_factor(job)
    light = 1.0 if job.recompute != "none" else 0.0
    busy = Seconds(
        gemm_s=once.gemm_s * passes,
        expert_s=once.expert_s * passes,
        attention_s=once.attention_s * (1.0 + ATTENTION_BACKWARD),
        elementwise_s=once.elementwise_s * 3.0,
        head_s=once.head_s * passes,
        unpacking_s=_unpacking(work, job, hardware, coefficients, 2.0 + again_fraction),
        recompute_s=(once.gemm_s + once.expert_s + once.attention_s) * again_fraction + once.elementwise_s * light,
        host_s=0.0,
    )
    launched = layers[0] * coefficients.layer_s * (3.0 + again_fraction)
    idle = (layers[0] * coefficients.kernel_s + layers[1] * coefficients.moe_layer_s) * (3.0 + again_fraction)
    return replace(busy, host_s=idle + np.maximum(launched - busy.device_s - idle, 0.0))


def _forward(work: Work, job: TrainingJob, hardware: Hardware, own: TrainingCoefficients, expert_load: Number) -> Pass:
    peak = hardware.gemm_flops_per_s[job.precision] * own.gemm_fraction / own.slowdown_factor
    bandwidth = hardware.memory_bandwidth_bytes_per_s * own.bandwidth_fraction / own.slowdown_factor
    padded = work.gemm_flops + work.ragged_flops * (1.0 / own.ragged_fraction - 1.0)
    wide = hardware.attention_flops_per_s / own.slowdown_factor
    reached = own.attention_fraction if job.flash_attention else own.gemm_fraction
    attention = work.attention_flops / (wide * reached) + work.scan_flops / (wide * own.scan_fraction)
    moved = own.elementwise_factor * work.elementwise_bytes + own.routed_factor * work.routed_bytes * expert_load
    moved = moved + SCORE_ACCESSES * work.score_bytes
    cast = own.cast_factor * work.cast_bytes if bytes_per_param(job.precision) < NARROW_BYTES else 0.0
    return Pass(
        gemm_s=padded / peak + work.gemm_bytes / bandwidth,
        expert_s=(work.expert_flops / (peak * own.expert_fraction) + work.expert_bytes / bandwidth) * expert_load,
        attention_s=attention,
        elementwise_s=(moved + cast) / bandwidth,
        head_s=work.head_flops / (wide * own.head_fraction) + work.head_bytes / bandwidth,
    )


def _unpacking(work: Work, job: TrainingJob, hardware: Hardware, own: TrainingCoefficients, passes: Number) -> Number:
    """0 where the base is held as it is multiplied. Embeddings and head stay wide."""
    packed, wide = bytes_per_param(held_format(job)), bytes_per_param(job.precision)
    if not job.adapts or packed >= wide:
        return 0.0
    return unpacking_s(
        params=work.frozen_params,
        passes=passes,
        packed_bytes=packed,
        wide_bytes=wide,
        bytes_per_s=hardware.memory_bandwidth_bytes_per_s * own.dequantise_fraction,
    )
