"""What one tenant needs of every kind of place: how many replicas meet its bars, and how many bytes each takes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from chipwise.decide.failures import refusal_failure
from chipwise.decide.serving.deployment import smallest_units
from chipwise.decide.serving.evaluate import element, evaluate, size, size_layouts
from chipwise.decide.serving.laid import column, laid_out
from chipwise.decide.serving.misses import memory_failure, missed_rows, slo_failure
from chipwise.decide.serving.search import below_floor, by_engine, precisions_of
from chipwise.decide.serving.seats import Layout, at_precision, documented, seats_of
from chipwise.decide.serving.splits import single_node_splits
from chipwise.precision import format_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from chipwise.decide.failures import Failure
    from chipwise.decide.platforms import Platform
    from chipwise.decide.question import Demand, Question
    from chipwise.decide.serving.evaluate import Evaluated
    from chipwise.decide.serving.seats import Seat
    from chipwise.decide.sharing.places import Place
    from chipwise.model import ModelSpec
    from chipwise.precision import PrecisionOption

TINY = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One tenant on one kind of place at one precision: the fewest replicas that meet its bars.

    `device_bytes` is what a replica holds on a device that it shares by turns, its cache sized for what runs at once.
    """

    tenant: int
    place: Place
    evaluated: Evaluated
    row: int
    column: int
    device_bytes: float

    @property
    def layout(self) -> Layout:
        """One replica's layout."""
        return self.evaluated.layouts[self.row]

    @property
    def replicas(self) -> int:
        """How many carry the load within the bars."""
        return int(self.evaluated.units[self.column])

    @property
    def bits(self) -> float:
        """Of a weight."""
        return format_facts(self.evaluated.option.format).bits

    @property
    def size(self) -> tuple[float, float]:
        """Shares of a GPU's memory and compute that one slice is; devices, twice, of a replica on whole ones."""
        if self.place.kind == "slice":
            return self.place.platform.bandwidth_fraction, self.place.platform.fraction
        return float(self.place.devices), float(self.place.devices)

    def value(self, name: str) -> float:
        """One predicted quantity at this number of replicas."""
        return element(getattr(self.evaluated.prediction, name), self.row, self.column)


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a tenant needs, by platform; why it cannot be had, by platform; platforms on which some place holds it."""

    found: list[Need] = field(default_factory=list)
    failures: list[tuple[int, Failure]] = field(default_factory=list)
    held: set[int] = field(default_factory=set)
    tried: list[int] = field(default_factory=list)


def needs_of(question: Question, tenant: int, places: Sequence[Place]) -> Needs:
    """Evaluate a tenant on every place at every precision that its policy allows."""
    needs = Needs()
    options = precisions_of(question)
    if not options:
        failure = refusal_failure(below_floor(question))
        needs.failures.extend((base, failure) for base in sorted({place.base for place in places}))
    for option in options:
        _at(question, tenant, places, option, needs)
    return needs


def _at(question: Question, tenant: int, places: Sequence[Place], option: PrecisionOption, needs: Needs) -> None:
    model = at_precision(question.model, option)
    by_platform = {place.platform: place for place in places}
    seats, refused = seats_of(question, [place.platform for place in places], model, option)
    for platform, refusal in refused:
        place = by_platform[platform]
        if place.kind == "whole" and platform.devices == 1:
            needs.failures.append((place.base, refusal_failure(refusal)))
    for group in by_engine(seats):
        layouts = [layout for seat in group for layout in _layouts(seat, model)]
        if not layouts:
            continue
        needs.tried.append(len(layouts))
        sized = size(model, option, layouts, question.serving)
        (evaluated,) = evaluate([sized], question.serving)
        for layout, short_bytes in sized.lacking:
            place = by_platform[layout.seat.platform]
            if place.kind == "whole":
                needs.failures.append((place.base, memory_failure(layout, option, short_bytes)))
        if evaluated is not None:
            _keep(question, tenant, by_platform, (model, evaluated), needs)


def _layouts(seat: Seat, model: ModelSpec) -> Iterator[Layout]:
    """Splits that fill the place: one replica is all of it."""
    for split in single_node_splits(model, seat.platform.devices, stages=False):
        if int(split.devices) == seat.platform.devices and documented(seat.backing, split):
            yield Layout(seat=seat, split=split)


def _keep(
    question: Question,
    tenant: int,
    by_platform: dict[Platform, Place],
    asked: tuple[ModelSpec, Evaluated],
    needs: Needs,
) -> None:
    model, evaluated = asked
    sizes = _device_bytes(question, model, evaluated)
    for row, at in enumerate(smallest_units(evaluated)):
        place = by_platform[evaluated.layouts[row].seat.platform]
        needs.held.add(place.base)
        if at is not None:
            needs.found.append(
                Need(
                    tenant=tenant, place=place, evaluated=evaluated, row=row, column=at, device_bytes=float(sizes[row])
                )
            )
    for row in missed_rows(evaluated):
        place = by_platform[evaluated.layouts[row].seat.platform]
        if place.kind == "whole":
            needs.failures.append((place.base, slo_failure(evaluated, row, question.serving)))


def at_once(demand: Demand, *, replicas: float, running: float) -> int:
    """Requests that one replica is given room for: its part of a closed load, else twice what runs.

    >>> from chipwise.decide.question import Demand
    >>> four = Demand(kind="closed", isl_tokens=1000.0, osl_tokens=100.0, context_tokens=2048.0, users=4.0)
    >>> at_once(four, replicas=3.0, running=1.0)
    2
    """
    wanted = demand.users / replicas if demand.kind == "closed" else 2.0 * running
    return max(1, math.ceil(wanted - TINY))


def _device_bytes(question: Question, model: ModelSpec, evaluated: Evaluated) -> Sequence[float]:
    """Bytes of one replica on its fullest device: the cache holds what is in flight at its mean length.

    It holds one request of the full context in any case.
    """
    demand, columns = question.serving, [at or 0 for at in smallest_units(evaluated)]
    shape = evaluated.miss.shape
    running = np.broadcast_to(evaluated.prediction.running, shape)[np.arange(shape[0]), columns]
    counts = [
        at_once(demand, replicas=float(evaluated.units[at]), running=float(one))
        for at, one in zip(columns, running, strict=True)
    ]
    laid = laid_out(model, tuple(evaluated.layouts))
    laid = replace(laid, max_num_seqs=column(counts))
    usual = replace(demand, context_tokens=demand.isl_tokens + demand.osl_tokens)
    held = (
        size_layouts(laid, usual, column(counts)),
        size_layouts(laid, demand),
    )
    totals = (sum(size for name, size in one.budget.terms().items() if name != "reserved_bytes") for one in held)
    largest: Sequence[float] = np.maximum(*(np.broadcast_to(total, (shape[0], 1))[:, 0] for total in totals))
    return largest
