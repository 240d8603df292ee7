"""Try every precision on every platform; gather per size its feasible deployments and its failures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from chipwise.decide.failures import Refusal, refusal_failure
from chipwise.decide.found import Found
from chipwise.decide.infrastructure import isolated
from chipwise.decide.platforms import platforms_of, with_slices
from chipwise.decide.serving.deployment import ServingDeployment, feasible
from chipwise.decide.serving.evaluate import evaluate, size
from chipwise.decide.serving.misses import memory_failure, missed_rows, slo_failure
from chipwise.decide.serving.seats import at_precision, layouts_of, seats_of, shorter_chunks, spanning_layouts
from chipwise.precision import legal_precisions, meets_floor, stored_format

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from chipwise.catalog import Instance
    from chipwise.cost import Quote
    from chipwise.decide.deployment import Deployment
    from chipwise.decide.platforms import Platform
    from chipwise.decide.question import Question
    from chipwise.decide.serving.evaluate import Evaluated, Sized
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
    tries = [one for option in options for one in _tries(question, platforms, option, found)]
    inside = [
        _sized(question, one, (way for seat in one.seats for way in layouts_of(seat, one.model))) for one in tries
    ]
    across = [_sized(question, one, _spanning(one, held)) for one, held in zip(tries, inside, strict=True)]
    answers = _answers(question, [*inside, *across], quotes)
    inner, outer = answers[: len(tries)], answers[len(tries) :]
    tuned = [_sized(question, one, _tuned(question, one, done)) for one, done in zip(tries, inner, strict=True)]
    shorter = _answers(question, tuned, quotes)
    in_order = [one for ways in zip(inner, shorter, outer, strict=True) for one in ways]
    for answer in in_order:
        _note(answer, found)
    for answer in in_order:
        _note_failures(question, answer, found)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Try:
    """The seats of one engine at one precision."""

    model: ModelSpec
    option: PrecisionOption
    seats: Sequence[Seat]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What became of some layouts of a try."""

    sized: Sized
    evaluated: Evaluated | None
    deployments: Sequence[ServingDeployment]


def _tries(question: Question, platforms: Sequence[Platform], option: PrecisionOption, found: Found) -> Iterator[_Try]:
    """What one precision has to be tried on; platforms that it cannot be tried on fail."""
    model = at_precision(question.model, option)
    seats, refused = seats_of(question, platforms, model, option)
    for platform, refusal in refused:
        found.fail(platform.members, refusal_failure(refusal))
    for group in by_engine(seats):
        yield _Try(model=model, option=option, seats=group)


def _sized(question: Question, one: _Try, layouts: Iterable[Layout]) -> Sized:
    return size(one.model, one.option, tuple(layouts), question.serving)


def _inside(one: _Try) -> Iterator[Layout]:
    """Layouts inside one instance."""
    return (layout for seat in one.seats for layout in layouts_of(seat, one.model))


def _spanning(one: _Try, inside: Sized) -> Iterator[Layout]:
    """Layouts over several instances of chips of which no size holds the model in one."""
    layouts = () if inside.laid is None else inside.laid.layouts
    held = {layout.seat.platform.chip.id for layout in layouts}
    return (
        layout
        for seat in one.seats
        if seat.platform.chip.id not in held
        for layout in spanning_layouts(seat, one.model)
    )


def _tuned(question: Question, one: _Try, done: _Answer) -> Iterator[Layout]:
    """Layouts with shorter chunks where prompts may be what holds answers up.

    That is so where there is a bar on TPOT, and one instance does not meet the bars.
    """
    if question.serving.tpot_p99_s is None:
        return
    enough = {each.instance.name for each in done.deployments if each.instances == 1}
    for seat in one.seats:
        if not _names(seat) <= enough:
            yield from (layout for short in shorter_chunks(seat) for layout in layouts_of(short, one.model))


def _answers(question: Question, sized: Sequence[Sized], quotes: dict[str, Quote | None]) -> list[_Answer]:
    return [
        _Answer(
            sized=one,
            evaluated=evaluated,
            deployments=[] if evaluated is None else list(feasible(evaluated, quotes, question.policy.ha_factor)),
        )
        for one, evaluated in zip(sized, evaluate(sized, question.serving), strict=True)
    ]


def _note(answer: _Answer, found: Found) -> None:
    """Add deployments to what was found, and the sizes on which a layout holds the model."""
    found.layouts_tried.append(answer.sized.tried)
    for one in answer.deployments:
        found.add(one)
    laid = answer.sized.laid
    seats = {id(layout.seat): layout.seat for layout in (laid.layouts if laid else ())}
    found.held.update(name for seat in seats.values() for name in _names(seat))


def _note_failures(question: Question, answer: _Answer, found: Found) -> None:
    """Add how layouts failed, for sizes on which nothing is feasible."""
    for layout, short_bytes in answer.sized.lacking:
        if not _names(layout.seat) <= found.deployments.keys():
            failure = memory_failure(layout, answer.sized.option, short_bytes)
            found.fail(layout.seat.platform.members, failure)
    evaluated = answer.evaluated
    if evaluated is None:
        return
    for row in missed_rows(evaluated):
        seat = evaluated.layouts[row].seat
        if not _names(seat) <= found.deployments.keys():
            found.fail(seat.platform.members, slo_failure(evaluated, row, question.serving))


def _names(seat: Seat) -> set[str]:
    return {one.name for one in seat.platform.members}


def by_engine(seats: Sequence[Seat]) -> list[list[Seat]]:
    """Seats of one engine at one version together: their memory is counted in one pass."""
    groups: dict[tuple[str, str], list[Seat]] = {}
    for seat in seats:
        groups.setdefault((seat.engine.name, seat.engine.version), []).append(seat)
    return list(groups.values())
