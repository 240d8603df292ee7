"""Try every precision on every platform; gather per size its feasible deployments and its failures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.decide.failures import Refusal, refusal_failure
from chipwise.decide.found import Found
from chipwise.decide.infrastructure import isolated
from chipwise.decide.platforms import platforms_of, with_slices
from chipwise.decide.serving.deployment import ServingDeployment, feasible
from chipwise.decide.serving.evaluate import evaluate
from chipwise.decide.serving.misses import bar_failures
from chipwise.decide.serving.seats import at_precision, layouts_of, seats_of, shorter_chunks, spanning_layouts
from chipwise.precision import legal_precisions, meets_floor, stored_format

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chipwise.catalog import Instance
    from chipwise.cost import Quote
    from chipwise.decide.deployment import Deployment
    from chipwise.decide.platforms import Platform
    from chipwise.decide.question import Question
    from chipwise.decide.serving.seats import Layout, Seat
    from chipwise.model import ModelSpec
    from chipwise.precision import PrecisionOption

MIG = "mig"
"""The need that makes slices devices beside whole GPUs."""


def precisions_of(question: Question) -> list[PrecisionOption]:
    """The precisions to try: legal for serving the checkpoint and not below the floor.

    The checkpoint as it is stored loses nothing, so the floor that a goal implies never refuses it.
    """
    options = [one for one in legal_precisions(question.model) if "serve" in one.use]
    floor, lossless = question.policy.min_precision, stored_format(question.model).name
    if floor is None:
        return options
    return [
        one
        for one in options
        if meets_floor(one.format, floor) or (one.format == lossless and not question.policy.precision_stated)
    ]


def below_floor(question: Question) -> Refusal:
    """The refusal of a floor that nothing the checkpoint may become reaches."""
    stored, floor = stored_format(question.model).name, question.policy.min_precision
    return Refusal(
        rule="precision",
        reason=f"{question.model.name} is stored at {stored}: none of what it may become reaches {floor}",
        source="--min-precision",
        change=f"--min-precision {stored}",
    )


def search_serving(question: Question, instances: Sequence[Instance], quotes: dict[str, Quote | None]) -> Found:
    """Evaluate every layout of every platform at every precision.

    A replica spans instances only where no size of the same chip holds the model in one. Where tenants are to be
    isolated, or MIG is needed, its slices are devices beside whole GPUs, and come before them.

    Args:
        question: model, demand, policy.
        instances: sizes to try.
        quotes: those of them that may be bought here, with their price.
    """
    found = Found()
    platforms = platforms_of(instances, question.catalog.chips)
    if MIG in question.policy.needs or isolated(question):
        platforms = with_slices(platforms)
    options = precisions_of(question)
    if not options:
        found.fail(instances, refusal_failure(below_floor(question)))
    for option in options:
        _search_precision(question, platforms, option, quotes, found)
    return replace(found, deployments={name: _slices_first(ones) for name, ones in found.deployments.items()})


def _slices_first(deployments: Sequence[Deployment]) -> list[Deployment]:
    """Of one size: those on slices from the least they take, then whole GPUs where slices need more instances."""
    cut = [one for one in deployments if isinstance(one, ServingDeployment) and one.profile]
    if not cut:
        return list(deployments)
    cut.sort(key=lambda one: (one.instances, one.part))
    fewest: dict[str, int] = {}
    for one in cut:
        fewest.setdefault(one.precision, one.instances)
    whole = [one for one in deployments if one.profile is None]
    return [*cut, *(one for one in whole if one.precision not in fewest or one.instances < fewest[one.precision])]


def _search_precision(
    question: Question,
    platforms: Sequence[Platform],
    option: PrecisionOption,
    quotes: dict[str, Quote | None],
    found: Found,
) -> None:
    model = at_precision(question.model, option)
    seats, refused = seats_of(question, platforms, model, option)
    for platform, refusal in refused:
        found.fail(platform.members, refusal_failure(refusal))
    for group in by_engine(seats):
        narrow = _try(
            question, (model, option), [one for seat in group for one in layouts_of(seat, model)], found, quotes
        )
        tuned = [one for seat in _slowed(question, group, option, found) for one in shorter_chunks(seat)]
        _try(question, (model, option), [one for seat in tuned for one in layouts_of(seat, model)], found, quotes)
        inside = {seat.platform.chip.id for seat in group if narrow & _names(seat)}
        wide = [one for seat in group if seat.platform.chip.id not in inside for one in spanning_layouts(seat, model)]
        _try(question, (model, option), wide, found, quotes)


def _slowed(question: Question, seats: Sequence[Seat], option: PrecisionOption, found: Found) -> list[Seat]:
    """Seats on which prompts may be what holds answers up: a bar on TPOT, and one instance does not meet the bars."""
    if question.serving.tpot_p99_s is None:
        return []
    done = {
        name
        for name, ones in found.deployments.items()
        if any(one.precision == option.format and one.instances == 1 for one in ones)
    }
    return [seat for seat in seats if not _names(seat) <= done]


def _names(seat: Seat) -> set[str]:
    return {one.name for one in seat.platform.members}


def _try(
    question: Question,
    asked: tuple[ModelSpec, PrecisionOption],
    layouts: Sequence[Layout],
    found: Found,
    quotes: dict[str, Quote | None],
) -> set[str]:
    """Evaluate layouts; returns the sizes on which one of them holds the model."""
    if not layouts:
        return set()
    evaluated, refused = evaluate(*asked, layouts, question.serving)
    found.layouts_tried.append(len(layouts))
    for layout, failure in refused:
        found.fail(layout.seat.platform.members, failure)
    if evaluated is None:
        return set()
    for one in feasible(evaluated, quotes, question.policy.ha_factor):
        found.add(one)
    for row, failure in bar_failures(evaluated, question.serving).items():
        found.fail(evaluated.layouts[row].seat.platform.members, failure)
    held = {name for seat in {id(one.seat): one.seat for one in evaluated.layouts}.values() for name in _names(seat)}
    found.held.update(held)
    return held


def by_engine(seats: Sequence[Seat]) -> list[list[Seat]]:
    """Seats of one engine at one version together: they are evaluated in one pass."""
    groups: dict[tuple[str, str], list[Seat]] = {}
    for seat in seats:
        groups.setdefault((seat.engine.name, seat.engine.version), []).append(seat)
    return list(groups.values())
