"""Try every way to lay a run on every platform; gather per size its feasible runs and its failures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from chipwise.capacity import block_problem
from chipwise.capacity.blocks import SOURCE as BLOCKS
from chipwise.cost import sold_instances
from chipwise.decide.advice import Discouraged
from chipwise.decide.failures import Failure, Refusal, refusal_failure
from chipwise.decide.found import Found
from chipwise.decide.platforms import platforms_of
from chipwise.decide.training.deployment import TrainingDeployment, hourly_usd, run_usd
from chipwise.decide.training.quickest import Short, quickest
from chipwise.decide.training.rollout import rollout_seconds
from chipwise.decide.training.runs import Seat, courses_of
from chipwise.decide.training.scaling import (
    bar_failure,
    chosen,
    default_bars,
    loosened,
    parallel_efficiency_fraction,
    pays,
    user_bars,
)
from chipwise.decide.training.trainers import Trainers, trainers_of
from chipwise.decide.training.ways import ways_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from chipwise.catalog import Instance
    from chipwise.cost import Quote
    from chipwise.decide.platforms import Platform
    from chipwise.decide.question import Question, TrainingDemand
    from chipwise.decide.training.quickest import Quickest
    from chipwise.decide.training.runs import Courses
    from chipwise.decide.training.trainers import Scheme
    from chipwise.decide.training.ways import Way

Quotes = dict[str, "Quote | None"]
Fleets = dict[str, dict[int, "_Fleet"]]
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
    for scheme, places in schemes.items():
        ways = ways_of(question, places, scheme)
        laid = () if ways is None else ways.platforms
        for platform in (one for one, _ in places if one not in laid):
            found.fail(platform.members, _copies_failure(platform, question.training))
        if ways is not None:
            known = {platform.chip.id: trainers for platform, trainers in places}
            rollout_s = rollout_seconds(question, ways)
            best = quickest(question.model, question.training, scheme, ways, rollout_s)
            seats = _gather(best, quotes, found)
            if seats:
                _keep_faster(fleets, seats, courses_of(question, seats), known)
    _judge(question, {name: _compared(question, of_size.values()) for name, of_size in fleets.items()}, found)
    return found


def _gather(best: Quickest, quotes: Quotes, found: Found) -> list[Seat]:
    """The fastest row of every fleet that some way fits, on each of its platform's sizes."""
    found.layouts_tried.append(best.tried)
    seats = []
    for fleet in best.fleets:
        members = fleet.way.platform.members
        if isinstance(fleet, Short):
            found.fail(members, _memory_failure(fleet.way, fleet.short_bytes))
            continue
        found.held.update(one.name for one in members)
        seats += [
            Seat(trial=fleet.trial, row=fleet.row, way=fleet.way, instance=one, quote=quotes[one.name])
            for one in members
            if one.name in quotes
        ]
    return seats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Fleet:
    """A seat and its place among the courses of its scheme."""

    seat: Seat
    instances: int
    mid_s: float
    courses: Courses
    place: int
    trainers: Trainers


def _keep_faster(fleets: Fleets, seats: Sequence[Seat], courses: Courses, known: dict[str, Trainers]) -> None:
    for place, (seat, mid_s) in enumerate(zip(seats, courses.mid_s.tolist(), strict=True)):
        of_size = fleets.setdefault(seat.instance.name, {})
        instances = sold_instances(seat.way.nodes, seat.quote)
        other = of_size.get(instances)
        if other is None or mid_s < other.mid_s:
            trainers = known[seat.way.platform.chip.id]
            of_size[instances] = _Fleet(
                seat=seat, instances=instances, mid_s=mid_s, courses=courses, place=place, trainers=trainers
            )


def _compared(question: Question, fleets: Iterable[_Fleet]) -> list[TrainingDeployment]:
    """The fleets of one size from the smallest, each with its efficiency against the smallest that holds the run."""
    ordered = sorted(fleets, key=lambda one: one.instances)
    return [_deployed(question, one, ordered[0]) for one in ordered]


def _deployed(question: Question, fleet: _Fleet, first: _Fleet) -> TrainingDeployment:
    seat, course = fleet.seat, fleet.courses.at(fleet.place)
    efficiency = parallel_efficiency_fraction(
        smallest_s=first.mid_s, smallest=first.instances, larger_s=fleet.mid_s, larger=fleet.instances
    )
    return TrainingDeployment(
        instance=seat.instance,
        trial=seat.trial,
        row=seat.row,
        way=seat.way,
        tokens=question.training.tokens,
        notes=fleet.trainers.notes,
        quote=seat.quote,
        course=course,
        usd_per_run=run_usd(course.duration_s, hourly_usd(fleet.instances, seat.quote)),
        discouraged_by=(*fleet.trainers.discouraged_by, *_unsold(fleet.instances, fleet.mid_s, seat.quote)),
        fewest=first.instances,
        efficiency_fraction=efficiency,
    )


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
