"""Takes a `Case`; gives its `Outcome` under each kind of load: single, static, closed, rate, offline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chipwise.parallelism import Number, anywhere
from chipwise.perf.load import Alone, Case, Outcome
from chipwise.perf.operators import TINIEST
from chipwise.perf.phases import (
    SATURATION,
    TINY_S,
    alone_beside,
    decode_steps,
    isolated,
    most_running,
    own_prefill_s,
    prompts_ahead_s,
    steadies,
    steady_of,
)
from chipwise.perf.short_runs import drain_s, whole_run_rate, with_ends
from chipwise.perf.steady import ROUNDS, Asked, Steady

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

FEWEST = 1e-3
"""Fewest sequences that a steady state is asked for: nothing decodes where answers are one token long."""
LOWEST = 10.0
"""A rate's batch is sought from 2 to the minus this."""
RATE_ROUNDS, RATE_SECTIONS = 2, 10
"""Each round cuts the bracket of a rate's batch into so many sections, all worked out at once."""


def single(case: Case) -> Outcome:
    """One request, nothing else. All but one of the replicas idle."""
    alone, (steady,) = alone_beside(case, Asked(running=1.0))
    rate = 1.0 / (alone.ttft_s + alone.tpot_s * (case.lengths.osl - 1.0))
    return Outcome(
        ttft_s=alone.ttft_s,
        wait_s=0.0 * alone.ttft_s,
        tpot_s=alone.tpot_s,
        running=1.0,
        requests_per_s=rate / case.replicas,
        steady=steady,
        isolated=alone,
    )


def static(case: Case) -> Outcome:
    """`batch` requests that start together and leave together; what does not fit runs in further waves."""
    batch = np.maximum(case.load.batch / case.replicas, 1.0)
    together = np.minimum(batch, case.limits.sequences)
    waves = np.ceil(batch / together)
    first, (steady,) = alone_beside(case, Asked(running=together), requests=together)
    wave = first.ttft_s + first.tpot_s * (case.lengths.osl - 1.0)
    wait = (waves - 1.0) / 2.0 * wave
    return Outcome(
        ttft_s=first.ttft_s + wait,
        wait_s=wait,
        tpot_s=first.tpot_s,
        running=together,
        requests_per_s=batch / (wave * waves),
        steady=steady,
        isolated=isolated(case),
    )


def _burst_share(case: Case, inside: Number) -> Number:
    """Share of a closed loop's requests that start together: the clients among all requests, where both are known."""
    all_of_them = np.maximum(np.asarray(case.load.requests) / case.replicas, inside)
    return np.where(np.isfinite(all_of_them), inside / all_of_them, case.machine.parameters.burst_fraction)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """One round of the closed loop's fixed point; `apart` is its steady state as a prompt that comes apart finds it."""

    steady: Steady
    apart: Steady
    serving_s: Number
    ttft_s: Number
    queue_s: Number
    burst_s: Number

    def running(self, inside: Number) -> Number:
        """Of the `inside` requests those that decode, by Little's law."""
        cycle_s = np.maximum(self.serving_s + self.ttft_s, TINY_S)
        return np.maximum(inside * self.serving_s / cycle_s, FEWEST)


def _together(case: Case, inside: Number) -> Number:
    """Prompts that come at once: answers of one length that start together end together, and so do their successors.

    A benchmark starts all its clients at once: their prompts share steps, and fewer steps hold up those who decode.
    Not where answers differ in length, where data-parallel ranks each schedule their own requests, and in a service,
    which has no start (`burst_fraction` 0). How many share the step of a prompt is not stated by those who measure,
    and a little scatter of lengths parts them: TTFT takes each prompt apart.
    """
    service = np.asarray(case.machine.parameters.burst_fraction) == 0
    apart = service | (np.asarray(case.load.osl_cv) > 0) | (np.asarray(case.machine.dp) > 1)
    return np.where(apart, 1.0, np.maximum(inside, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loop:
    """What every round of the fixed point finds alike."""

    together: Number
    several: Number
    """1 where there is more than one request, else 0."""
    burst_share: Number
    others: Number
    """Prompts that a request waits for, in the mean, because they start together."""
    steps: Number

    def asked(self, running: Number) -> Asked:
        """The state that a prompt apart finds; then, where prompts come together, the one that they make."""
        return Asked(running=running, together=(1.0, self.together) if anywhere(self.together > 1) else (1.0,))


def _loop(case: Case, inside: Number) -> _Loop:
    several, share = np.where(inside > 1, 1.0, 0.0), _burst_share(case, inside)
    return _Loop(
        together=_together(case, inside),
        several=several,
        burst_share=share,
        others=several * share * (inside - 1.0) / 2.0,
        steps=decode_steps(case),
    )


def _turn(case: Case, loop: _Loop, apart: Steady, steady: Steady) -> _Turn:
    queue_s = loop.several * prompts_ahead_s(apart)
    burst_s = loop.others * apart.prompt_work_s
    return _Turn(
        steady=steady,
        apart=apart,
        serving_s=loop.steps * steady.tpot_s * case.speculation.tokens_per_step,
        ttft_s=own_prefill_s(case, apart) + loop.several * steady.tpot_s / 2.0 + queue_s + burst_s,
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
    loop = _loop(case, inside)
    alone, (*states, best) = alone_beside(case, loop.asked(inside), Asked(running=most_running(case)))
    turn = _turn(case, loop, states[0], states[-1])
    highest_rate = turn.steady.requests_per_s
    for _ in range(ROUNDS - 1):
        states = steadies(case, loop.asked(turn.running(inside)))
        turn = _turn(case, loop, states[0], states[-1])
    steady, running = turn.steady, turn.running(inside)
    rate = np.minimum(inside / (turn.serving_s + turn.ttft_s), highest_rate)
    ttft = np.maximum(clients / rate - turn.serving_s, turn.ttft_s)
    return Outcome(
        ttft_s=ttft,
        wait_s=ttft - own_prefill_s(case, turn.apart),
        queue_s=turn.queue_s,
        burst_s=turn.burst_s,
        burst_share=loop.burst_share,
        tpot_s=steady.tpot_s,
        running=np.minimum(running, steady.running),
        requests_per_s=rate,
        steady=steady,
        isolated=alone,
        best=best,
        apart=turn.apart,
    )


def offline(case: Case) -> Outcome:
    """Everything queued at once: the highest steady state; TTFT is the length of the run, not a latency.

    Where answers differ in length, the longest of the last batch run on almost alone. Where every request has a seat
    at once, all prompts come first: the mean request waits for half of them before its second token.
    """
    alone, (steady,) = alone_beside(case, Asked(running=most_running(case)))
    ending_s = drain_s(case, steady, alone)
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
        isolated=alone,
        best=steady,
        saturated=np.ones_like(steady.tpot_s),
    )


def _balanced(case: Case, best: Steady, wanted: Number) -> Steady:
    """The batch at which as many leave as come: bracketed twice in equal steps of its logarithm, then interpolated."""
    most = np.log2(np.maximum(case.limits.sequences, 1.0))
    shape = np.broadcast_shapes(np.shape(best.tpot_s), np.shape(most), (1,) * np.ndim(wanted))
    ends = np.stack([np.full(shape, -LOWEST), np.broadcast_to(most, shape)])
    rates = ends
    for _ in range(RATE_ROUNDS):
        ends, rates = _bracket(case, ends, wanted)
    apart = np.maximum(np.log(rates[1]) - np.log(rates[0]), TINIEST)
    share = np.clip((np.log(np.maximum(wanted, TINIEST)) - np.log(rates[0])) / apart, 0.0, 1.0)
    return steady_of(case, 2.0 ** (ends[0] + share * (ends[1] - ends[0])))


def _bracket(case: Case, ends: Floats, wanted: Number) -> tuple[Floats, Floats]:
    """The first of `RATE_SECTIONS` equal sections whose upper end serves `wanted`: its ends, and what each serves."""
    steps = np.linspace(0.0, 1.0, RATE_SECTIONS + 1).reshape(-1, *(1,) * (ends.ndim - 1))
    points = ends[0] + steps * (ends[1] - ends[0])
    rates = np.asarray(steady_of(case, 2.0**points).requests_per_s)
    enough = rates >= wanted
    first = np.where(enough.any(axis=0), np.argmax(enough, axis=0), RATE_SECTIONS)
    places = np.stack([np.maximum(first, 1) - 1, np.maximum(first, 1)])
    each = np.broadcast_to(points, enough.shape), np.broadcast_to(rates, enough.shape)
    points, rates = (np.take_along_axis(one, places, axis=0) for one in each)
    return points, rates


def _arrivals(case: Case, alone: Alone, best: Steady) -> Outcome:
    """Arrivals without an end: the batch at which as many leave as come; above capacity, saturated."""
    wanted = case.load.rate_per_s / case.replicas
    steady = _balanced(case, best, wanted)
    full = wanted > best.requests_per_s * SATURATION
    own, queue = own_prefill_s(case, steady), prompts_ahead_s(steady)
    wait = np.where(full, np.inf, steady.tpot_s / 2.0 + queue)
    return Outcome(
        ttft_s=own + wait,
        wait_s=wait,
        queue_s=queue,
        tpot_s=np.where(full, best.tpot_s, steady.tpot_s),
        running=np.where(full, best.running, steady.running),
        requests_per_s=np.minimum(wanted, best.requests_per_s),
        steady=steady,
        isolated=alone,
        best=best,
        saturated=np.where(full, 1.0, 0.0),
    )


def rate(case: Case) -> Outcome:
    """Poisson arrivals at `rate_per_s`; above capacity a run saturates, unless it ends before its seats are taken."""
    alone, (best,) = alone_beside(case, Asked(running=most_running(case)))
    endless = _arrivals(case, alone, best)
    return with_ends(case, endless, best) if anywhere(case.load.requests < np.inf) else endless


COMPOSITIONS = {"single": single, "static": static, "closed": closed, "rate": rate, "offline": offline}
