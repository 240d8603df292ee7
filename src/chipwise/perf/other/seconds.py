"""Seconds of a batch of requests on one device: the passes of `Passes` at the rates the device reaches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chipwise.parallelism import Number
from chipwise.perf.operators import Roofline, roofline

if TYPE_CHECKING:
    from chipwise.perf.hardware import Hardware
    from chipwise.perf.other.passes import Forward, Passes
    from chipwise.perf.parameters import Parameters


ROUNDING_FRACTION = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """What one device reaches: sheet rates times the fractions that serving's measurements gave."""

    gemm_flops_per_s: float
    attention_flops_per_s: float
    bytes_per_s: float
    weight_bytes: float
    """Of one parameter."""
    first_kernel_s: float
    """Gap before a kernel of a pass that is launched kernel by kernel."""
    graphed_kernel_s: float
    pass_s: float
    """Added to every pass: the host's part of a step."""
    request_s: float
    """Added to a request once: arrival, decoding of its input, admission."""
    feed_bytes_per_s: float = float("inf")
    """Its share of what the instance's network brings in."""


def device_of(hardware: Hardware, parameters: Parameters, *, weight_format: str, weight_bytes: float) -> Device:
    """The reachable rates of a device of `hardware` with weights of one format."""
    return Device(
        gemm_flops_per_s=float(hardware.gemm_flops_per_s[weight_format] * parameters.compute_fraction),
        attention_flops_per_s=float(hardware.attention_flops_per_s * parameters.attention_compute_fraction),
        bytes_per_s=float(hardware.memory_bandwidth_bytes_per_s * parameters.bandwidth_fraction),
        weight_bytes=weight_bytes,
        first_kernel_s=float(parameters.gap_s + parameters.prefill_kernel_s),
        graphed_kernel_s=float(parameters.gap_s),
        pass_s=float(parameters.step_s),
        request_s=float(parameters.request_s),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PassSeconds:
    """Seconds of one kind of pass, all its repetitions: the parts add up to `seconds`."""

    name: str
    gemm: Roofline
    attention_s: Number
    elementwise_s: Number
    launch_s: Number

    @property
    def seconds(self) -> Number:
        """Matrices, attention, norms and residuals, launches."""
        return self.gemm.seconds + self.attention_s + self.elementwise_s + self.launch_s


def pass_seconds(forward: Forward, device: Device, *, requests: Number) -> PassSeconds:
    """One kind of pass for `requests` requests together.

    Matrices take the longer of their FLOPs and their bytes (weights once, activations of every request); attention is
    bound by its FLOPs, norms and residuals by their bytes; every kernel and every pass adds its launch.
    """
    times = forward.passes
    gap_s = device.graphed_kernel_s if forward.graphed else device.first_kernel_s
    size = forward.weights * device.weight_bytes + requests * forward.moved_bytes
    return PassSeconds(
        name=forward.name,
        gemm=roofline(
            flops=times * requests * forward.gemm_flops,
            flops_per_s=device.gemm_flops_per_s,
            size_bytes=times * size,
            bytes_per_s=device.bytes_per_s,
        ),
        attention_s=times * requests * forward.attention_flops / device.attention_flops_per_s,
        elementwise_s=times * requests * forward.elementwise_bytes / device.bytes_per_s,
        launch_s=times * (forward.kernels * gap_s + device.pass_s),
    )


def batch_seconds(passes: Passes, device: Device, *, requests: Number) -> Number:
    """A batch of `requests` requests, without what a request adds by itself; one that comes in slower takes as long.

    >>> from chipwise.perf.other.passes import Forward, Passes
    >>> flat = Device(gemm_flops_per_s=100.0, attention_flops_per_s=50.0, bytes_per_s=10.0, weight_bytes=2.0,
    ...               first_kernel_s=0.0, graphed_kernel_s=0.0, pass_s=0.0, request_s=0.0)
    >>> one = Forward(name="net", gemm_flops=200.0, attention_flops=50.0, weights=5.0)
    >>> float(batch_seconds(Passes(unit="image", units=1.0, forwards=(one,), peak_bytes=0.0), flat, requests=3.0))
    9.0
    """
    total: Number = np.asarray(0.0)
    for forward in passes.forwards:
        total = total + pass_seconds(forward, device, requests=requests).seconds
    return np.maximum(total, requests * passes.input_bytes / device.feed_bytes_per_s)


def terms_of(passes: Passes, device: Device, *, requests: float) -> list[Mapping[str, str | float]]:
    """The parts of a batch, which add up to `batch_seconds`, each with what bounds it."""
    rows: list[Mapping[str, str | float]] = []
    for forward in passes.forwards:
        found = pass_seconds(forward, device, requests=requests)
        compute = float(found.gemm.compute_s) >= float(found.gemm.bandwidth_s)
        parts = (
            ("matrices", found.gemm.seconds, "compute" if compute else "bandwidth"),
            ("attention", found.attention_s, "compute"),
            ("norms and residuals", found.elementwise_s, "bandwidth"),
            ("launches", found.launch_s, "overhead"),
        )
        rows += [
            {"op": f"{forward.name}: {part}", "seconds": float(seconds), "bound_by": bound}
            for part, seconds, bound in parts
            if float(seconds) > 0
        ]
    computed_s = sum(float(row["seconds"]) for row in rows)
    waiting_s = float(batch_seconds(passes, device, requests=requests)) - computed_s
    if waiting_s > ROUNDING_FRACTION * computed_s:
        rows.append({"op": "waiting for input", "seconds": waiting_s, "bound_by": "communication"})
    return rows
