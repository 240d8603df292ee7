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
from chipwise.perf.costs import BOUNDS, OVERHEAD
from chipwise.perf.load import Case, Outcome, ServingInput, ServingPrediction, prepare
from chipwise.perf.phases import arrival_s, highest, isolated, own_prefill_s
from chipwise.perf.steady import chunk_load, decode_load, prompt_chunks
from chipwise.perf.steps import StepLoad, Term, step_terms
from chipwise.perf.work import Work

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    return isolated(prepare(asked))


def _prediction(case: Case, outcome: Outcome) -> ServingPrediction:
    alone_ttft_s, alone_tpot_s = isolated(case)
    best, alone = outcome.best or highest(case), outcome.alone or outcome.steady
    rate = outcome.requests_per_s * case.replicas
    return ServingPrediction(
        ttft_s=outcome.ttft_s,
        tpot_s=outcome.tpot_s,
        e2e_s=outcome.ttft_s + outcome.tpot_s * (case.lengths.osl - 1.0),
        isolated_ttft_s=alone_ttft_s,
        isolated_tpot_s=alone_tpot_s,
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
        prefill_utilisation=alone.requests_per_s * alone.prompt_work_s,
        own_prefill_s=own_prefill_s(case, alone),
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
    prefill = _operations(case, _prompt_step(case, outcome))
    steps = _prompt_steps(case, outcome, sum(seconds for seconds, _ in prefill.values()))
    yielded = case.speculation.tokens_per_step
    decode = _operations(case, decode_load(case.machine, case.lengths, outcome.running, case.speculation))
    terms = [
        _term(name, prefill.get(name), decode.get(name), (steps, 1.0 / yielded))
        for name in dict.fromkeys([*prefill, *decode])
    ]
    rest_ttft = outcome.ttft_s - sum(term.prefill_s for term in terms)
    rest_tpot = outcome.tpot_s - sum(term.decode_s for term in terms)
    return [
        *terms,
        _rest("waiting", rest_ttft, 0.0 * rest_tpot, OVERHEAD),
        _rest("prefill of others", 0.0, rest_tpot, _longest_bound(prefill)),
    ]


Operations = dict[str, tuple[Number, Number]]


def _operations(case: Case, load: StepLoad) -> Operations:
    """Seconds through all stages and bound, by operation; of equal names the longest one binds."""
    named: dict[str, list[Term]] = {}
    for term in step_terms(case.machine, load):
        named.setdefault(term.operation, []).append(term)
    return {name: _one_of(terms, case.machine.pp) for name, terms in named.items()}


def _one_of(terms: list[Term], stages: Number) -> tuple[Number, Number]:
    """Terms of one name as one: their seconds over all stages, and the bound of the longest."""
    first, *others = terms
    total, longest, bound = first.seconds, first.seconds, first.bound
    for term in others:
        total = total + term.seconds
        bound = np.where(np.asarray(term.seconds) > longest, term.bound, bound)
        longest = np.maximum(longest, term.seconds)
    return total * stages, bound


def _longest_bound(operations: Operations) -> Number:
    """What binds the longest operation of a step."""
    longest: Number = -1.0
    found: Number = OVERHEAD
    for seconds, bound in operations.values():
        found = np.where(np.asarray(seconds) > longest, bound, found)
        longest = np.maximum(longest, seconds)
    return found


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
        else own_prefill_s(case, outcome.alone or outcome.steady)
    )
    return (own - arrival_s(case)) / step


def _term(
    name: str,
    prefill: tuple[Number, Number] | None,
    decode: tuple[Number, Number] | None,
    times: tuple[Number, Number],
) -> ServingTerm:
    prefill_s = prefill[0] * times[0] if prefill else 0.0
    decode_s = decode[0] * times[1] if decode else 0.0
    first, second = (prefill or (0.0, OVERHEAD)), (decode or (0.0, OVERHEAD))
    bound = np.where(np.asarray(decode_s) > 0, second[1], first[1])
    return ServingTerm(operation=name, prefill_s=prefill_s, decode_s=decode_s, bound=bound, prefill_bound=first[1])


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
    sums = [np.add.reduce(seconds, axis=0, where=bounds == place) for place in range(len(BOUNDS))]
    place = np.argmax(sums, axis=0)
    full = prediction.sequence_limit < np.asarray(asked.max_num_seqs) * _ranks(asked)
    asks_more = (np.asarray(prediction.running) >= 0.95 * prediction.sequence_limit) & (
        np.asarray(asked.load.kind in {"closed", "offline", "rate"})
    )
    place = np.where(full & asks_more, BOUNDS.index("capacity"), place)
    return [BOUNDS[one] for one in np.ravel(place)]


def _stack(terms: list[ServingTerm], name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """One field of all terms, a term an element of axis 0."""
    found = np.empty((len(terms), *shape))
    for at, term in enumerate(terms):
        found[at] = getattr(term, name)
    return found


def _ranks(asked: ServingInput) -> Number:
    return asked.shards.dp if isinstance(asked.shards, Work) else asked.shards.split.dp
