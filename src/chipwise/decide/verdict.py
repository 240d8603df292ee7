"""`decide(question) -> Advice`: the whole way from sizes to an answer. Pure; reads no file and no clock."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.cost import sold_instances
from chipwise.decide.advice import Advice, AlsoFeasible, NotJudged, Option, Rejected
from chipwise.decide.aside import set_aside
from chipwise.decide.bars import affordable, over_budget, unpriced
from chipwise.decide.compare import guide_object, neuron_object
from chipwise.decide.differences import behind
from chipwise.decide.failures import verdict
from chipwise.decide.found import Found
from chipwise.decide.infrastructure import with_tenancy
from chipwise.decide.options import option_of
from chipwise.decide.other.guide import gpu_needed
from chipwise.decide.other.search import search_other
from chipwise.decide.pick import Picked, pick
from chipwise.decide.pools.search import with_pools
from chipwise.decide.question import OtherDemand, TrainingDemand
from chipwise.decide.screen import Screened, missing_need, offer, screen
from chipwise.decide.serving.search import search_serving
from chipwise.decide.sharing.search import search_shared
from chipwise.decide.strict import to_the_letter
from chipwise.decide.training.search import search_training
from chipwise.perf.other.load import METHOD as OTHER_METHOD
from chipwise.perf.spread import METHOD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from chipwise.catalog import Instance
    from chipwise.cost import Quote
    from chipwise.decide.question import Question


def unheard(words: str) -> None:
    """Where nobody follows how far a question is."""
    del words


def decide(question: Question, say: Callable[[str], None] = unheard) -> Advice:
    """Answer one question: every size of the catalog ends in exactly one of the five lists.

    Args:
        question: model, demand, policy.
        say: hears how far it is, between the stages; what it raises breaks the work off.
    """
    screened = screen(question)
    offers = {one.name: offer(one, question) for one in screened.tried}
    needs = {one.name: missing_need(one, question) for one in screened.tried}
    quotes = {name: found for name, found in offers.items() if not isinstance(found, Rejected) and needs[name] is None}
    say(f"{len(screened.tried)} sizes to try")
    found = _search(question, screened.tried, quotes)
    say(f"{sum(found.layouts_tried):,} layouts tried")
    lettered, unlike = to_the_letter(found.deployments, question)
    found = replace(found, deployments=lettered)
    dear, priceless = over_budget(found.deployments, question), unpriced(found.deployments, question)
    left = affordable(found.deployments, question)
    picked = with_pools(question, pick(left, question), quotes)
    rejected, not_judged = _unfeasible(screened, found, offers, needs, frozenset(unlike))
    rejected = [_with_price(one, offers.get(one.instance)) for one in rejected]
    rejected += [*dear.values(), *unlike.values()]
    not_judged += priceless.values()
    also = _also(question, picked)
    other = isinstance(question.demand, OtherDemand)
    options: list[Option] = []
    for place in range(len(picked.options)):
        say(f"option {place + 1} of {len(picked.options)}")
        options.append(with_tenancy(option_of(question, picked, place), question))
    return Advice(
        facts_as_of=question.catalog.facts_as_of,
        model={},
        workload=dict(question.workload),
        options=tuple(options),
        also_feasible=tuple(also),
        rejected=tuple(rejected),
        not_judged=tuple(not_judged),
        excluded=screened.excluded,
        considered={"sizes": len(question.catalog.instances), "configurations": sum(found.layouts_tried)},
        guide=guide_object(question, options, [*also, *rejected, *not_judged, *screened.excluded]),
        gpu_or_neuron=neuron_object(question, picked, rejected),
        gpu_needed=gpu_needed(question, left, rejected, not_judged) if other else None,
        benchmark={},
        warnings=() if isinstance(question.demand, TrainingDemand) else (f"percentiles: {_method(question)}",),
    )


def _with_price(one: Rejected, offered: Quote | Rejected | None) -> Rejected:
    """What came nearest, with what it would cost where it is offered."""
    instances = one.nearest.get("instances")
    if instances is None or offered is None or isinstance(offered, Rejected):
        return one
    hourly = offered.usd_per_hour.scaled(sold_instances(instances, offered))
    return replace(one, nearest={**one.nearest, "usd_per_hour": hourly})


def _method(question: Question) -> str:
    return OTHER_METHOD if isinstance(question.demand, OtherDemand) else METHOD


def _search(question: Question, tried: Sequence[Instance], quotes: dict[str, Quote | None]) -> Found:
    if question.tenants:
        return search_shared(question, tried, quotes)
    if isinstance(question.demand, OtherDemand):
        return search_other(question, tried, quotes)
    search = search_training if isinstance(question.demand, TrainingDemand) else search_serving
    return search(question, tried, quotes)


def _unfeasible(
    screened: Screened,
    found: Found,
    offers: dict[str, Quote | Rejected | None],
    needs: dict[str, Rejected | None],
    answered: frozenset[str],
) -> tuple[list[Rejected], list[NotJudged]]:
    rejected, not_judged = list(screened.rejected), list(screened.not_judged)
    for instance in screened.tried:
        if instance.name in found.deployments or instance.name in answered:
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
    leader = picked.options[0] if picked.options else None
    rows: list[AlsoFeasible] = []
    for one in picked.others:
        ttft_p99_s, tpot_p99_s = one.latency_p99_s()
        apart, because = behind(one, picked.options, question)
        rows.append(
            AlsoFeasible(
                instance=one.instance.name,
                instances=one.instances,
                precision=one.precision,
                parallelism=one.parallelism,
                usd_per_hour=one.usd_per_hour,
                ttft_p99_s=ttft_p99_s,
                tpot_p99_s=tpot_p99_s,
                profile=one.profile,
                aside=set_aside(one, leader, question),
                behind=apart,
                behind_because=because,
            )
        )
    return sorted(rows, key=lambda row: row.aside is not None)
