"""Seconds a reinforcement method spends on generating, from the serving model on the same devices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from chipwise.decide.failures import Refusal
from chipwise.decide.question import Demand
from chipwise.decide.serving.evaluate import evaluate, size
from chipwise.decide.serving.seats import at_precision, layouts_of, seat_of, spanning_layouts
from chipwise.decide.training.roles import GENERATING
from chipwise.perf.training_rollout import generation_s
from chipwise.precision import legal_precisions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from chipwise.decide.platforms import Platform
    from chipwise.decide.question import Question, TrainingDemand
    from chipwise.decide.serving.evaluate import Evaluated
    from chipwise.decide.training.ways import Ways


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast the replicas of each layout of a platform generate: an array a field, a layout an element."""

    alone_s: NDArray[np.float64]
    full_s: NDArray[np.float64]
    limit: NDArray[np.float64]
    devices: NDArray[np.float64]


def mean_tokens(run: TrainingDemand) -> float | None:
    """Prompt and answer of a mean sequence; None where nothing is generated."""
    if run.method not in GENERATING or run.osl_tokens is None:
        return None
    return min(run.seq_len, (run.isl_tokens or 0.0) + run.osl_tokens)


def rollout_seconds(question: Question, ways: Ways) -> NDArray[np.float64] | None:
    """Generation time of a step, by row: until the longest of its answers ends, in the layout that ends first.

    Returns:
        None where the method generates nothing; infinite where the platform cannot serve the model.
    """
    run = question.training
    if mean_tokens(run) is None:
        return None
    paces = [pace_of(question, platform) for platform in ways.platforms]
    found = np.empty(len(ways))
    for start, stop in ways.fleets():
        found[start:stop] = _seconds(run, paces[ways.place[start]], ways[start].devices)
    return found


def _seconds(run: TrainingDemand, pace: Pace | None, devices: int) -> float:
    if pace is None:
        return float("inf")
    mean = run.osl_tokens or 1.0
    each: Any = generation_s(
        answers=run.global_batch * pace.devices / devices,
        mean_tokens=mean,
        longest_tokens=max(run.seq_len - (run.isl_tokens or 0.0), mean),
        alone_s=pace.alone_s,
        full_s=pace.full_s,
        limit=pace.limit,
    )
    return float(np.min(np.where(pace.devices <= devices, each, np.inf)))


def pace_of(question: Question, platform: Platform) -> Pace | None:
    """How fast a platform generates with the model as it is trained; None where it cannot serve it."""
    option = legal_precisions(question.model)[0]
    model = at_precision(question.model, option)
    run = question.training
    demand = Demand(
        kind="offline",
        isl_tokens=max(run.isl_tokens or 1.0, 1.0),
        osl_tokens=run.osl_tokens or 1.0,
        context_tokens=run.seq_len,
    )
    seat = seat_of(replace(question, demand=demand), platform, model, option)
    if isinstance(seat, Refusal):
        return None
    for layouts in (layouts_of(seat, model), spanning_layouts(seat, model)):
        (evaluated,) = evaluate([size(model, option, layouts, demand)], demand)
        if evaluated is not None:
            return _pace(evaluated)
    return None


def _pace(evaluated: Evaluated) -> Pace:
    columns = {
        name: np.broadcast_to(getattr(evaluated.prediction, name), evaluated.miss.shape)[:, 0]
        for name in ("isolated_tpot_s", "tpot_s", "running")
    }
    return Pace(
        alone_s=columns["isolated_tpot_s"],
        full_s=columns["tpot_s"],
        limit=columns["running"],
        devices=np.array([float(one.devices) for one in evaluated.layouts]),
    )
