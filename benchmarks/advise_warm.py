"""Milliseconds of `advise()` over the whole catalog, against a fixed piece of numpy work.

`first` is a model's first question in the process; `median` those that follow it, each of another load, as a page's
sliders ask them; of `another batch`, each of another number of sequences a step.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count

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


def time_ms(work: Callable[[], object]) -> float:
    """Milliseconds of one call."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3


def other_loads(request: Request) -> Callable[[], object]:
    """The question, each time with one more user or a few more tokens."""
    steps = count(1)

    def ask() -> object:
        step = next(steps)
        if request.users is None:
            return advise(replace(request, tokens=(request.tokens or 1e11) * (1.0 + step / 1000.0)))
        return advise(replace(request, users=request.users + step, isl_tokens=1000 + 10 * step))

    return ask


def other_batches(request: Request) -> Callable[[], object]:
    """The question, each time with a few more sequences a step: no step of a run is remembered."""
    batches = count(512, 8)
    return lambda: advise(replace(request, global_batch=next(batches)))


def main() -> None:
    """Print one row a question."""
    unit_ms = statistics.median(time_ms(yardstick) for _ in range(RUNS))
    advise(Request(model="qwen3-8b", purpose="chat", users=8))  # reads the facts: no question's own time
    print(f"{'question':<14}{'first ms':>10}{'median ms':>11}{'p90 ms':>9}{'x yardstick':>13}")
    print(f"{'(yardstick)':<14}{'':>10}{unit_ms:>11.2f}{'':>9}{1.0:>13.1f}")
    asked = {name: other_loads(request) for name, request in QUESTIONS.items()}
    asked["another batch"] = other_batches(QUESTIONS["pretrain 8B"])
    for name, ask in asked.items():
        first_ms = time_ms(ask)
        found = sorted(time_ms(ask) for _ in range(RUNS))
        median_ms, p90_ms = statistics.median(found), found[int(0.9 * RUNS)]
        print(f"{name:<14}{first_ms:>10.1f}{median_ms:>11.2f}{p90_ms:>9.2f}{median_ms / unit_ms:>13.1f}")


if __name__ == "__main__":
    main()
