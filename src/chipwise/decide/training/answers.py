"""One way to lay a run in full: the objects that `memory` and `estimate` print for training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from chipwise.decide.budget import whole_bytes
from chipwise.decide.training.roles import READ_ONLY, TRAINED
from chipwise.memory.training import RolesInput, training_memory
from chipwise.memory.training_budget import training_changes
from chipwise.memory.training_fitting import min_devices
from chipwise.perf.training import StepTerms, term_seconds
from chipwise.perf.training_prediction import efficiencies
from chipwise.units import show_bytes, show_seconds

if TYPE_CHECKING:
    from chipwise.catalog import Chip
    from chipwise.decide.question import Question
    from chipwise.decide.training.trials import Trial
    from chipwise.units import Range

BOUND = {
    "gemm_s": "compute", "expert_s": "compute", "attention_s": "compute", "head_s": "compute",
    "recompute_s": "compute", "other_passes_s": "compute", "elementwise_s": "bandwidth", "optimizer_s": "bandwidth",
    "unpacking_s": "bandwidth", "rollout_s": "bandwidth",
    "host_s": "overhead", "overhead_s": "overhead", "bubble_s": "overhead", "loop_s": "overhead",
}  # fmt: skip
SPREAD_OF_SHARE = ("mfu_fraction", "hfu_fraction")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a trial."""

    trial: Trial
    row: int

    def of(self, owner: object, name: str) -> float:
        """One number of this row."""
        return float(np.broadcast_to(getattr(owner, name), (len(self.trial.ways),))[self.row])

    @property
    def spread_factor(self) -> float:
        """What a time is multiplied and divided by for its range."""
        return self.trial.spread_factor(self.row)


def _domain(chip: Chip) -> int:
    """Devices that a chip's fastest links join."""
    return (chip.link.domain_chips or 1) * chip.cores if chip.link else chip.cores


def memory_object(row: Row, warnings: tuple[str, ...]) -> dict[str, Any]:
    """CONTRACT's memory object for training, per chip of the fullest device."""
    trial = row.trial
    way, budget = trial.ways[row.row], trial.memory.budget
    chip = way.platform.chip
    short = float(trial.short_bytes[row.row])
    capacity = way.platform.device_memory_bytes * chip.cores
    per_chip, lacking = whole_bytes(capacity, {name: row.of(budget, name) for name in budget.terms()})
    changes = (
        training_changes(trial.asked_of(row.row), capacity_bytes=capacity, devices_per_chip=float(chip.cores))
        if short > 0
        else ()
    )
    whole = way.platform.sample is not None
    fewest = min_devices(
        trial.asked_of(row.row),
        capacity_bytes=way.platform.device_memory_bytes,
        node_devices=way.platform.devices if whole else max(way.platform.devices, _domain(chip)),
    )
    return {
        "fits": short <= 0,
        "chip": chip.id,
        "chips": -(-way.devices // chip.cores),
        "lnc": chip.lnc,
        "per_chip": per_chip,
        "shortfall_bytes": lacking,
        "kv_pool_bytes": None,
        "kv_cache_tokens": None,
        "max_concurrency_at_context": None,
        "longest_context": None,
        "min_chips": None if fewest is None else -(-fewest // chip.cores),
        "min_instances": None if fewest is None or not whole else -(-fewest // way.platform.devices),
        "to_make_it_fit": [
            {"change": one.change, "frees_bytes": round(one.frees_bytes), "costs": one.costs, "enough": one.enough}
            for one in changes
        ],
        "range": {"low_fraction": trial.memory.low_fraction, "high_fraction": trial.memory.high_fraction},
        "evidence": "calibrated" if trial.sample is None else "physics",
        "warnings": list(warnings),
    }


def other_object(row: Row) -> dict[str, Any] | None:
    """CONTRACT's `other` object of a run on samples: what it takes in a second, a step as its latency.

    None where the model is trained on tokens.
    """
    sample = row.trial.sample
    if sample is None:
        return None
    rates = {
        name: row.trial.rate_range(row.row, row.of(row.trial.arrays, key) * sample.passes.units)
        for name, key in (("units_per_s", "samples_per_s"), ("units_per_s_per_chip", "tokens_per_s_per_chip"))
    }
    step_s = row.trial.time_range(row.row, row.of(row.trial.arrays, "step_s"))
    return {"unit": sample.passes.unit, **rates, "latency_s": step_s, "real_time_factor": None}


def training_object(row: Row) -> dict[str, Any]:
    """CONTRACT's `training` object: ranges, efficiencies by kind, the bubble, the terms of a step.

    Of a model that reads no tokens, what counts tokens is None; `unit` is what a sample is.
    """
    arrays, sample = row.trial.arrays, row.trial.sample
    seconds = {name: row.of(arrays.terms, name) for name in term_seconds(arrays.terms)}
    terms = StepTerms(**seconds)
    ranged: dict[str, Range | None] = {
        name: row.trial.rate_range(row.row, row.of(arrays, name))
        for name in ("tokens_per_s", "tokens_per_s_per_chip", "samples_per_s", *SPREAD_OF_SHARE)
    }
    ranged = {"step_s": row.trial.time_range(row.row, row.of(arrays, "step_s")), **ranged}
    if sample is not None:
        each = ranged.pop("tokens_per_s_per_chip")
        ranged |= {"samples_per_s_per_chip": each, **dict.fromkeys(("tokens_per_s", "tokens_per_s_per_chip"))}
    return {
        **ranged,
        "unit": "token" if sample is None else sample.passes.unit,
        "communication_efficiency": efficiencies(terms, spread=row.spread_factor),
        "pipeline_bubble_fraction": row.of(arrays, "pipeline_bubble_fraction"),
        "terms": [
            {"op": name.removesuffix("_s"), "seconds": value, "bound_by": BOUND.get(name, "communication")}
            for name, value in seconds.items()
        ],
    }


def roles_words(question: Question, row: Row, training: dict[str, Any]) -> str | None:
    """Who is held, how many bytes of a device the others take, how long they and generation take of a step."""
    method = question.training.method
    frozen, trained = READ_ONLY.get(method, ()), TRAINED.get(method, ())
    if not frozen and not trained:
        return None
    asked = row.trial.asked_of(row.row)
    whole, alone = training_memory(asked), training_memory(replace(asked, roles=RolesInput()))
    others = float(np.ravel(whole.total_bytes)[0]) - float(np.ravel(alone.total_bytes)[0])
    seconds = {term["op"]: term["seconds"] for term in training["terms"]}
    parts = (("generation", seconds.get("rollout", 0.0)), ("the other models", seconds.get("other_passes", 0.0)))
    taken = " and ".join(f"{name} {show_seconds(value)}" for name, value in parts if value)
    step = show_seconds(training["step_s"].mid)
    learns = " and ".join(("actor", *trained))
    held = (
        f"{method} trains {learns} and reads {' and '.join(frozen)}, all taken to be of one size, on the same devices"
    )
    return f"{held}: the others take {show_bytes(others)} of each, and of a step of {step} {taken}"
