"""Takes a `Case`; gives its `Outcome` under each kind of load: single, static, closed, rate, offline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.parallelism import Number
from chipwise.perf.load import Case, Outcome
from chipwise.perf.steady import (
    RATE_ROUNDS,
    ROUNDS,
    Steady,
    decode_step_s,
    prefill_alone_s,
    prompt_chunks,
    steady_at,
)

TINY_S = 1e-12
FEWEST = 1e-3
"""Fewest sequences that a steady state is asked for: nothing decodes where answers are one token long."""
BUSIEST = 0.95
"""Largest share of time in prefill that a queue is worked out for."""
LOWEST = 10.0
"""A rate's batch is sought from 2 to the minus this."""
SATURATION = 0.98
"""Share of the highest rate above which a queue does not drain within a run: the answer is `saturated`."""


def _steady(case: Case, running: Number) -> Steady:
    return steady_at(case.machine, case.lengths, case.limits, case.speculation, running=running)


def _decode_steps(case: Case) -> Number:
    return np.maximum((case.lengths.osl - 1.0) / case.speculation.tokens_per_step, 0.0)


def arrival_s(case: Case) -> Number:
    """What a request spends before a scheduler sees it."""
    parameters = case.machine.parameters
    return parameters.request_s + parameters.prompt_token_s * case.lengths.isl


def isolated(case: Case) -> tuple[Number, Number]:
    """TTFT and TPOT of one request alone: its prefill, then a step a token."""
    ttft = arrival_s(case) + prefill_alone_s(case.machine, case.lengths, case.limits)
    step = decode_step_s(case.machine, case.lengths, 1.0, case.speculation)
    return ttft, step / case.speculation.tokens_per_step


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


def single(case: Case) -> Outcome:
    """One request, nothing else. All but one of the replicas idle."""
    ttft, tpot = isolated(case)
    rate = 1.0 / (ttft + tpot * (case.lengths.osl - 1.0))
    return Outcome(
        ttft_s=ttft,
        wait_s=0.0 * ttft,
        tpot_s=tpot,
        running=1.0,
        requests_per_s=rate / case.replicas,
        steady=_steady(case, 1.0),
    )


def static(case: Case) -> Outcome:
    """`batch` requests that start together and leave together; what does not fit runs in further waves."""
    batch = np.maximum(case.load.batch / case.replicas, 1.0)
    together = np.minimum(batch, case.limits.sequences)
    waves = np.ceil(batch / together)
    prefill = prefill_alone_s(case.machine, case.lengths, case.limits, requests=together)
    ttft = arrival_s(case) + prefill
    step = decode_step_s(case.machine, case.lengths, together, case.speculation)
    tpot = step / case.speculation.tokens_per_step
    wave = ttft + tpot * (case.lengths.osl - 1.0)
    wait = (waves - 1.0) / 2.0 * wave
    rate = batch / (wave * waves)
    return Outcome(
        ttft_s=ttft + wait,
        wait_s=wait,
        tpot_s=tpot,
        running=together,
        requests_per_s=rate,
        steady=_steady(case, together),
    )


def own_prefill_s(case: Case, steady: Steady) -> Number:
    """From the first step that takes a prompt in to its first token, under load."""
    steps, _ = prompt_chunks(case.lengths, case.limits)
    ridden = steady.plain_step_s * case.machine.parameters.mixed_fraction + steady.prefill_delta_s
    return arrival_s(case) + steps * ridden


def _queue_s(steady: Steady) -> Number:
    """The prompts ahead: an M/D/1 queue of prefill work.

    `rho * work / (2 * (1 - rho))`, rho the share of time that goes into prefill, at most `BUSIEST`.

    Source: Pollaczek 1930, Khinchine 1932 (M/G/1 mean wait, constant service).
    """
    rho = np.minimum(steady.requests_per_s * steady.prompt_work_s, BUSIEST)
    return rho * steady.prompt_work_s / (2.0 * (1.0 - rho))


def _burst_share(case: Case, inside: Number) -> Number:
    """Share of a closed loop's requests that start together: the clients among all requests, where both are known."""
    all_of_them = np.maximum(np.asarray(case.load.requests) / case.replicas, inside)
    return np.where(np.isfinite(all_of_them), inside / all_of_them, case.machine.parameters.burst_fraction)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """One round of the closed loop's fixed point."""

    steady: Steady
    serving_s: Number
    ttft_s: Number
    queue_s: Number
    burst_s: Number

    def running(self, inside: Number) -> Number:
        """Of the `inside` requests those that decode, by Little's law."""
        cycle_s = np.maximum(self.serving_s + self.ttft_s, TINY_S)
        return np.maximum(inside * self.serving_s / cycle_s, FEWEST)


def _turn(case: Case, inside: Number, running: Number) -> _Turn:
    steady = _steady(case, running)
    several = np.where(inside > 1, 1.0, 0.0)
    queue_s = several * _queue_s(steady)
    burst_s = several * _burst_share(case, inside) * (inside - 1.0) / 2.0 * steady.prompt_work_s
    return _Turn(
        steady=steady,
        serving_s=_decode_steps(case) * steady.tpot_s * case.speculation.tokens_per_step,
        ttft_s=own_prefill_s(case, steady) + several * steady.tpot_s / 2.0 + queue_s + burst_s,
        queue_s=queue_s,
        burst_s=burst_s,
    )


def closed(case: Case) -> Outcome:
    """Clients that each wait for their answer: those beyond the batch limit queue, the rest are served.

    Little's law closes the loop: `running = clients * decode time / (decode time + TTFT)`. A request waits half a step
    until the scheduler looks, for the prompts ahead, and a share of them (`burst_fraction`) for half of the others'
    prompts: runs start with all clients at once.
    No loop is faster than the steady state in which every seat decodes.
    """
    clients = np.maximum(case.load.concurrency / case.replicas, 1.0)
    inside = np.minimum(clients, case.limits.sequences)
    turn = _turn(case, inside, inside)
    highest_rate = turn.steady.requests_per_s
    for _ in range(ROUNDS - 1):
        turn = _turn(case, inside, turn.running(inside))
    steady, running = turn.steady, turn.running(inside)
    rate = np.minimum(inside / (turn.serving_s + turn.ttft_s), highest_rate)
    ttft = np.maximum(clients / rate - turn.serving_s, turn.ttft_s)
    return Outcome(
        ttft_s=ttft,
        wait_s=ttft - own_prefill_s(case, steady),
        queue_s=turn.queue_s,
        burst_s=turn.burst_s,
        burst_share=_burst_share(case, inside),
        tpot_s=steady.tpot_s,
        running=np.minimum(running, steady.running),
        requests_per_s=rate,
        steady=steady,
    )


def _drain_s(case: Case, steady: Steady) -> Number:
    """What a run takes beyond its steady state: the longest answers of the last batch run on almost alone."""
    alone_s = decode_step_s(case.machine, case.lengths, 1.0, case.speculation)
    return (longest(case, steady.running) - 1.0) * _decode_steps(case) * alone_s


def highest(case: Case) -> Steady:
    """The steady state with every seat taken: what offline work and saturation are made of."""
    most = np.minimum(case.limits.sequences, np.maximum(case.load.requests / case.replicas, 1.0))
    return _steady(case, most)


def offline(case: Case) -> Outcome:
    """Everything queued at once: the highest steady state; TTFT is the length of the run, not a latency.

    Where answers differ in length, the longest of the last batch run on almost alone. Where every request has a seat
    at once, all prompts come first: the mean request waits for half of them before its second token.
    """
    steady = highest(case)
    ending_s = _drain_s(case, steady)
    each = np.asarray(case.load.requests) / case.replicas
    steps = np.maximum(case.lengths.osl - 1.0, 1.0)
    together_s = steady.plain_step_s / case.speculation.tokens_per_step
    prompts_s = np.where(np.isfinite(each), each, 0.0) * steady.prompt_work_s
    tpot_s = np.where(each <= case.limits.sequences, together_s + prompts_s / 2.0 / steps, steady.tpot_s)
    return Outcome(
        ttft_s=np.inf * steady.tpot_s,
        wait_s=np.inf * steady.tpot_s,
        tpot_s=tpot_s,
        running=steady.running,
        requests_per_s=whole_run_rate(case, steady.requests_per_s, ending_s),
        steady=steady,
        saturated=np.ones_like(steady.tpot_s),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pile:
    """A run of few requests above capacity, all of which find a seat: it piles up and is over before one waits.

    The batch grows while they come. The mean one comes half-way: until the last has come a step is
    `plain / (1 - rho)`, rho the share of time that prefill takes; then the whole batch decodes undisturbed.
    """

    count: Number
    half: Steady
    """The batch at the middle of the arrivals."""
    rho: Number
    step_s: Number
    answer_s: Number
    """Decode time of the mean request."""
    left: Number
    """Requests that still run when the last one has come."""

    @property
    def queue_s(self) -> Number:
        """The wait for the prompts ahead."""
        return self.rho * self.half.prompt_work_s / (2.0 * (1.0 - self.rho))


def _pile(case: Case, wanted: Number) -> _Pile:
    each = np.asarray(case.load.requests) / case.replicas
    count = np.maximum(np.where(np.isfinite(each), each, 1.0), 1.0)
    found = _piled(case, wanted, count, count)
    for _ in range(ROUNDS - 1):
        found = _piled(case, wanted, count, found.left)
    return found


def _piled(case: Case, wanted: Number, count: Number, left: Number) -> _Pile:
    arrivals_s, steps = count / np.maximum(wanted, TINY_S), np.maximum(_decode_steps(case), 1.0)
    half, whole = _steady(case, left / 2.0), _steady(case, left)
    rho = np.minimum(wanted * half.prompt_work_s, BUSIEST)
    step_s = half.plain_step_s / (1.0 - rho)
    among = np.minimum(steps, arrivals_s / 2.0 / step_s)
    answer_s = among * step_s + (steps - among) * whole.plain_step_s
    still = np.maximum(count * np.minimum(answer_s / arrivals_s, 1.0), 1.0)
    return _Pile(count=count, half=half, rho=rho, step_s=step_s, answer_s=answer_s, left=still)


def _absorbed(case: Case, pile: _Pile, wanted: Number) -> Number:
    """1 where a run of known length keeps a seat for everyone and time for every prompt."""
    known = np.isfinite(np.asarray(case.load.requests))
    seats = pile.left <= case.limits.sequences
    return np.where(known & seats & (wanted * pile.half.prompt_work_s < SATURATION), 1.0, 0.0)


def _balanced(case: Case, wanted: Number) -> Steady:
    """The batch at which as many leave as come, by bisection of its logarithm."""
    high = np.log2(np.maximum(case.limits.sequences, 1.0))
    low = np.zeros_like(highest(case).tpot_s) - LOWEST
    for _ in range(RATE_ROUNDS):
        middle = (low + high) / 2.0
        enough = _steady(case, 2.0**middle).requests_per_s >= wanted
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return _steady(case, 2.0 ** ((low + high) / 2.0))


def rate(case: Case) -> Outcome:
    """Poisson arrivals at `rate_per_s`; above capacity a run saturates, unless it ends before its seats are taken."""
    wanted, best = case.load.rate_per_s / case.replicas, highest(case)
    steady, pile = _balanced(case, wanted), _pile(case, wanted)
    above = np.where(wanted > best.requests_per_s * SATURATION, 1.0, 0.0)
    saturated = above * (1.0 - _absorbed(case, pile, wanted))
    piled, full = above > saturated, saturated > 0
    own, queue_s = own_prefill_s(case, steady), np.where(piled, pile.queue_s, _queue_s(steady))
    first_s = np.where(piled, own_prefill_s(case, pile.half), own)
    ttft_s = first_s + np.where(piled, pile.step_s, steady.tpot_s) / 2.0 + queue_s
    tpot_s = np.where(piled, _token_s(case, pile), np.where(full, best.tpot_s, steady.tpot_s))
    last_s = own + longest(case, steady.running) * _decode_steps(case) * steady.tpot_s
    ending_s = np.where(above > 0, _drain_s(case, best), last_s)
    return Outcome(
        ttft_s=np.where(full, np.inf, ttft_s),
        wait_s=np.where(full, np.inf, ttft_s - own),
        queue_s=queue_s,
        tpot_s=tpot_s,
        running=np.where(piled, pile.left / 2.0, np.where(full, best.running, steady.running)),
        requests_per_s=whole_run_rate(case, np.minimum(wanted, best.requests_per_s), ending_s),
        steady=steady,
        saturated=saturated,
    )


def _token_s(case: Case, pile: _Pile) -> Number:
    return pile.answer_s / np.maximum(_decode_steps(case), 1.0) / case.speculation.tokens_per_step


COMPOSITIONS = {"single": single, "static": static, "closed": closed, "rate": rate, "offline": offline}
