"""What the stated load does not show: prompts as long as the context, and experts that are not asked evenly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from chipwise.decide.serving.evaluate import load_of
from chipwise.perf.serving import alone_s, predict_serving
from chipwise.units import show_bytes, show_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chipwise.decide.question import Demand
    from chipwise.decide.serving.holding import Held
    from chipwise.perf.load import ServingInput, ServingPrediction

LONGER = 4.0
"""A context so many times the stated request is a hazard of its own."""
WORSE = 2.0
"""Times the fitted skew that a hot expert is tried at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """One option as its hazards see it: the load, perf's question about it with the answer, and its memory."""

    demand: Demand
    asked: ServingInput
    prediction: ServingPrediction
    held: Held
    ep: int

    @property
    def flight(self) -> float:
        """Requests in flight on one replica, the queued among them."""
        stated = self.demand.users / float(self.asked.replicas)
        return max(1.0, stated if self.demand.kind == "closed" else float(self.prediction.running))


def hazards_of(watched: Watched) -> Iterator[str]:
    """Each in one sentence with its figures."""
    demand = watched.demand
    if demand.context_tokens >= LONGER * (demand.isl_tokens + demand.osl_tokens):
        yield from _longest(watched)
    if watched.ep > 1:
        yield _skew(watched)


def _longest(watched: Watched) -> Iterator[str]:
    """A request that fills the context where it misses a bar alone; the cache of all where it outgrows the weights."""
    demand, context = watched.demand, f"the context of {watched.demand.context_tokens:,.0f} tokens"
    prompt = max(demand.context_tokens - demand.osl_tokens, 1.0)
    single = replace(demand, kind="closed", users=1.0, isl_tokens=prompt, prefix_hit_fraction=0.0)
    waits, each = (float(one) for one in alone_s(replace(watched.asked, load=load_of(single), replicas=1.0)))
    bar = demand.ttft_p99_s
    if bar is not None and waits > bar:
        yield (
            f"a prompt that fills {context} waits {show_seconds(waits)} for its first token even alone "
            f"({show_seconds(bar)} asked), and then {show_seconds(each)} a token"
        )
    budget = watched.held.answer.budget
    cache = float(budget.cache_bytes) / float(watched.held.sized.concurrency) * watched.flight
    weights = float(budget.weights_bytes)
    if cache > weights:
        yield (
            f"were all {watched.flight:.0f} in flight to fill {context}, their cache would be {show_bytes(cache)} a "
            f"chip, {cache / weights:.1f} times the weights there"
        )


def _skew(watched: Watched) -> str:
    """TPOT with experts asked evenly, and with the fullest rank twice as full as the fit takes it."""
    fitted = float(watched.asked.parameters.expert_imbalance)
    even, worse = _tpots(watched, (1.0, WORSE * fitted))
    here = float(watched.prediction.tpot_s)
    return (
        f"expert skew: the fullest of {watched.ep} ranks is taken at {fitted:.2f} times its share (fitted), "
        f"TPOT {show_seconds(here)}: {show_seconds(even)} were experts asked evenly, {show_seconds(worse)} at "
        f"{WORSE * fitted:.2f} times"
    )


def _tpots(watched: Watched, skews: tuple[float, ...]) -> tuple[float, ...]:
    asked = watched.asked
    skewed = replace(asked.parameters, expert_imbalance=np.array(skews))
    found = predict_serving(replace(asked, parameters=skewed, machine=None))
    return tuple(float(one) for one in np.asarray(found.tpot_s))
