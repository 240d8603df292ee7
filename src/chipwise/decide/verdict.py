"""`decide(question) -> Advice`: the whole way from sizes to an answer. Pure; reads no file and no clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.decide.advice import Advice, AlsoFeasible, NotJudged, Rejected
from chipwise.decide.bars import affordable, over_budget, unpriced
from chipwise.decide.compare import behind_because, guide_object, neuron_object
from chipwise.decide.failures import verdict
from chipwise.decide.found import Found
from chipwise.decide.options import option_of
from chipwise.decide.pick import Picked, pick
from chipwise.decide.question import TrainingDemand
from chipwise.decide.screen import Screened, missing_need, offer, screen
from chipwise.decide.serving.search import search_serving
from chipwise.decide.training.search import search_training
from chipwise.perf.spread import METHOD

if TYPE_CHECKING:
    from chipwise.catalog import Instance
    from chipwise.cost import Quote
    from chipwise.decide.question import Question


def decide(question: Question) -> Advice:
    """Answer one question: every size of the catalog ends in exactly one of the five lists."""
    screened = screen(question)
    offers = {one.name: offer(one, question) for one in screened.tried}
    needs = {one.name: missing_need(one, question) for one in screened.tried}
    quotes = {name: found for name, found in offers.items() if not isinstance(found, Rejected) and needs[name] is None}
    search = search_training if isinstance(question.demand, TrainingDemand) else search_serving
    found = search(question, screened.tried, quotes)
    dear, priceless = over_budget(found.deployments, question), unpriced(found.deployments, question)
    left = affordable(found.deployments, question)
    picked = pick(left, question)
    rejected, not_judged = _unfeasible(screened, found, offers, needs)
    rejected += dear.values()
    not_judged += priceless.values()
    options = [option_of(question, picked, place) for place in range(len(picked.options))]
    return Advice(
        facts_as_of=question.catalog.facts_as_of,
        model={},
        workload=dict(question.workload),
        options=tuple(options),
        also_feasible=tuple(_also(question, picked)),
        rejected=tuple(rejected),
        not_judged=tuple(not_judged),
        excluded=screened.excluded,
        considered={"sizes": len(question.catalog.instances), "configurations": sum(found.layouts_tried)},
        guide=guide_object(question, options, rejected),
        gpu_or_neuron=neuron_object(question, picked, rejected),
        gpu_needed=None,
        benchmark={},
        warnings=() if isinstance(question.demand, TrainingDemand) else (f"percentiles: {METHOD}",),
    )


def _unfeasible(
    screened: Screened,
    found: Found,
    offers: dict[str, Quote | Rejected | None],
    needs: dict[str, Rejected | None],
) -> tuple[list[Rejected], list[NotJudged]]:
    rejected, not_judged = list(screened.rejected), list(screened.not_judged)
    for instance in screened.tried:
        if instance.name in found.deployments:
            continue
        answer = _why_not(instance, found, offers[instance.name], needs[instance.name])
        if isinstance(answer, Rejected):
            rejected.append(answer)
        else:
            not_judged.append(answer)
    return rejected, not_judged


def _why_not(
    instance: Instance, found: Found, offered: Quote | Rejected | None, needed: Rejected | None
) -> Rejected | NotJudged:
    """The first check that fails: layouts up to memory, then features, then region and purchase, then the bars."""
    if instance.name in found.held:
        if needed is not None:
            return needed
        if isinstance(offered, Rejected):
            return offered
    return verdict(instance, found.failures.get(instance.name, ()))


def _also(question: Question, picked: Picked) -> list[AlsoFeasible]:
    leader = picked.options[0][0] if picked.options else None
    rows: list[AlsoFeasible] = []
    for one, _ in picked.others:
        ttft_p99_s, tpot_p99_s = one.latency_p99_s()
        rows.append(
            AlsoFeasible(
                instance=one.instance.name,
                instances=one.instances,
                precision=one.precision,
                parallelism=one.parallelism,
                usd_per_hour=one.usd_per_hour,
                ttft_p99_s=ttft_p99_s,
                tpot_p99_s=tpot_p99_s,
                behind_because=behind_because(one, leader, question),
            )
        )
    return rows
