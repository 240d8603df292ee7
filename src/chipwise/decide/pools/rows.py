"""Layouts that could be a pool, with what each of them does alone: prompts a second, answers a second."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from chipwise.capacity import Packing, pack
from chipwise.decide.platforms import platforms_of
from chipwise.decide.question import FULLEST
from chipwise.decide.serving.evaluate import UNITS, element, load_of, room_of, size_layouts
from chipwise.decide.serving.laid import Room, column, laid_out
from chipwise.decide.serving.seats import at_precision, layouts_of, seats_of, spanning_layouts
from chipwise.perf.disaggregated import DecodePool, Wires, answers_per_s, decode_pool
from chipwise.perf.load import ServingPrediction
from chipwise.perf.spread import tpot_quantile_s

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from chipwise.catalog import Instance
    from chipwise.cost import Quote
    from chipwise.decide.question import Demand, Question
    from chipwise.decide.serving.deployment import ServingDeployment
    from chipwise.decide.serving.seats import Layout
    from chipwise.model import ModelSpec
    from chipwise.perf.load import ServingInput

    Floats = NDArray[np.float64]

REPLICAS = UNITS
"""Replicas tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A layout on the cheapest size that has it."""

    layout: Layout
    instance: Instance
    quote: Quote
    regions: frozenset[str]
    """Where it is offered, of those asked for."""
    packing: Packing
    pool_bytes: float
    """What requests fill of the cache on each of its devices."""
    state_limit: float
    """How many of them the engine has recurrent states for."""

    def instances(self, replicas: int) -> int:
        """Instances that hold so many replicas."""
        return -(-replicas // self.packing.replicas_per_unit) * self.packing.instances_per_unit

    def usd_per_hour(self, instances: int) -> float:
        """What they cost."""
        return self.quote.usd_per_hour.mid * instances

    @property
    def least_usd_per_hour(self) -> float:
        """What one replica costs."""
        return self.usd_per_hour(self.instances(1))


def rows_of(question: Question, together: ServingDeployment, offered: Mapping[str, Quote | None]) -> list[Row]:
    """Every layout of every priced size under the engine and at the precision of `together` that holds the model.

    A layout on several sizes stands once, on the cheapest; one that spans nodes only where `together` does.
    """
    option = together.evaluated.option
    model = at_precision(question.model, option)
    sizes = [question.catalog.instances[name] for name, quote in offered.items() if quote is not None]
    seats, _ = seats_of(question, platforms_of(sizes, question.catalog.chips), model, option)
    mine = together.layout.seat.engine
    alike = [one for one in seats if (one.engine.name, one.engine.version) == (mine.name, mine.version)]
    layouts = [layout for seat in alike for layout in layouts_of(seat, model)]
    if together.evaluated.packings[together.row].instances_per_unit > 1:
        layouts += [layout for seat in alike for layout in spanning_layouts(seat, model)]
    if not layouts:
        return []
    memory = size_layouts(laid_out(model, tuple(layouts)), question.serving)
    held = np.broadcast_to(memory.shortfall_bytes, (len(layouts), 1))[:, 0] <= 0
    room = room_of(memory, held)
    found = [one for one, holds in zip(layouts, held, strict=True) if holds]
    columns = zip(room.pool_bytes[:, 0].tolist(), room.state_limit[:, 0].tolist(), strict=True)
    return [_row(question, one, offered, together, pair) for one, pair in zip(found, columns, strict=True)]


def _row(
    question: Question,
    layout: Layout,
    offered: Mapping[str, Quote | None],
    together: ServingDeployment,
    pool_and_states: tuple[float, float],
) -> Row:
    """On the size of `together` where the platform has it, else on the cheapest."""
    members = [(one, quote) for one in layout.seat.platform.members if (quote := offered.get(one.name)) is not None]
    own = [pair for pair in members if pair[0].name == together.instance.name]
    instance, quote = (own or sorted(members, key=lambda pair: (pair[1].usd_per_hour.mid, pair[0].name)))[0]
    packing = pack(devices_per_replica=layout.devices, devices_per_instance=layout.seat.platform.devices)
    here = frozenset(question.policy.regions).intersection(question.catalog.regions_of(instance.name, priced=True))
    return Row(
        layout=layout,
        instance=instance,
        quote=quote,
        regions=here,
        packing=packing,
        pool_bytes=pool_and_states[0],
        state_limit=pool_and_states[1],
    )


def asked_of(model: ModelSpec, rows: Sequence[Row], demand: Demand, replicas: Floats) -> ServingInput:
    """What perf is asked about rows with `replicas` (rows by columns, or one row of columns) copies."""
    laid = laid_out(model, tuple(row.layout for row in rows))
    room = Room(pool_bytes=column(row.pool_bytes for row in rows), state_limit=column(row.state_limit for row in rows))
    return laid.asked(load_of(demand), room=room, replicas=replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """A row that decodes the load, at the fewest replicas that do: one element of what many were predicted to do."""

    row: Row
    count: int
    among: DecodePool
    place: tuple[int, int]

    @property
    def pool(self) -> DecodePool:
        """What it does, every field a number."""
        found = self.among
        return replace(
            found,
            answer=numbers_of(found.answer, self.place),
            wires=numbers_of(found.wires, self.place),
        )

    @property
    def usd_per_hour(self) -> float:
        """What its replicas cost."""
        return self.row.usd_per_hour(self.row.instances(self.count))


def decoding(model: ModelSpec, rows: Sequence[Row], demand: Demand, most_usd_per_hour: float) -> list[Decoder]:
    """Rows that decode the load within the bar on TPOT: at the fewest replicas that do, the cheapest first.

    Rows that cost more than `most_usd_per_hour` where they only carry the rate are not asked about the bar.
    """
    rates = np.broadcast_to(answers_per_s(asked_of(model, rows, demand, REPLICAS[None, :1])), (len(rows), 1))
    carry = rates * REPLICAS * FULLEST >= demand.rate_per_s
    fewest = np.argmax(carry, axis=1)
    able = [
        place
        for place, row in enumerate(rows)
        if carry[place].any() and row.usd_per_hour(row.instances(int(REPLICAS[fewest[place]]))) <= most_usd_per_hour
    ]
    if not able:
        return []
    start = int(fewest[able].min())
    return _decoders(model, [rows[place] for place in able], demand, carry[able, start:])


def _decoders(model: ModelSpec, rows: Sequence[Row], demand: Demand, carry: NDArray[np.bool_]) -> list[Decoder]:
    """Of `rows` those that hold the bar; `carry` says where they carry the rate, at the last columns of `REPLICAS`."""
    counts = REPLICAS[REPLICAS.size - carry.shape[1] :]
    pool = decode_pool(asked_of(model, rows, demand, counts[None, :]))
    tpot_s = tpot_quantile_s(pool.answer, quantile=0.99, steps=demand.osl_tokens - 1.0)
    bar_s = np.inf if demand.tpot_p99_s is None else demand.tpot_p99_s
    meets = (np.broadcast_to(tpot_s, carry.shape) <= bar_s) & carry
    first = np.argmax(meets, axis=1)
    found = [
        Decoder(row=rows[at], count=int(counts[first[at]]), among=pool, place=(at, int(first[at])))
        for at in map(int, np.flatnonzero(meets.any(axis=1)))
    ]
    return sorted(found, key=lambda one: (one.usd_per_hour, one.count))


Part = TypeVar("Part", ServingPrediction, Wires)


def numbers_of(part: Part, place: tuple[int, int] = (0, 0)) -> Part:
    """One element of what broadcasts over rows and columns, every field a number."""
    return type(part)(**{one.name: element(getattr(part, one.name), *place) for one in fields(part)})
