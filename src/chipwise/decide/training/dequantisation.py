"""Seconds a step spends on unpacking a frozen base that is held in fewer bits than it is multiplied in (QLoRA)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.decide.training.facts import dequantise_fraction
from chipwise.memory.training_job import training_shards
from chipwise.memory.training_shapes import device_params
from chipwise.precision import bytes_per_param

if TYPE_CHECKING:
    from chipwise.memory.training_job import TrainingJob
    from chipwise.parallelism import Number
    from chipwise.perf.training import TrainingArrays, TrainingInput


def held_format(job: TrainingJob) -> str:
    """What the weights lie in memory in: the frozen base's format, else what they are multiplied in."""
    return job.base_format or ("nf4" if job.method == "qlora" else job.precision)


def passes(job: TrainingJob) -> float:
    """Times a micro-batch needs every frozen matrix: forward, backward, and once more where all is recomputed."""
    return 3.0 if job.recompute == "full" else 2.0


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


def step_unpacking_s(given: TrainingInput) -> Number:
    """Seconds of one step; 0 where the base is held as it is multiplied. Embeddings and head stay wide."""
    job = given.job
    packed, wide = bytes_per_param(held_format(job)), bytes_per_param(job.precision)
    if not job.adapts or packed >= wide:
        return 0.0
    held = device_params(training_shards(given.model, given.layout))
    once = unpacking_s(
        params=held.dense + held.expert,
        passes=passes(job),
        packed_bytes=packed,
        wide_bytes=wide,
        bytes_per_s=given.fabric.hardware.memory_bandwidth_bytes_per_s * dequantise_fraction(),
    )
    return job.micro_batches * once


def with_unpacking(arrays: TrainingArrays, unpacking_s: Number) -> TrainingArrays:
    """The same step made longer: rates and efficiencies fall as it grows; it counts among the memory-bound work."""
    step_s = arrays.step_s + unpacking_s
    slower = 1.0 / (1.0 + unpacking_s / arrays.step_s)
    return replace(
        arrays,
        step_s=step_s,
        tokens_per_s=arrays.tokens_per_s * slower,
        tokens_per_s_per_chip=arrays.tokens_per_s_per_chip * slower,
        samples_per_s=arrays.samples_per_s * slower,
        mfu_fraction=arrays.mfu_fraction * slower,
        hfu_fraction=arrays.hfu_fraction * slower,
        pipeline_bubble_fraction=arrays.pipeline_bubble_fraction * slower,
        terms=replace(arrays.terms, elementwise_s=arrays.terms.elementwise_s + unpacking_s),
    )
