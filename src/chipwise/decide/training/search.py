"""Try every way to lay a run on every platform; gather per size its feasible runs and its failures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, get_args

import numpy as np

from chipwise.capacity import block_problem
from chipwise.capacity.blocks import SOURCE as BLOCKS
from chipwise.cost import sold_instances
from chipwise.decide.advice import Discouraged
from chipwise.decide.failures import Failure, Refusal, refusal_failure
from chipwise.decide.found import Found
from chipwise.decide.platforms import platforms_of
from chipwise.decide.training.deployment import TrainingDeployment
from chipwise.decide.training.rollout import rollout_seconds
from chipwise.decide.training.runs import course_of
from chipwise.decide.training.scaling import (
    bar_failure,
    chosen,
    compared,
    default_bars,
    loosened,
    pays,
    user_bars,
)
from chipwise.decide.training.trainers import Trainers, trainers_of
from chipwise.decide.training.trials import trial
from chipwise.decide.training.ways import ways_of
from chipwise.memory.training_job import Recompute

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from chipwise.catalog import Instance
    from chipwise.cost import Quote
    from chipwise.decide.platforms import Platform
    from chipwise.decide.question import Question, TrainingDemand
    from chipwise.decide.training.trainers import Scheme
    from chipwise.decide.training.trials import Trial
    from chipwise.decide.training.ways import Way

Quotes = dict[str, "Quote | None"]
Fleets = dict[str, dict[int, TrainingDeployment]]
"""By size and number of instances the fastest run."""


def search_training(question: Question, instances: Sequence[Instance], quotes: Quotes) -> Found:
    """Size and time every way; keep per size the fleets that pay and meet the bars, the fastest run of each.

    Args:
        question: model, run, policy.
        instances: sizes to try.
        quotes: those of them that may be bought here, with their price.
    """
    found, fleets = Found(), Fleets()
    schemes: dict[Scheme, list[tuple[Platform, Trainers]]] = {}
    for platform in platforms_of(instances, question.catalog.chips):
        trainers = trainers_of(question, platform.chip)
        if isinstance(trainers, Refusal):
            found.fail(platform.members, refusal_failure(trainers))
            continue
        for scheme in trainers.schemes:
            schemes.setdefault(scheme, []).append((platform, trainers))
    modes = _modes(question.training)
    for scheme, seats in schemes.items():
        ways = ways_of(question, seats, scheme)
        laid = () if ways is None else ways.platforms
        for platform in (one for one, _ in seats if one not in laid):
            found.fail(platform.members, _copies_failure(platform, question.training))
        if ways is not None:
            known = {platform.chip.id: trainers for platform, trainers in seats}
            rollout_s = rollout_seconds(question, ways)
            trials = [trial(question, scheme, mode, ways, rollout_s) for mode in modes]
            for one in _gather(question, trials, known, quotes, found):
                _keep_faster(fleets, one)
    _judge(question, {name: compared(list(of_size.values())) for name, of_size in fleets.items()}, found)
    return found


def _modes(run: TrainingDemand) -> tuple[Recompute, ...]:
    """What may be recomputed: as asked, else anything; what is selected is of a token model's layers."""
    known: tuple[Recompute, ...] = get_args(Recompute) if run.sample is None else ("none", "full")
    return tuple(mode for mode in known if run.recompute in {None, mode})


def _gather(
    question: Question, trials: Sequence[Trial], known: dict[str, Trainers], quotes: Quotes, found: Found
) -> Iterator[TrainingDeployment]:
    """Per platform and nodes the fastest row that fits, over all recomputation modes, on each of its sizes."""
    ways = trials[0].ways
    found.layouts_tried.append(len(ways) * len(trials))
    times = np.stack([np.where(one.short_bytes > 0, np.inf, one.arrays.step_s) for one in trials])
    short = np.stack([one.short_bytes for one in trials])
    for start, stop in ways.fleets():
        taken = times[:, start:stop]
        mode, column = np.unravel_index(int(np.argmin(taken)), taken.shape)
        row = start + int(column)
        way = ways[row]
        if not np.isfinite(taken[mode, column]):
            found.fail(way.platform.members, _memory_failure(way, float(short[:, start:stop].min())))
            continue
        found.held.update(one.name for one in way.platform.members)
        trainers = known[way.platform.chip.id]
        for instance in way.platform.members:
            if instance.name in quotes:
                at = (trials[int(mode)], row)
                yield _deployed(question, at, instance, quote=quotes[instance.name], trainers=trainers)


def _deployed(
    question: Question, at: tuple[Trial, int], instance: Instance, *, quote: Quote | None, trainers: Trainers
) -> TrainingDeployment:
    laid, row = at
    course = course_of(question, laid, row, instance, quote)
    instances = sold_instances(laid.ways[row].nodes, quote)
    return TrainingDeployment(
        instance=instance,
        trial=laid,
        row=row,
        way=laid.ways[row],
        tokens=question.training.tokens,
        notes=trainers.notes,
        quote=quote,
        course=course,
        discouraged_by=(*trainers.discouraged_by, *_unsold(instances, course.duration_s.mid, quote)),
    )


def _keep_faster(fleets: Fleets, one: TrainingDeployment) -> None:
    of_size = fleets.setdefault(one.instance.name, {})
    other = of_size.get(one.instances)
    if other is None or one.duration_s.mid < other.duration_s.mid:
        of_size[one.instances] = one


def _unsold(instances: int, duration_s: float, quote: Quote | None) -> Iterator[Discouraged]:
    """A fleet that is only sold in Capacity Blocks, larger or longer than these are."""
    if quote is None or quote.term != "capacity-block":
        return
    problem = block_problem(instances=instances, duration_s=duration_s)
    if problem is not None:
        yield Discouraged(
            rule="purchase: Capacity Blocks",
            why=f"{problem} ({BLOCKS}): it takes a reservation that AWS quotes",
            penalty="stands behind every fleet that is sold as listed, whatever it costs",
        )


def _copies_failure(platform: Platform, run: TrainingDemand) -> Failure:
    """No way of a node gives every copy a micro-batch: the batch has fewer than what cannot share one."""
    return Failure(
        stage="split",
        distance=float(platform.devices),
        reason=f"no legal split of its {platform.devices} devices gives each copy a micro-batch: a step holds "
        f"{run.global_batch:,.0f}",
        source="parallelism",
        change="a larger --global-batch, a shorter sequence (more of them a step), or a size with fewer devices",
    )


def _memory_failure(way: Way, short_bytes: float) -> Failure:
    return Failure(
        stage="memory",
        distance=short_bytes,
        reason=f"does not fit on {way.nodes} of them: {short_bytes / 2**30:.1f} GiB short on each device at best",
        source="training memory budget",
        change="adapters (LoRA, QLoRA), an 8-bit optimizer, a shorter sequence, or more memory",
        shortfall={"value": short_bytes, "unit": "bytes per device"},
        nearest={"instances": way.nodes, "tp": way.tp, "pp": way.pp, "micro_batch": way.micro_batch},
    )


def _judge(question: Question, fleets: dict[str, list[TrainingDeployment]], found: Found) -> None:
    """Keep of every size what the bars leave; note how far the others miss them."""
    bars, default = [user_bars(question)], default_bars(question)
    if default is not None:
        worthwhile = [one for of_size in fleets.values() for one in of_size if pays(one)]
        bars.append(loosened(default, worthwhile, question))
    kept = {name: chosen(of_size, bars) for name, of_size in fleets.items()}
    supported = any(not one.discouraged_by for of_size in kept.values() for one in of_size)
    for name, of_size in fleets.items():
        for one in kept[name]:
            found.add(replace(one, behind=supported and bool(one.discouraged_by)))
        if not kept[name]:
            found.fail([of_size[0].instance], bar_failure(of_size, bars))
