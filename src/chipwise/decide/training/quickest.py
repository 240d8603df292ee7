"""Of every fleet the fastest step that fits, over all ways and recomputation modes: worked out once, then remembered.

A page asks about one model again and again while tokens, deadline, budget, prices and Regions move: no step of it does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, get_args

import numpy as np

from chipwise.decide.training.trials import trial
from chipwise.memory.training_job import Recompute

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from chipwise.decide.question import TrainingDemand
    from chipwise.decide.training.trainers import Scheme
    from chipwise.decide.training.trials import Trial
    from chipwise.decide.training.ways import Way, Ways
    from chipwise.model import ModelSpec

    Floats = NDArray[np.float64]

KEPT = 30
"""Answers that are remembered, about ten questions' worth: one row a fleet each, and the ways that were tried."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fastest:
    """The fastest row of a fleet, and the trial it is of."""

    trial: Trial
    row: int
    way: Way


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Short:
    """A fleet on which no way fits: one of them, and the fewest bytes a device that any lacks."""

    way: Way
    short_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quickest:
    """What each fleet does at best, in the order of the ways; `tried` configurations."""

    fleets: tuple[Fastest | Short, ...]
    tried: int


def quickest(model: ModelSpec, run: TrainingDemand, scheme: Scheme, ways: Ways, rollout_s: Floats | None) -> Quickest:
    """Try every way in every mode that the run allows."""
    step = replace(run, tokens=1.0, deadline_s=None)
    return _quickest(model, step, scheme, ways, None if rollout_s is None else rollout_s.tobytes())


def modes(run: TrainingDemand) -> tuple[Recompute, ...]:
    """What may be recomputed: as asked, else anything; what is selected is of a token model's layers."""
    known: tuple[Recompute, ...] = get_args(Recompute) if run.sample is None else ("none", "full")
    return tuple(mode for mode in known if run.recompute in {None, mode})


@lru_cache(maxsize=KEPT)
def _quickest(model: ModelSpec, run: TrainingDemand, scheme: Scheme, ways: Ways, rollout: bytes | None) -> Quickest:
    rollout_s = None if rollout is None else np.frombuffer(rollout)
    trials = [trial(model, run, scheme, mode, ways, rollout_s=rollout_s) for mode in modes(run)]
    return Quickest(fleets=tuple(_fleets(trials)), tried=len(ways) * len(trials))


def _fleets(trials: list[Trial]) -> Iterator[Fastest | Short]:
    ways = trials[0].ways
    times = np.stack([np.where(one.short_bytes > 0, np.inf, one.column("step_s")) for one in trials])
    short = np.stack([one.short_bytes for one in trials])
    bounds = ways.fleets()
    best = [_least(times[:, start:stop]) for start, stop in bounds]
    mode = np.array([one for one, _ in best])
    rows = np.array([start + column for (start, _), (_, column) in zip(bounds, best, strict=True)])
    kept = [one.at(rows[mode == place]) for place, one in enumerate(trials)]
    within = [int(np.sum(mode[:place] == one)) for place, one in enumerate(mode)]
    for place, (start, stop) in enumerate(bounds):
        way = ways[int(rows[place])]
        if np.isfinite(times[mode[place], rows[place]]):
            yield Fastest(trial=kept[mode[place]], row=within[place], way=way)
        else:
            yield Short(way=way, short_bytes=float(short[:, start:stop].min()))


def _least(times: Floats) -> tuple[int, int]:
    """Row and column of the smallest."""
    row, column = np.unravel_index(int(np.argmin(times)), times.shape)
    return int(row), int(column)
