"""One way to lay a run in full: the objects that `memory` and `estimate` print for training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from chipwise.perf.training import StepTerms, term_seconds
from chipwise.perf.training_prediction import efficiencies
from chipwise.units import Range

if TYPE_CHECKING:
    from chipwise.catalog import Chip
    from chipwise.memory.training import TrainingMemory
    from chipwise.memory.training_recipes import Recipe
    from chipwise.perf.training import TrainingArrays

STATES = (
    "weights_bytes",
    "gradients_bytes",
    "optimizer_bytes",
    "activations_bytes",
    "adapters_bytes",
    "cache_bytes",
    "overhead_bytes",
)
BOUND = {
    "gemm_s": "compute", "expert_s": "compute", "attention_s": "compute", "head_s": "compute",
    "recompute_s": "compute", "other_passes_s": "compute", "elementwise_s": "bandwidth", "optimizer_s": "bandwidth",
    "rollout_s": "bandwidth", "host_s": "overhead", "overhead_s": "overhead", "bubble_s": "overhead",
}  # fmt: skip
SPREAD_OF_SHARE = ("mfu_fraction", "hfu_fraction")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a trial, with what its devices hold and how far its times may be off."""

    memory: TrainingMemory
    arrays: TrainingArrays
    recipe: Recipe
    spread_factor: float
    row: int
    rows: int

    def of(self, owner: object, name: str) -> float:
        """One number of this row."""
        return float(np.broadcast_to(getattr(owner, name), (self.rows,))[self.row])


def memory_object(row: Row, chip: Chip, capacity_bytes: float, warnings: tuple[str, ...]) -> dict[str, Any]:
    """CONTRACT's memory object for training, per chip of the fullest device."""
    per_device = {name: row.of(row.memory, name) for name in STATES}
    total, cores = sum(per_device.values()), chip.cores
    free = max(capacity_bytes - total, 0.0)
    short = max(total - capacity_bytes, 0.0)
    terms = {"reserved_bytes": 0.0, "graphs_bytes": 0.0, "draft_bytes": 0.0, **per_device}
    return {
        "fits": short == 0.0,
        "chip": chip.id,
        "lnc": chip.lnc,
        "per_chip": {
            "capacity_bytes": round(capacity_bytes * cores),
            "free_bytes": round(free * cores),
            **{name: round(size * cores) for name, size in terms.items()},
        },
        "shortfall_bytes": round(short * cores),
        "kv_pool_bytes": None,
        "kv_cache_tokens": None,
        "max_concurrency_at_context": None,
        "longest_context": None,
        "min_chips": None,
        "to_make_it_fit": [],
        "range": {"low_fraction": row.recipe.low_fraction, "high_fraction": row.recipe.high_fraction},
        "evidence": "calibrated",
        "warnings": list(warnings),
    }


def training_object(row: Row) -> dict[str, Any]:
    """CONTRACT's `training` object: ranges, efficiencies by kind, the bubble, the terms of a step."""
    seconds = {name: row.of(row.arrays.terms, name) for name in term_seconds(row.arrays.terms)}
    terms = StepTerms(**seconds)
    ranged = {
        name: Range.around(row.of(row.arrays, name), factor=row.spread_factor)
        for name in ("step_s", "tokens_per_s", "tokens_per_s_per_chip", "samples_per_s", *SPREAD_OF_SHARE)
    }
    return {
        **ranged,
        "communication_efficiency": efficiencies(terms, spread=row.spread_factor),
        "pipeline_bubble_fraction": row.of(row.arrays, "pipeline_bubble_fraction"),
        "terms": [
            {"op": name.removesuffix("_s"), "seconds": value, "bound_by": BOUND.get(name, "communication")}
            for name, value in seconds.items()
        ],
    }
