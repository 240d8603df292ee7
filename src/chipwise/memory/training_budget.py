"""A training step against a chip: the budget, what is missing, and what would make it fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chipwise.memory.answer import MemoryBudget
from chipwise.memory.fitting import Change
from chipwise.memory.training import TrainingMemoryInput, training_memory
from chipwise.memory.training_recipes import fitted
from chipwise.parallelism import Number


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMemoryAnswer:
    """The budget of the fullest chip; measured peaks lie between the two fractions of the total 8 times in 10."""

    budget: MemoryBudget
    shortfall_bytes: Number
    low_fraction: float
    high_fraction: float

    @property
    def fits(self) -> bool:
        """Whether the step fits, for a scalar question."""
        return bool(np.all(np.asarray(self.shortfall_bytes) <= 0.0))


def size_training(
    given: TrainingMemoryInput, *, capacity_bytes: Number, devices_per_chip: Number = 1.0
) -> TrainingMemoryAnswer:
    """Lay a training step against a chip: terms + free = capacity + shortfall.

    What the driver's context and the allocator keep is `reserved_bytes`.

    Args:
        given: the job, laid out.
        capacity_bytes: of one chip, as its driver reports it.
        devices_per_chip: devices that tp counts on one chip; each holds what the layout gives a device.

    Returns:
        Numbers of the broadcast shape of the question.
    """
    memory = training_memory(given)
    reserved = (1.0 - fitted().usable_fraction) * capacity_bytes
    left = capacity_bytes - reserved - memory.total_bytes * devices_per_chip
    budget = MemoryBudget(
        capacity_bytes=capacity_bytes,
        free_bytes=np.maximum(left, 0.0),
        reserved_bytes=reserved,
        weights_bytes=memory.weights_bytes * devices_per_chip,
        cache_bytes=memory.cache_bytes * devices_per_chip,
        activations_bytes=memory.activations_bytes * devices_per_chip,
        graphs_bytes=0.0,
        overhead_bytes=memory.overhead_bytes * devices_per_chip,
        adapters_bytes=memory.adapters_bytes * devices_per_chip,
        draft_bytes=0.0,
        gradients_bytes=memory.gradients_bytes * devices_per_chip,
        optimizer_bytes=memory.optimizer_bytes * devices_per_chip,
    )
    return TrainingMemoryAnswer(
        budget=budget,
        shortfall_bytes=np.maximum(-left, 0.0),
        low_fraction=fitted().low_fraction,
        high_fraction=fitted().high_fraction,
    )


def _changed(given: TrainingMemoryInput) -> Iterator[tuple[str, str, TrainingMemoryInput]]:
    layout, job = given.layout, given.job
    tokens, adaptable = given.sample is None, given.sample is None or given.sample.adapter_params_per_rank > 0
    if job.fused_loss is not True and tokens:
        yield "fuse the loss with the head", "nothing: logits are made in chunks", _job(given, fused_loss=True)
    if job.recompute == "none" and tokens:
        yield "recompute selectively", "under 5 % more time", _job(given, recompute="selective")
    if job.recompute != "full":
        yield "recompute every layer", "about a third more compute", _job(given, recompute="full")
    if float(np.max(job.micro_batch)) > 1:
        smaller = _job(given, micro_batch=np.maximum(job.micro_batch / 2.0, 1.0))
        yield "halve the micro-batch", "smaller matrices, more steps to accumulate", smaller
    if layout.shard != "zero3" and float(np.max(layout.pp)) == 1 and float(np.max(layout.replicas)) > 1:
        sharded = replace(given, layout=replace(layout, shard="zero3"))
        yield "shard the weights (FSDP)", "weights are gathered in every pass", sharded
    if not job.adapts:
        yield "8-bit optimizer states", "slightly noisier updates", _job(given, optimizer="adamw-8bit")
        yield "hold optimizer states on the host", "seconds a step over PCIe", _job(given, offload="optimizer")
    if not job.adapts and adaptable:
        yield "train adapters only (LoRA)", "not a full fine-tune", _job(given, method="lora", trainer=None)
    if job.method == "lora":
        yield "hold the base in 4 bits (QLoRA)", "slower steps, small loss of quality", _job(given, method="qlora")


def _job(given: TrainingMemoryInput, **changes: Any) -> TrainingMemoryInput:
    return replace(given, job=replace(given.job, **changes))


def training_changes(
    given: TrainingMemoryInput, *, capacity_bytes: float, devices_per_chip: float = 1.0
) -> tuple[Change, ...]:
    """What to change to make a scalar question fit, cheapest first, with what each frees on a chip by itself."""
    before = float(training_memory(given).total_bytes) * devices_per_chip
    found = []
    for change, costs, tried in _changed(given):
        after = float(training_memory(tried).total_bytes) * devices_per_chip
        if after < before:
            enough = after <= fitted().usable_fraction * capacity_bytes
            found.append(Change(change=change, frees_bytes=before - after, costs=costs, enough=enough))
    return tuple(found)
