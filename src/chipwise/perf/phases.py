"""What the loads have in common: a case's steady state, how a request arrives, is prefilled and waits in a queue."""

from __future__ import annotations

import numpy as np

from chipwise.parallelism import Number, anywhere
from chipwise.perf.load import Alone, Case
from chipwise.perf.steady import Asked, Steady, chunk_delta_s, decode_load, prefill_alone_load, prompt_chunks, steady_at

TINY_S = 1e-12
BUSIEST = 0.95
"""Largest share of time in prefill that a queue is worked out for."""
SATURATION = 0.98
"""Share of the highest rate above which a queue does not drain within a run: the answer is `saturated`."""


def steadies(case: Case, *asked: Asked) -> list[Steady]:
    """The steady states of a case, all worked out at once."""
    return steady_at(case.machine, case.lengths, case.limits, case.speculation, asked)[0]


def steady_of(case: Case, running: Number) -> Steady:
    """The steady state of a case in which `running` sequences decode, every prompt taken alone."""
    (found,) = steadies(case, Asked(running=running))
    return found


def decode_steps(case: Case) -> Number:
    """Steps in which a request decodes."""
    return np.maximum((case.lengths.osl - 1.0) / case.speculation.tokens_per_step, 0.0)


def arrival_s(case: Case) -> Number:
    """What a request spends before a scheduler sees it."""
    parameters = case.machine.parameters
    return parameters.request_s + parameters.prompt_token_s * case.lengths.isl


def alone_beside(case: Case, *asked: Asked, requests: Number = 1.0) -> tuple[Alone, list[Steady]]:
    """Requests that come together to an idle replica, and the steady states of a case: all worked out at once."""
    machine, lengths, limits, speculation = case.machine, case.lengths, case.limits, case.speculation
    prompts, passages = prefill_alone_load(machine, lengths, limits, requests=requests)
    steps = prompts, decode_load(machine, lengths, requests, speculation)
    found, (prompts_s, decode_s) = steady_at(machine, lengths, limits, speculation, asked, beside=steps)
    ttft_s = arrival_s(case) + passages * prompts_s
    return Alone(ttft_s=ttft_s, tpot_s=(decode_s + speculation.draft_s) / speculation.tokens_per_step), found


def isolated(case: Case) -> Alone:
    """One request alone: its prefill, then a step a token."""
    return alone_beside(case)[0]


def own_prefill_s(case: Case, steady: Steady) -> Number:
    """From the first step that takes a prompt in to its first token, under load.

    A prompt stands on one of the data-parallel ranks; what others decode meanwhile takes the ranks' prompts as even.
    """
    steps, chunk = prompt_chunks(case.lengths, case.limits)
    delta_s = steady.prefill_delta_s
    if anywhere(case.machine.dp > 1):
        of_one = chunk_delta_s(case.machine, case.lengths, steady.running, steady.plain_step_s, chunk, ranks=1.0)
        delta_s = np.maximum(delta_s, of_one)
    return arrival_s(case) + steps * (steady.plain_step_s * case.machine.parameters.mixed_fraction + delta_s)


def prompts_ahead_s(steady: Steady) -> Number:
    """The prompts ahead: an M/D/1 queue of prefill work.

    `rho * work / (2 * (1 - rho))`, rho the share of time that goes into prefill, at most `BUSIEST`.

    Source: Pollaczek 1930, Khinchine 1932 (M/G/1 mean wait, constant service).
    """
    rho = np.minimum(steady.requests_per_s * steady.prompt_work_s, BUSIEST)
    return rho * steady.prompt_work_s / (2.0 * (1.0 - rho))


def most_running(case: Case) -> Number:
    """Sequences that decode with every seat taken, or with every request of the run inside."""
    if not anywhere(case.load.requests < np.inf):
        return case.limits.sequences
    return np.minimum(case.limits.sequences, np.maximum(case.load.requests / case.replicas, 1.0))


def highest(case: Case) -> Steady:
    """The steady state of `most_running`: what offline work and saturation are made of."""
    return steady_of(case, most_running(case))
