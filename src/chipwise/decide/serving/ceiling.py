"""Sequences that an engine is set to run at once: what the goal asks of the batch, never fewer than the load needs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from chipwise.decide.serving.evaluate import load_of, worst_miss
from chipwise.perf.serving import predict_serving
from chipwise.perf.spread import tpot_quantile_s, ttft_quantile_s

if TYPE_CHECKING:
    from chipwise.decide.question import Demand, Question
    from chipwise.decide.serving.deployment import ServingDeployment
    from chipwise.perf.load import ServingInput

STEPS = 48
"""Batches tried between one and the engine's limit, in even ratios."""


def seats(question: Question, deployment: ServingDeployment, asked: ServingInput, *, held_at_context: float) -> int:
    """`max_num_seqs` per rank, by the goal that comes first.

    latency: the largest batch at which the bars of P99 TTFT and TPOT still hold; what is more waits instead of
    slowing everybody. concurrency and cost: what the cache holds at the full context. Otherwise the load's own
    need. Never fewer than the load needs, never more than the engine takes.

    Args:
        question: what was asked.
        deployment: the answer whose engine is set.
        asked: its question to perf.
        held_at_context: requests of the full context that the cache of one replica holds.
    """
    goal, limit = question.policy.goals[0], deployment.layout.seat.limits.max_num_seqs
    dp = int(deployment.layout.split.dp)
    wanted = [_needed(question.serving, deployment)]
    if goal == "latency" and question.serving.kind != "offline":
        wanted.append(most_within_bars(asked, question.serving, limit=limit))
    if goal in {"concurrency", "cost"}:
        wanted.append(held_at_context)
    return max(1, min(limit, math.ceil(max(wanted) / dp)))


def _needed(demand: Demand, deployment: ServingDeployment) -> float:
    """Seats of one replica that the load takes.

    A closed loop needs a seat for every request in flight on a replica while headroom for failures is missing;
    arrivals get twice their mean number; offline work takes what cache and scheduler hold.
    """
    base = deployment.base_units * deployment.evaluated.packings[deployment.row].replicas_per_unit
    wanted = {"closed": demand.users / base, "rate": 2.0 * deployment.value("running")}
    return wanted.get(demand.kind, deployment.value("sequence_limit"))


def most_within_bars(asked: ServingInput, demand: Demand, *, limit: int) -> int:
    """Requests in flight on one replica up to which both latency bars hold, all running; 0 where not even one does.

    Args:
        asked: the layout's question to perf; its load and replicas do not count.
        demand: whose lengths and bars count; its load and its bar on throughput do not.
        limit: of requests that the engine runs at once.
    """
    alone = replace(demand, kind="closed", users=1.0, throughput_tokens_per_s=None)
    if alone.ttft_p99_s is None and alone.tpot_p99_s is None:
        return 0
    flights = np.unique(np.round(np.geomspace(1.0, limit, STEPS)))
    prediction = predict_serving(replace(asked, load=load_of(alone), replicas=1.0 / flights))
    ttft = np.asarray(ttft_quantile_s(prediction, quantile=0.99))
    tpot = np.asarray(tpot_quantile_s(prediction, quantile=0.99, steps=alone.osl_tokens - 1.0))
    holds = worst_miss(alone, prediction, ttft, tpot) <= 1.0
    return int(flights[holds].max()) if holds.any() else 0
