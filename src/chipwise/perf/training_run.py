"""A whole training run: how long, what a checkpoint weighs, how often to write one, what failures and Spot cost."""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources

import numpy as np

from chipwise.memory.training_job import ADAPTER_METHODS, TrainingJob
from chipwise.memory.training_recipes import optimizer_of, recipe_of
from chipwise.parallelism import Number
from chipwise.units import Range

WEIGHT_BYTES = 2.0
HOST_SHARE = 0.5


@cache
def _reliability() -> dict[str, float]:
    text = resources.files("chipwise.perf").joinpath("data/training_reliability.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return {row["key"]: float(row["value"]) for row in rows}


def mean_time_between_failures_s(chips: Number) -> Number:
    """Seconds between failures that stop a run on `chips` chips: the mean of one chip over their number."""
    return _reliability()["chip_mtbf_s"] / np.maximum(chips, 1.0)


def restart_s() -> float:
    """Seconds from a failure to the first new step: noticing, replacing, loading."""
    return _reliability()["restart_s"]


def run_duration(*, tokens: float, tokens_per_s: Range, goodput_fraction: float = 1.0) -> Range:
    """Seconds to see `tokens` tokens: `tokens / (rate x goodput)`; the slow end comes from the low rate.

    >>> run_duration(tokens=1e12, tokens_per_s=Range(low=5e5, mid=1e6, high=2e6)).mid
    1000000.0
    """
    return tokens_per_s.scaled(goodput_fraction).inverse(tokens)


def chip_hours(*, duration_s: Range, chips: float) -> Range:
    """Chips x hours."""
    return duration_s.scaled(chips / 3600.0)


def checkpoint_bytes(*, params: float, adapter_params: float = 0.0, job: TrainingJob) -> float:
    """Bytes of one checkpoint that a run can go on from: weights as stored, the master copy and optimizer states.

    `params (weight + master + moments x width)`: 2 + 4 + 8 = 14 bytes a parameter with AdamW in mixed precision.
    Adapters in fp32 with fp32 moments: 12 bytes each, and nothing of the base.
    """
    optimizer = optimizer_of(job)
    if job.method in ADAPTER_METHODS:
        return adapter_params * (4.0 + optimizer.moments * 4.0 + optimizer.state_bytes)
    recipe = recipe_of(job)
    held = recipe.weight_bytes + min(recipe.master_bytes, 4.0) * optimizer.needs_master
    return params * (held + optimizer.moments * recipe.moment_bytes + optimizer.state_bytes)


def final_bytes(*, params: float, adapter_params: float = 0.0, job: TrainingJob) -> float:
    """Bytes of what a run leaves: weights as stored, or the adapters in fp32; no states of the optimizer.

    >>> job = TrainingJob(method="pretrain", seq_len=4096, micro_batch=1)
    >>> final_bytes(params=70e9, job=job)
    140000000000.0
    """
    return adapter_params * 4.0 if job.method in ADAPTER_METHODS else params * WEIGHT_BYTES


def stall_s(*, size_bytes: Number, chips: Number, write_s: Number, host_bytes: Number) -> Number:
    """Seconds that training stands for one checkpoint.

    States are copied to host memory, every chip over its own link, and written from there while training goes on:
    `size / (chips x copy rate)`. Where host memory does not hold the copy beside what runs there (half of it), training
    stands until all is written.

    Args:
        size_bytes: of the checkpoint.
        chips: that copy.
        write_s: seconds to write it.
        host_bytes: host memory of all instances.

    Source: PyTorch, "6x faster Async Checkpointing in PyTorch", 2025 (training stands while states are staged).
    """
    copied = size_bytes / (chips * _reliability()["checkpoint_copy"])
    return np.where(size_bytes <= HOST_SHARE * host_bytes, np.minimum(copied, write_s), write_s)


def checkpoint_interval_s(*, write_s: Number, mtbf_s: Number) -> Number:
    """The interval that loses least: `sqrt(2 x write x MTBF)`, where training stands `write` seconds for each.

    Source: Young, "A first order approximation to the optimum checkpoint interval", Communications of the ACM 17(9),
    1974.

    >>> float(checkpoint_interval_s(write_s=50.0, mtbf_s=10_000.0))
    1000.0
    """
    return np.sqrt(2.0 * write_s * np.asarray(mtbf_s))


def goodput_fraction(
    *, write_s: Number, interval_s: Number, mtbf_s: Number, restart_s: Number, lag_s: Number = 0.0
) -> Number:
    """Share of the time that trains: what is left after standing for checkpoints, work lost and restarts.

    `1 / (1 + write / interval + (interval / 2 + lag + restart) / MTBF)`; half an interval is lost on average, and what
    was trained while the last checkpoint was still being written (`lag`).

    Source: Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future Generation
    Computer Systems 22(3), 2006 (first order).

    >>> round(float(goodput_fraction(write_s=50.0, interval_s=1000.0, mtbf_s=10_000.0, restart_s=0.0)), 4)
    0.9091
    """
    lost = write_s / interval_s + (interval_s / 2.0 + lag_s + restart_s) / np.asarray(mtbf_s)
    return 1.0 / (1.0 + lost)


def interruption_cost_usd(*, interruptions: float, interval_s: float, restart_s: float, usd_per_hour: Range) -> Range:
    """What Spot interruptions cost a run: each loses half an interval and a restart of the whole cluster's price.

    >>> interruption_cost_usd(interruptions=10.0, interval_s=3600.0, restart_s=1800.0,
    ...     usd_per_hour=Range(low=90.0, mid=100.0, high=110.0)).mid
    1000.0
    """
    return usd_per_hour.scaled(interruptions * (interval_s / 2.0 + restart_s) / 3600.0)
