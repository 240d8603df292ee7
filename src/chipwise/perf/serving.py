"""Takes a model laid over devices and a load; gives latency and throughput, and their terms.

Five kinds of load are five compositions (`compositions.py`) of the same step times (`steady.py`,
`steps.py`). Everything is per replica inside; `replicas` copies share the load evenly, and throughput is
reported for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chipwise.parallelism import Number
from chipwise.perf.compositions import COMPOSITIONS
from chipwise.perf.costs import BOUNDS, OVERHEAD, stacked
from chipwise.perf.load import Case, Outcome, ServingInput, ServingPrediction, prepare
from chipwise.perf.phases import arrival_s, highest, isolated, own_prefill_s
from chipwise.perf.steady import chunk_load, decode_load, prompt_chunks
from chipwise.perf.steps import StepLoad, Term, abreast, step_terms
from chipwise.perf.work import Work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from chipwise.perf.machine import Machine

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingTerm:
    """One operation: its part of a request's TTFT and of its TPOT. The parts of all terms add up to both."""

    operation: str
    prefill_s: Number
    decode_s: Number
    bound: Number
    """Place in `steps.BOUNDS` of what binds it for a token; for the prompt where no token takes it."""
    prefill_bound: Number
    """The same for the prompt: what is bound by compute there may be bound by bandwidth for a token."""


def predict_serving(asked: ServingInput) -> ServingPrediction:
    """Latency and throughput of `asked` under its load; every field has the broadcast shape of the inputs.

    Raises:
        InputError: impossible lengths or fractions.
        KeyError: a weight format of the model has no rate or no size.
    """
    return predict_case(prepare(asked))


def predict_case(case: Case) -> ServingPrediction:
    """`predict_serving` of a case prepared already."""
    return _prediction(case, COMPOSITIONS[case.load.kind](case))


def explain_serving(asked: ServingInput) -> tuple[ServingPrediction, list[ServingTerm]]:
    """`predict_serving` and `serving_terms` of one question, worked out once.

    Raises:
        InputError, KeyError: as `predict_serving`.
    """
    case = prepare(asked)
    outcome = COMPOSITIONS[asked.load.kind](case)
    return _prediction(case, outcome), _terms(case, outcome)


def alone_s(asked: ServingInput) -> tuple[Number, Number]:
    """TTFT and TPOT of one request alone (`isolated_ttft_s`, `isolated_tpot_s`), whatever the load.

    Raises:
        InputError, KeyError: as `predict_serving`.
    """
    found = isolated(prepare(asked))
    return found.ttft_s, found.tpot_s


def _prediction(case: Case, outcome: Outcome) -> ServingPrediction:
    best, apart = outcome.best or highest(case), outcome.apart or outcome.steady
    rate = outcome.requests_per_s * case.replicas
    return ServingPrediction(
        ttft_s=outcome.ttft_s,
        tpot_s=outcome.tpot_s,
        e2e_s=outcome.ttft_s + outcome.tpot_s * (case.lengths.osl - 1.0),
        isolated_ttft_s=outcome.isolated.ttft_s,
        isolated_tpot_s=outcome.isolated.tpot_s,
        requests_per_s=rate,
        output_tokens_per_s=rate * case.lengths.osl,
        total_tokens_per_s=rate * (case.lengths.osl + case.lengths.isl),
        running=outcome.running,
        sequence_limit=case.limits.sequences,
        saturated=outcome.saturated,
        saturation_rate_per_s=best.requests_per_s * case.replicas,
        wait_s=outcome.wait_s,
        queue_s=outcome.queue_s,
        burst_s=outcome.burst_s,
        burst_share=outcome.burst_share,
        plain_step_s=outcome.steady.plain_step_s,
        prefill_delta_s=outcome.steady.prefill_delta_s,
        prefill_share=outcome.steady.prefill_share,
        prefill_utilisation=apart.requests_per_s * apart.prompt_work_s,
        own_prefill_s=own_prefill_s(case, apart),
    )


def serving_terms(asked: ServingInput) -> list[ServingTerm]:
    """Where TTFT and TPOT go, operation by operation; the parts add up to `ttft_s` and `tpot_s`.

    A prompt's operations are those of the steps that carry it; what TTFT has beyond them (arrival, queue) is
    `waiting`. A token's operations are those of a step without prefill; what others' prompts add is
    `prefill of others`.
    """
    case = prepare(asked)
    return _terms(case, COMPOSITIONS[asked.load.kind](case))


def _terms(case: Case, outcome: Outcome) -> list[ServingTerm]:
    decoding = decode_load(case.machine, case.lengths, outcome.running, case.speculation)
    names, seconds, bounds = _operations(case.machine, (_prompt_step(case, outcome), decoding))
    steps = _prompt_steps(case, outcome, sum(seconds[:, 0]))
    prefill_s, decode_s = seconds[:, 0] * steps, seconds[:, 1] * (1.0 / case.speculation.tokens_per_step)
    binding = np.where(decode_s > 0, bounds[:, 1], bounds[:, 0])
    columns = zip(names, prefill_s, decode_s, binding, bounds[:, 0], strict=True)
    terms = [
        ServingTerm(operation=name, prefill_s=prompt_s, decode_s=token_s, bound=bound, prefill_bound=prompt_bound)
        for name, prompt_s, token_s, bound, prompt_bound in columns
    ]
    longest = np.argmax(seconds[:, 0], axis=0)[None]
    rest_tpot = outcome.tpot_s - sum(decode_s)
    return [
        *terms,
        _rest("waiting", outcome.ttft_s - sum(prefill_s), 0.0 * rest_tpot, OVERHEAD),
        _rest("prefill of others", 0.0, rest_tpot, np.take_along_axis(bounds[:, 0], longest, axis=0)[0]),
    ]


def _operations(machine: Machine, loads: Sequence[StepLoad]) -> tuple[tuple[str, ...], Floats, Floats]:
    """Names of a step's operations, and of each under each load its seconds through all stages and what binds it.

    Operations of equal names are one; the longest binds.
    """
    named: dict[str, list[Term]] = {}
    for term in step_terms(machine, abreast(machine, loads)):
        named.setdefault(term.operation, []).append(term)
    found = [_one_of(terms) for terms in named.values()]
    seconds = stacked([one for one, _ in found]) * machine.pp
    return tuple(named), seconds, np.broadcast_to(stacked([bound for _, bound in found]), seconds.shape)


def _one_of(terms: list[Term]) -> tuple[Number, Number]:
    """Terms of one name as one: their seconds, and the bound of the longest."""
    first, *others = terms
    total, longest, bound = first.seconds, first.seconds, first.bound
    for term in others:
        total = total + term.seconds
        bound = np.where(np.asarray(term.seconds) > longest, term.bound, bound)
        longest = np.maximum(longest, term.seconds)
    return total, bound


def _prompt_step(case: Case, outcome: Outcome) -> StepLoad:
    mixed = case.machine.parameters.mixed_fraction
    alone = case.load.kind in {"single", "static"}
    beside = 0.0 * outcome.running if alone else outcome.running * mixed
    _, chunk = prompt_chunks(case.lengths, case.limits)
    return chunk_load(case.lengths, beside, chunk)


def _prompt_steps(case: Case, outcome: Outcome, step: Number) -> Number:
    """How many such steps a prompt takes: what its own prefill takes over what one step takes."""
    own = (
        outcome.ttft_s - outcome.wait_s
        if case.load.kind in {"single", "static"}
        else own_prefill_s(case, outcome.apart or outcome.steady)
    )
    return (own - arrival_s(case)) / step


def _rest(name: str, prefill_s: Number, decode_s: Number, bound: Number) -> ServingTerm:
    return ServingTerm(operation=name, prefill_s=prefill_s, decode_s=decode_s, bound=bound, prefill_bound=bound)


def bound_by(asked: ServingInput, prediction: ServingPrediction, terms: list[ServingTerm]) -> list[str]:
    """What most of a request's time goes into, one name of `steps.BOUNDS` an element of the flattened answer.

    `capacity`: every seat is taken because the cache holds no more, and the load asks for more.
    """
    tokens = np.asarray(asked.load.osl) - 1.0
    shape = np.shape(prediction.tpot_s)
    prompts = _stack(terms, "prefill_s", shape)
    seconds = np.concatenate([np.where(np.isfinite(prompts), prompts, 0.0), _stack(terms, "decode_s", shape) * tokens])
    bounds = np.concatenate([_stack(terms, "prefill_bound", shape), _stack(terms, "bound", shape)])
    places = np.arange(len(BOUNDS)).reshape(-1, *(1,) * seconds.ndim)
    place = np.argmax(np.add.reduce(np.where(bounds == places, seconds, 0.0), axis=1), axis=0)
    full = prediction.sequence_limit < np.asarray(asked.max_num_seqs) * _ranks(asked)
    asks_more = (np.asarray(prediction.running) >= 0.95 * prediction.sequence_limit) & (
        np.asarray(asked.load.kind in {"closed", "offline", "rate"})
    )
    place = np.where(full & asks_more, BOUNDS.index("capacity"), place)
    return [BOUNDS[one] for one in np.ravel(place)]


def _stack(terms: list[ServingTerm], name: str, shape: tuple[int, ...]) -> Floats:
    """One field of all terms, a term an element of axis 0."""
    found = np.empty((len(terms), *shape))
    for at, term in enumerate(terms):
        found[at] = getattr(term, name)
    return found


def _ranks(asked: ServingInput) -> Number:
    return asked.shards.dp if isinstance(asked.shards, Work) else asked.shards.split.dp
