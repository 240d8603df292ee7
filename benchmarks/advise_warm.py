"""Milliseconds of `advise()` over the whole catalog, warm, against a fixed piece of numpy work."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from chipwise.advisor import advise
from chipwise.advisor.request import Request

RUNS = 40
YARDSTICK_SIZE = 200_000
QUESTIONS = {
    "chat 70B": Request(
        model="llama-3.3-70b", purpose="chat", users=64, context_tokens=8192, ttft_p99_s=1.0, tpot_p99_s=0.04
    ),
    "rag 8B": Request(model="llama-3.1-8b", purpose="rag", users=32),
    "chat MoE": Request(model="deepseek-v3", purpose="chat", users=200),
    "pretrain 8B": Request(model="llama-3.1-8b", purpose="pretrain", tokens=1e11),
}


def yardstick() -> None:
    """The same numpy work on every machine: elementwise, a sort and a sum."""
    values = np.linspace(0.0, 1.0, YARDSTICK_SIZE)
    np.sort(np.maximum(np.sin(values * 50.0), np.sqrt(values))).sum()


def times_ms(work: Callable[[], object]) -> list[float]:
    """RUNS times of one piece of work, after two that warm it."""
    work(), work()
    found = []
    for _ in range(RUNS):
        start = time.perf_counter()
        work()
        found.append((time.perf_counter() - start) * 1e3)
    return sorted(found)


def main() -> None:
    """Print one row a question."""
    unit_ms = statistics.median(times_ms(yardstick))
    print(f"{'question':<14}{'median ms':>11}{'p90 ms':>9}{'x yardstick':>13}")
    print(f"{'(yardstick)':<14}{unit_ms:>11.2f}{'':>9}{1.0:>13.1f}")
    for name, request in QUESTIONS.items():
        found = times_ms(partial(advise, request))
        median_ms, p90_ms = statistics.median(found), found[int(0.9 * RUNS)]
        print(f"{name:<14}{median_ms:>11.2f}{p90_ms:>9.2f}{median_ms / unit_ms:>13.1f}")


if __name__ == "__main__":
    main()
