"""Whether a training step fits, with how little recomputation, and which layouts are worth a try."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from chipwise.memory.training import TrainingMemoryInput, training_memory
from chipwise.memory.training_job import Recompute, Shard, TrainingJob, TrainingLayout, layout_problem
from chipwise.memory.training_recipes import fitted
from chipwise.model import ModelSpec
from chipwise.parallelism import Number, tp_problem

DEGREES = ("tp", "pp", "ep", "dp")
MOST_DEVICES = 4096
MODES: tuple[Recompute, ...] = ("none", "selective", "full")


def training_fits(given: TrainingMemoryInput, capacity_bytes: Number) -> Number:
    """True where the fullest device holds the step: `total_bytes <= usable x capacity_bytes`, what the driver reports.

    The rest is the driver's context, which no trainer counts, and what no allocator can hand out.
    """
    usable_fraction = (given.fitted or fitted()).usable_fraction
    return np.asarray(training_memory(given).total_bytes <= usable_fraction * capacity_bytes)


def min_devices(given: TrainingMemoryInput, *, capacity_bytes: float, node_devices: int) -> int | None:
    """The fewest devices (1, 2, 4 ... 4,096) on which some layout holds the step as it is asked; None where none does.

    Layouts are those of `candidate_layouts`; trainer, micro-batch and recomputation stay.
    """
    for devices in _powers(MOST_DEVICES):
        if given.sample is not None:  # copied or sharded, never split
            found = tuple(TrainingLayout(dp=devices, shard=shard) for shard in ("none", "zero3"))
        else:
            found = candidate_layouts(model=given.model, job=given.job, devices=devices, node_devices=node_devices)
        for shard in dict.fromkeys(one.shard for one in found):
            alike = [one for one in found if one.shard == shard]
            degrees: dict[str, Any] = {name: np.array([float(getattr(one, name)) for one in alike]) for name in DEGREES}
            layout = replace(given.layout, shard=shard, sharded_over=None, vp=1.0, cp=1.0, **degrees)
            if bool(np.any(training_fits(replace(given, layout=layout), capacity_bytes))):
                return devices
    return None


def least_recompute(given: TrainingMemoryInput, capacity_bytes: float) -> TrainingMemoryInput:
    """The same step with the cheapest recomputation that fits; with full recomputation where nothing does."""
    for mode in MODES:
        tried = replace(given, job=replace(given.job, recompute=mode))
        if bool(training_fits(tried, capacity_bytes)):
            return tried
    return replace(given, job=replace(given.job, recompute="full"))


def _powers(most: int) -> Iterator[int]:
    power = 1
    while power <= most:
        yield power
        power *= 2


def _shards(job: TrainingJob, dp: int, pp: int) -> tuple[Shard, ...]:
    if dp == 1:
        return ("none",)
    if job.adapts:
        return ("none",) if pp > 1 else ("none", "zero3")
    return ("zero1",) if pp > 1 else ("zero1", "zero3")


def candidate_layouts(
    *, model: ModelSpec, job: TrainingJob, devices: int, node_devices: int
) -> tuple[TrainingLayout, ...]:
    """Layouts of `devices` worth a try: tp inside a node, pp over nodes, the rest data-parallel.

    tp and pp are powers of two; a mixture of experts deals its experts over as many devices as divide them, at
    most a node times tp; weights are sharded (zero3) only without pipeline stages.

    Args:
        model: decides which tp, pp and ep are legal.
        job: its micro-batches bound pp: a stage more than micro-batches idles.
        devices: all of them; every layout uses every one.
        node_devices: devices that one scale-up domain joins.

    Returns:
        Legal layouts, least split first; empty where none divides `devices`.
    """
    found = []
    for tp in _powers(min(node_devices, devices)):
        if tp_problem(model, tp) is not None or devices % tp:
            continue
        for pp in _powers(min(devices // tp, model.layer_count)):
            dp = devices // (tp * pp)
            if tp * pp * dp != devices or pp > float(np.max(job.micro_batches)):
                continue
            ep = _expert_degree(model, limit=min(tp * dp, node_devices))
            for shard in _shards(job, dp, pp):
                layout = TrainingLayout(tp=tp, pp=pp, ep=ep, dp=dp, shard=shard)
                if layout_problem(model, layout) is None:
                    found.append(layout)
    return tuple(found)


def _expert_degree(model: ModelSpec, *, limit: int) -> int:
    counts = [layer.experts.routed for layer in model.layers if layer.experts]
    if not counts:
        return 1
    return max(power for power in _powers(limit) if all(count % power == 0 for count in counts))
