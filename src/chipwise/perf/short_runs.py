"""Runs of a known number of requests: how they end, and that near capacity they end before they are full.

`requests` infinite (the default) means that nothing is known: then a run is its steady state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from chipwise.parallelism import Number
from chipwise.perf.load import Alone, Case, Outcome
from chipwise.perf.phases import BUSIEST, SATURATION, TINY_S, decode_steps, own_prefill_s, steady_of
from chipwise.perf.steady import ROUNDS, Steady, chunk_delta_s


def longest(case: Case, together: Number) -> Number:
    """The longest answer of `together` requests over the mean: `1 + cv * sqrt(2 ln n)`, at most the longest allowed.

    Source: expected maximum of n normal variates, leading term (Cramer, "Mathematical Methods of Statistics", 1946,
    section 28.6).
    """
    expected = 1.0 + case.load.osl_cv * np.sqrt(2.0 * np.log(np.maximum(together, 1.0)))
    return np.minimum(expected, np.maximum(case.load.osl_most / case.lengths.osl, 1.0))


def whole_run_rate(case: Case, requests_per_s: Number, ending_s: Number) -> Number:
    """Requests a second over a whole run of known length: the last answers end `ending_s` after the rest.

    `n * rate / (n + rate * ending)`; without a known number of requests the rate itself.
    """
    each = np.asarray(case.load.requests) / case.replicas
    counted = np.where(np.isfinite(each), each, 1.0)
    ended = counted * requests_per_s / (counted + requests_per_s * ending_s)
    return np.where(np.isfinite(each), ended, requests_per_s)


def drain_s(case: Case, steady: Steady, alone: Alone) -> Number:
    """What a run takes beyond its steady state: the longest answers of the last batch run on almost alone."""
    step_s = alone.tpot_s * case.speculation.tokens_per_step
    return (longest(case, steady.running) - 1.0) * decode_steps(case) * step_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Pile:
    """A run of few requests above capacity, all of which find a seat: it piles up and is over before one waits.

    The batch grows while they come. The mean one comes half-way: until the last has come a step is
    `plain / (1 - rho)`, rho the share of time that prefill takes; then the whole batch decodes undisturbed.
    """

    count: Number
    half: Steady
    """The batch at the middle of the arrivals."""
    prompt_s: Number
    """Seconds that a prompt takes from everyone: those that come during a step share the next one."""
    rho: Number
    step_s: Number
    answer_s: Number
    """Decode time of the mean request."""
    left: Number
    """Requests that still run when the last one has come."""

    @property
    def queue_s(self) -> Number:
        """The wait for the prompts ahead."""
        return self.rho * self.prompt_s / (2.0 * (1.0 - self.rho))


def _count(case: Case) -> Number:
    each = np.asarray(case.load.requests) / case.replicas
    return np.maximum(np.where(np.isfinite(each), each, 1.0), 1.0)


def pile_of(case: Case, wanted: Number) -> Pile:
    """The pile that `wanted` arrivals a second make, by fixed point."""
    count = _count(case)
    found = _piled(case, wanted, left=count, step_s=0.0 * count)
    for _ in range(ROUNDS - 1):
        found = _piled(case, wanted, left=found.left, step_s=found.step_s)
    return found


def _piled(case: Case, wanted: Number, *, left: Number, step_s: Number) -> Pile:
    count = _count(case)
    arrivals_s, steps = count / np.maximum(wanted, TINY_S), np.maximum(decode_steps(case), 1.0)
    half, whole = steady_of(case, left / 2.0), steady_of(case, left)
    together = np.clip(wanted * step_s, 1.0, np.maximum(case.limits.chunk_tokens / case.lengths.fresh, 1.0))
    chunk = case.lengths.fresh * together
    prompt_s = chunk_delta_s(case.machine, case.lengths, left / 2.0, half.plain_step_s, chunk) / together
    rho = np.minimum(wanted * prompt_s, BUSIEST)
    longer_s = half.plain_step_s / (1.0 - rho)
    among = np.minimum(steps, arrivals_s / 2.0 / longer_s)
    answer_s = among * longer_s + (steps - among) * whole.plain_step_s
    return Pile(
        count=count,
        half=half,
        prompt_s=prompt_s,
        rho=rho,
        step_s=longer_s,
        answer_s=answer_s,
        left=np.maximum(count * np.minimum(answer_s / arrivals_s, 1.0), 1.0),
    )


def _absorbed(case: Case, pile: Pile, wanted: Number) -> Number:
    """1 where a run of known length keeps a seat for everyone and time for every prompt."""
    known = np.isfinite(np.asarray(case.load.requests))
    seats = pile.left <= case.limits.sequences
    return np.where(known & seats & (wanted * pile.prompt_s < SATURATION), 1.0, 0.0)


def _token_s(case: Case, pile: Pile) -> Number:
    return pile.answer_s / np.maximum(decode_steps(case), 1.0) / case.speculation.tokens_per_step


def with_ends(case: Case, long_run: Outcome, best: Steady) -> Outcome:
    """An endless run of arrivals as one that ends: near and above capacity it is over before it is full.

    Args:
        case: the question.
        long_run: the steady state at its rate.
        best: the steady state with every seat taken.
    """
    wanted = case.load.rate_per_s / case.replicas
    pile = pile_of(case, wanted)
    fuller = (np.asarray(long_run.saturated) > 0) | (long_run.steady.running > pile.count / 2.0)
    piled = _absorbed(case, pile, wanted) * fuller > 0
    first_s = own_prefill_s(case, pile.half)
    waiting_s = pile.step_s / 2.0 + pile.queue_s
    answer_s = longest(case, long_run.running) * decode_steps(case) * long_run.steady.tpot_s
    last_s = own_prefill_s(case, long_run.steady) + answer_s
    above = wanted > best.requests_per_s * SATURATION
    ending_s = np.where(above, drain_s(case, best, long_run.isolated), last_s)
    return replace(
        long_run,
        ttft_s=np.where(piled, first_s + waiting_s, long_run.ttft_s),
        wait_s=np.where(piled, waiting_s, long_run.wait_s),
        queue_s=np.where(piled, pile.queue_s, long_run.queue_s),
        tpot_s=np.where(piled, _token_s(case, pile), long_run.tpot_s),
        running=np.where(piled, pile.left / 2.0, long_run.running),
        requests_per_s=whole_run_rate(case, long_run.requests_per_s, ending_s),
        saturated=np.where(piled, 0.0, long_run.saturated),
    )
