"""Reinforcement: how long a batch of answers takes to generate, and what the loop around it adds. Data and formulas."""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources

import numpy as np

from chipwise.parallelism import Number


@cache
def _values() -> dict[str, float]:
    text = resources.files("chipwise.perf").joinpath("data/training_rollout.csv").read_text(encoding="utf-8")
    return {row["key"]: float(row["value"]) for row in csv.DictReader(text.splitlines())}


def loop_factor() -> float:
    """Times a step of reinforcement takes of what generation, passes and update take by themselves.

    Weights are handed from the trainer to the engine, rewards computed, batches sorted; devices wait for each other.
    """
    return _values()["loop_factor"]


def loop_spread_factor(*, mixture: bool) -> float:
    """What a step of reinforcement is multiplied and divided by to hold 80 % of the measured ones."""
    return _values()["mixture_loop_spread_factor" if mixture else "loop_spread_factor"]


def generation_s(
    *, answers: Number, mean_tokens: Number, longest_tokens: Number, alone_s: Number, full_s: Number, limit: Number
) -> Number:
    """Seconds until the last of the answers of one replica ends.

    A step takes `s(n) = alone + (full - alone) n / limit` for n running answers. All run until a mean answer ends, in
    as many waves as the limit makes of them; the longest ends alone:
    `mean max(answers / limit, 1) s(min(answers, limit)) + (longest - mean) alone`.

    Args:
        answers: of one replica.
        mean_tokens: of an answer.
        longest_tokens: what an answer is cut at.
        alone_s: seconds a token of one answer alone.
        full_s: seconds a token of `limit` answers at once.
        limit: answers that run at once.

    >>> float(generation_s(answers=256, mean_tokens=1000, longest_tokens=1000, alone_s=0.01, full_s=0.03, limit=128))
    60.0
    >>> float(generation_s(answers=64, mean_tokens=1000, longest_tokens=3000, alone_s=0.01, full_s=0.03, limit=128))
    40.0
    """
    running = np.minimum(answers, limit)
    pace = alone_s + (full_s - alone_s) * running / limit
    return mean_tokens * np.maximum(answers / limit, 1.0) * pace + (longest_tokens - mean_tokens) * alone_s
