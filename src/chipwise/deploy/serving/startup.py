"""How long a replica takes to answer, and so how long its probes must wait.

start = weights / load rate + engine start (+ compilation on Neuron)
the startup probe waits `margin` times that
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from chipwise.deploy.facts import number

PERIOD_S = 10
_COMPILED_PARAMS = 70e9
"""The model whose first compilation the table times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Startup:
    """The predicted start and what follows from it."""

    start_s: float
    failures: int
    """Of a probe every PERIOD_S seconds."""
    deadline_s: int
    """Until a roll-out counts as failed: node, image and start."""


def startup_of(*, weights_bytes: float, params: float, compiles: bool) -> Startup:
    """The start of a replica.

    Args:
        weights_bytes: of the replica, downloaded and loaded once.
        params: parameters, which the time of a compilation follows.
        compiles: whether the engine compiles at its first start (Neuron).

    >>> startup_of(weights_bytes=218e9, params=109e9, compiles=False).failures
    236
    """
    start_s = weights_bytes / number("startup", "load_rate") + number("startup", "engine")
    if compiles:
        start_s += number("startup", "compile") * max(1.0, params / _COMPILED_PARAMS)
    waited_s = start_s * number("startup", "margin")
    if compiles:
        waited_s = max(waited_s, number("startup", "compile_floor"))
    failures = math.ceil(waited_s / PERIOD_S)
    deadline_s = failures * PERIOD_S + int(number("startup", "node"))
    return Startup(start_s=start_s, failures=failures, deadline_s=deadline_s)
