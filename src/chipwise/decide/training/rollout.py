"""Seconds a reinforcement method spends on generating, from the serving model on the same devices."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from chipwise.decide.failures import Refusal
from chipwise.decide.question import Demand
from chipwise.decide.serving.evaluate import evaluate
from chipwise.decide.serving.seats import Seat, at_precision, layouts_of, seat_of
from chipwise.decide.training.roles import GENERATING
from chipwise.precision import legal_precisions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from chipwise.decide.platforms import Platform
    from chipwise.decide.question import Question
    from chipwise.decide.training.trials import Way


def rollout_seconds(question: Question, ways: Sequence[Way]) -> NDArray[np.float64] | None:
    """Generation time of a step, by row: answers x their length over the devices' best offline rate.

    Returns:
        None where the method generates nothing; infinite where the platform cannot serve the model.
    """
    demand = question.training
    if demand.method not in GENERATING or demand.osl_tokens is None:
        return None
    wanted = demand.global_batch * demand.osl_tokens
    rates = {id(way.platform): 0.0 for way in ways}
    for platform in {id(way.platform): way.platform for way in ways}.values():
        rates[id(platform)] = tokens_per_s_per_device(question, platform)
    with np.errstate(divide="ignore"):
        return np.array([np.float64(wanted) / (rates[id(way.platform)] * way.devices) for way in ways])


def tokens_per_s_per_device(question: Question, platform: Platform) -> float:
    """The best offline rate of generation on one device of a platform; 0 where it cannot serve the model."""
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
        return 0.0
    return _best_rate(seat, demand, question)


def _best_rate(seat: Seat, demand: Demand, question: Question) -> float:
    option = legal_precisions(question.model)[0]
    model = at_precision(question.model, option)
    layouts = layouts_of(seat, model)
    evaluated, _ = evaluate(model, option, layouts, demand) if layouts else (None, [])
    if evaluated is None:
        return 0.0
    rates = np.broadcast_to(evaluated.prediction.output_tokens_per_s, evaluated.miss.shape)[:, 0]
    replicas = np.array([float(one.replicas_per_unit) for one in evaluated.packings])
    devices = np.array([float(one.devices) for one in evaluated.layouts])
    return float(np.max(rates / (replicas * devices)))
