"""Memory and step time of many ways to lay one run, in one pass of array arithmetic.

Rows are ways (`ways.py`). What is a word (trainer, sharding,
recomputation) is the same for all rows of one `Trial`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from chipwise.decide.training.roles import roles_of
from chipwise.decide.training.rollout import mean_tokens
from chipwise.decide.training.trainers import DATA_PARALLEL
from chipwise.memory.training import TrainingMemoryInput
from chipwise.memory.training_budget import TrainingMemoryAnswer, size_training
from chipwise.memory.training_job import Adapter, TrainingJob, TrainingLayout
from chipwise.memory.training_recipes import recipes
from chipwise.perf.hardware import hardware_of, stack
from chipwise.perf.parameters import stack_parameters
from chipwise.perf.ranges import Evidence
from chipwise.perf.training import Rollout, TrainingArrays, TrainingInput, step_arrays
from chipwise.perf.training_coefficients import TrainingCoefficients, training_coefficients, training_evidence
from chipwise.perf.training_communication import Fabric, training_fabric
from chipwise.perf.training_rollout import loop_factor, loop_spread_factor
from chipwise.perf.training_samples import Sampled, sample_spread_factor, sampled
from chipwise.units import Range

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from chipwise.decide.platforms import Platform
    from chipwise.decide.question import TrainingDemand
    from chipwise.decide.training.trainers import Scheme
    from chipwise.decide.training.ways import Ways
    from chipwise.memory.training_job import Recompute
    from chipwise.model import ModelSpec

    Floats = NDArray[np.float64]

MODES_AT_ONCE = 2
"""Fabrics that are remembered: the same ways are tried in one mode after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Ways that share a scheme and a recomputation mode, sized and timed."""

    scheme: Scheme
    recompute: Recompute
    ways: Ways
    asked: TrainingMemoryInput
    memory: TrainingMemoryAnswer
    arrays: TrainingArrays
    spread_factors: Floats
    short_bytes: Floats
    sample: Sampled | None = None

    def at(self, rows: NDArray[np.intp]) -> Trial:
        """Some of the ways, in that order."""
        parts = {name: _rows(getattr(self, name), len(self.ways), rows) for name in ("memory", "arrays")}
        asked = {name: _rows(getattr(self.asked, name), len(self.ways), rows) for name in ("job", "layout", "roles")}
        return replace(
            self,
            ways=self.ways.at(rows),
            asked=replace(self.asked, **asked),
            spread_factors=self.spread_factors[rows],
            short_bytes=self.short_bytes[rows],
            **parts,
        )

    def column(self, name: str) -> Floats:
        """One predicted quantity of every row."""
        return np.broadcast_to(getattr(self.arrays, name), (len(self.ways),))

    def memory_of(self, row: int, name: str) -> float:
        """One memory term of one row, per chip."""
        return float(np.broadcast_to(getattr(self.memory.budget, name), (len(self.ways),))[row])

    def value(self, row: int, name: str) -> float:
        """One predicted quantity of one row."""
        return float(self.column(name)[row])

    def spread_factor(self, row: int) -> float:
        """What a time of one row is multiplied by for its range, and divided by where the hardware allows it."""
        return float(self.spread_factors[row])

    def time_range(self, row: int, mid: float) -> Range:
        """A time of one row with its range: none is so short that more than the peak of the hardware was multiplied."""
        spread = self.spread_factor(row)
        shortest = max(1.0 / spread, min(self.value(row, "peak_fraction"), 1.0))
        return Range(low=mid * shortest, mid=mid, high=mid * spread)

    def rate_range(self, row: int, mid: float) -> Range:
        """A rate of one row with its range: that of the time that it is made in."""
        return self.time_range(row, 1.0).inverse(mid)

    def evidence(self, row: int) -> Evidence:
        """What backs the prediction of one row; nothing was fitted on models that are trained on samples."""
        if self.sample is not None:
            return "physics"
        return training_evidence(generation=self.ways[row].platform.chip.architecture, precision=self.job.precision)

    @property
    def job(self) -> TrainingJob:
        """What is trained and how; its numbers are arrays over the ways."""
        return self.asked.job

    def asked_of(self, row: int) -> TrainingMemoryInput:
        """The memory question of one row, in scalars."""
        job = replace(self.job, **_at(self.job, ("micro_batch", "micro_batches"), row))
        layout = replace(self.asked.layout, **_at(self.asked.layout, ("tp", "pp", "vp", "ep", "dp", "cp"), row))
        return replace(self.asked, job=job, layout=layout)


def _rows(owner: Any, count: int, rows: NDArray[np.intp]) -> Any:
    """Whatever is an array over `count` ways, at some of them; in dataclasses too."""
    if isinstance(owner, np.ndarray):
        return owner[rows] if owner.shape == (count,) else owner
    if not is_dataclass(owner) or isinstance(owner, type):
        return owner
    return replace(owner, **{one.name: _rows(getattr(owner, one.name), count, rows) for one in fields(owner)})


def _at(owner: TrainingJob | TrainingLayout, names: Sequence[str], row: int) -> dict[str, Any]:
    return {name: float(np.ravel(getattr(owner, name))[row]) for name in names}


def _job(demand: TrainingDemand, scheme: Scheme, recompute: Recompute, ways: Ways) -> TrainingJob:
    micro, copies = ways.column("micro_batch"), ways.column("dp")
    method: Any = demand.method
    offload: Any = demand.offload
    return TrainingJob(
        method=method,
        seq_len=demand.seq_len,
        micro_batch=micro,
        micro_batches=np.ceil(demand.global_batch / (micro * copies)),
        precision=demand.precision,
        optimizer=demand.optimizer,
        recompute=recompute,
        trainer=scheme.trainer,
        adapter=Adapter(rank=demand.lora_rank),
        offload=offload,
    )


def _layout(scheme: Scheme, ways: Ways) -> TrainingLayout:
    names = ("tp", "pp", "vp", "ep", "dp", "cp")
    degrees: dict[str, Any] = {name: ways.column(name) for name in names}
    return TrainingLayout(shard=scheme.shard, **degrees)


@lru_cache(maxsize=MODES_AT_ONCE)
def _fabric(trainer: str, precision: str, ways: Ways) -> Fabric:
    fabrics = [platform_fabric(one, trainer, precision) for one in ways.platforms]
    hardware = stack([one.hardware for one in fabrics])
    links = stack_parameters([one.links for one in fabrics])
    return Fabric(
        hardware=replace(hardware, **_taken(hardware, ways.place)), links=replace(links, **_taken(links, ways.place))
    )


def platform_fabric(platform: Platform, trainer: str, precision: str) -> Fabric:
    """The links of one platform as the training model was fitted with them."""
    chip, sample = platform.chip, platform.sample
    link = sample.link if sample else chip.link
    return training_fabric(
        hardware=hardware_of(chip, formats=(precision,), instance=sample),
        coefficients=coefficients_of(chip.architecture, trainer, precision),
        generation=chip.architecture,
        fabric=link.kind if link else "none",
    )


def coefficients_of(generation: str, trainer: str, precision: str) -> TrainingCoefficients:
    """The fitted numbers of a trainer on a generation: those of the trainer whose speed is like its own."""
    family = recipes()[trainer].family
    return training_coefficients(generation=generation, precision=precision, trainer=family)


def _taken(stacked: Any, index: NDArray[np.intp]) -> dict[str, Any]:
    """Every array field at `index`, in mappings too."""
    values = {one.name: getattr(stacked, one.name) for one in fields(stacked)}
    return {
        name: {key: np.asarray(one)[index] for key, one in value.items()}
        if isinstance(value, dict)
        else np.asarray(value)[index]
        for name, value in values.items()
    }


@lru_cache(maxsize=MODES_AT_ONCE)
def _coefficients(trainer: str, precision: str, ways: Ways) -> TrainingCoefficients:
    known = [coefficients_of(one.chip.architecture, trainer, precision) for one in ways.platforms]
    names = [one.name for one in fields(TrainingCoefficients)]
    return TrainingCoefficients(**{name: np.array([getattr(one, name) for one in known])[ways.place] for name in names})


def trial(
    model: ModelSpec, run: TrainingDemand, scheme: Scheme, recompute: Recompute, ways: Ways, *, rollout_s: Floats | None
) -> Trial:
    """Size and time every way.

    Args:
        model: what is trained.
        run: how; how many tokens and by when does not matter to a step.
        scheme: trainer and sharding.
        recompute: what is recomputed.
        ways: the rows.
        rollout_s: seconds of generation a step, by row; None where nothing is generated.
    """
    job, layout = _job(run, scheme, recompute, ways), _layout(scheme, ways)
    item = run.sample
    sample = None if item is None else sampled(model, item)
    asked = TrainingMemoryInput(
        model=model,
        layout=layout,
        job=job,
        roles=roles_of(model, run, layout),
        sample=None if sample is None else sample.counts,
    )
    cores = ways.of_platforms([float(one.chip.cores) for one in ways.platforms])
    capacity = ways.of_platforms([one.device_memory_bytes for one in ways.platforms]) * cores
    memory = size_training(asked, capacity_bytes=capacity, devices_per_chip=cores)
    mean = mean_tokens(run)
    copied = sample is not None and ways[0].platform.chip.vendor == "nvidia"
    paced = DATA_PARALLEL.trainer if copied else scheme.trainer  # eager kernels, however the weights are shared
    given = TrainingInput(
        model=model,
        layout=layout,
        job=job if mean is None else replace(job, seq_len=mean),
        fabric=_fabric(paced, job.precision, ways),
        coefficients=_coefficients(paced, job.precision, ways),
        devices_per_chip=cores,
        rollout=None if rollout_s is None else Rollout(seconds_s=rollout_s, loop_factor=loop_factor()),
        sample=sample,
    )
    spread = given.spread_factor
    if sample is not None:
        tables = sample.counts.table_params > 0
        spread = ways.of_platforms([sample_spread_factor(one.chip.vendor, tables=tables) for one in ways.platforms])
    if rollout_s is not None:
        spread = np.maximum(spread, loop_spread_factor(mixture=any(layer.experts for layer in model.layers)))
    return Trial(
        scheme=scheme,
        recompute=recompute,
        ways=ways,
        asked=asked,
        memory=memory,
        arrays=step_arrays(given),
        spread_factors=np.broadcast_to(spread, (len(ways),)),
        short_bytes=np.broadcast_to(memory.shortfall_bytes, (len(ways),)),
        sample=sample,
    )
