"""What a row of a training table leaves open: its layout, its sharding, what it recomputes. Tuned runs are assumed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from chipwise.audit.items import SkipError
from chipwise.audit.training_cases import Case, asked_of, coefficients_of
from chipwise.memory.training import training_memory
from chipwise.memory.training_fitting import MODES, candidate_layouts, training_fits
from chipwise.memory.training_job import Recompute, TrainingLayout
from chipwise.memory.training_recipes import fitted
from chipwise.parallelism import Number
from chipwise.perf.training import step_arrays

Batches = Callable[[float], tuple[float, float]]
"""Copies to sequences of a micro-batch and micro-batches of a step, as a row states them."""
DEGREES = ("tp", "pp", "vp", "cp", "ep", "dp")


def laid_out(case: Case, batches: Batches, copies: float | None) -> Case:
    """The run in the layout that is predicted fastest among those that hold a step; as it is where none does.

    Args:
        case: with the sharding its trainer uses; another is tried only where that one holds in no layout.
        batches: the row's.
        copies: the most data-parallel copies that batch and accumulation leave.
    """
    tried = _layouts(replace(case, job=replace(case.job, micro_batches=batches(1.0)[1])), copies)
    usual = [one for one in tried if one.shard in {case.layout.shard, "none"}]
    rest = [one for one in tried if one not in usual]
    for ways in (usual, rest):
        chosen = _fastest(case, ways, batches)
        if chosen is not None:
            micro, micros = batches(float(chosen.dp))
            return replace(case, layout=chosen, job=replace(case.job, micro_batch=micro, micro_batches=micros))
    return case


def sharded(case: Case) -> Case:
    """The run as it is, or with sharded weights where no recomputation makes room for whole ones."""
    if case.layout.shard == "none" or holds(_recomputing(case, "full")):
        return case
    return replace(case, layout=replace(case.layout, shard="zero3"))


def least_recompute(case: Case) -> Case:
    """The run with the cheapest recomputation that fits; with full recomputation where nothing does."""
    tried = [_recomputing(case, mode) for mode in MODES]
    return next((one for one in tried if holds(one)), tried[-1])


def holds(case: Case) -> Number:
    """Whether the fullest device holds a step."""
    return training_fits(case.asked, case.capacity_bytes)


def _recomputing(case: Case, mode: Recompute) -> Case:
    """The run with this recomputation; of whole layers only as many as memory asks for.

    Memory falls with each layer that is recomputed: with t at cheap recomputation and f at all layers, a capacity of
    c takes (t - c) / (t - f) of them.
    """
    changed = replace(case, job=replace(case.job, recompute=mode))
    if mode != "full":
        return changed
    most, least = _total(replace(case, job=replace(case.job, recompute="selective"))), _total(changed)
    over = most - fitted().usable_fraction * case.capacity_bytes
    return replace(changed, recomputed_fraction=np.clip(over / np.maximum(most - least, 1.0), 0.0, 1.0))


def _total(case: Case) -> Number:
    return training_memory(case.asked).total_bytes


def _fastest(case: Case, layouts: Sequence[TrainingLayout], batches: Batches) -> TrainingLayout | None:
    best: tuple[float, TrainingLayout | None] = (float("inf"), None)
    for shard in dict.fromkeys(one.shard for one in layouts):
        alike = [one for one in layouts if one.shard == shard]
        micro, micros = np.array([batches(float(one.dp)) for one in alike]).T
        degrees: dict[str, Any] = {name: np.array([float(getattr(one, name)) for one in alike]) for name in DEGREES}
        job = replace(case.job, micro_batch=micro, micro_batches=micros)
        stacked = replace(case, layout=TrainingLayout(shard=shard, **degrees), job=job)
        seconds = np.min([np.asarray(_seconds(_recomputing(stacked, mode))) for mode in MODES], axis=0)
        at = int(np.argmin(seconds))
        best = min(best, (float(seconds[at]), alike[at]), key=lambda one: one[0])
    return best[1]


def _seconds(case: Case) -> Number:
    """Seconds of a step by row; infinite where it is not held."""
    try:
        found = step_arrays(asked_of(case, coefficients_of(case)))
    except SkipError:
        return np.where(holds(case), 1.0, np.inf)
    return np.where(holds(case), found.step_s, np.inf)


def _layouts(case: Case, copies: float | None) -> list[TrainingLayout]:
    """Every legal layout; more copies than a step has sequences share a sequence (context parallelism)."""
    devices = int(case.chips * case.chip.cores)
    node = int(min(devices, (case.node_chips or _domain(case)) * case.chip.cores))
    most = case.row.positive("global_batch") if copies is None else copies
    found = []
    for layout in candidate_layouts(model=case.model, job=case.job, devices=devices, node_devices=max(node, 1)):
        held = float(layout.dp)
        if most is None or (held <= most and most % held == 0):
            found += _interleaved(layout, case.model.layer_count)
        elif held > most and held % most == 0:
            found += _interleaved(replace(layout, cp=layout.cp * held / most, dp=most), case.model.layer_count)
    return found


def _interleaved(layout: TrainingLayout, layers: int) -> list[TrainingLayout]:
    """The layout with the layers of a stage whole, and dealt in every number of equal chunks."""
    each = layers // int(layout.pp)
    chunks = [vp for vp in range(1, each + 1) if each % vp == 0 and layers % int(layout.pp) == 0]
    return [replace(layout, vp=vp) for vp in (chunks if layout.pp > 1 else [1])] or [layout]


def _domain(case: Case) -> float:
    return float((case.chip.link.domain_chips or 1) if case.chip.link else 1)
