"""Memory and performance of many layouts at many sizes of deployment, in one pass of array arithmetic.

Rows are layouts, columns are units of purchase: a unit is the smallest set of whole instances that holds whole
replicas. An engine queues what does not fit at once, so a layout must hold one request of the full context, and the
bars decide the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chipwise.capacity import Packing
from chipwise.decide.question import FULLEST
from chipwise.decide.serving.laid import Room, laid_out, machine, memory_of, nearest, together
from chipwise.memory import PoolAnswer, pool_of
from chipwise.perf.load import ServingLoad, ServingPrediction
from chipwise.perf.serving import predict_case
from chipwise.perf.side_by_side import likeness
from chipwise.perf.spread import tpot_quantile_s, ttft_quantile_s

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from chipwise.decide.question import Demand
    from chipwise.decide.serving.laid import Laid
    from chipwise.decide.serving.seats import Layout
    from chipwise.model import ModelSpec
    from chipwise.precision import PrecisionOption

    Floats = NDArray[np.float64]

UNITS = np.array([1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 64, 80, 96, 128, 192, 256.0])
"""Units of purchase tried."""
TINY_RATE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """Layouts that hold the model, by units of purchase.

    `miss` is the worst bar as a ratio of what was predicted to what was asked: at most 1 where every bar holds.
    """

    option: PrecisionOption
    layouts: Sequence[Layout]
    packings: Sequence[Packing]
    units: Floats
    prediction: ServingPrediction
    ttft_p99_s: Floats
    tpot_p99_s: Floats
    miss: Floats


def element(values: Floats | float, row: int, at: int) -> float:
    """One of values that broadcast over rows and columns.

    >>> element(np.array([[1.0], [2.0]]), 1, 7), element(3.0, 0, 0)
    (2.0, 3.0)
    """
    found = np.atleast_2d(values)
    rows, columns = found.shape
    return float(found[row if rows > 1 else 0, at if columns > 1 else 0])


def size_layouts(laid: Laid, demand: Demand, concurrency: Floats | float = 1.0) -> PoolAnswer:
    """The memory of every layout with room for `concurrency` requests of the full context."""
    return pool_of(memory_of(laid).under(context_tokens=demand.context_tokens, concurrency=concurrency))


def load_of(demand: Demand) -> ServingLoad:
    """The demand as perf asks it: totals for the deployment."""
    return ServingLoad(
        kind=demand.kind,
        isl=demand.isl_tokens,
        osl=demand.osl_tokens,
        concurrency=demand.users,
        rate_per_s=demand.rate_per_s,
        batch=demand.users,
        prefix_hit_fraction=demand.prefix_hit_fraction,
    )


def worst_miss(demand: Demand, prediction: ServingPrediction, ttft_p99_s: Floats, tpot_p99_s: Floats) -> Floats:
    """How far the worst bar is missed: predicted over asked; a rate may take `FULLEST` of the saturation rate."""
    misses = [np.zeros_like(ttft_p99_s)]
    if demand.ttft_p99_s is not None:
        misses.append(ttft_p99_s / demand.ttft_p99_s)
    if demand.tpot_p99_s is not None:
        misses.append(tpot_p99_s / demand.tpot_p99_s)
    if demand.throughput_tokens_per_s is not None:
        misses.append(demand.throughput_tokens_per_s / np.asarray(prediction.output_tokens_per_s))
    if demand.kind == "rate":
        misses.append(demand.rate_per_s / np.maximum(np.asarray(prediction.saturation_rate_per_s) * FULLEST, TINY_RATE))
    worst: Floats = np.maximum.reduce(np.broadcast_arrays(*misses))
    return worst


def units_tried(demand: Demand, replicas_per_unit: int) -> Floats:
    """Units of purchase worth trying: none beyond one replica a user in flight."""
    if demand.kind != "closed":
        return UNITS
    most = np.ceil(demand.users / replicas_per_unit)
    return UNITS[: int(np.searchsorted(UNITS, most)) + 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """Layouts of one precision and engine: those that hold the model, and of the others what each platform lacks."""

    option: PrecisionOption
    laid: Laid | None
    """None where no layout holds it."""
    room: Room
    """What the engine of each has for requests."""
    lacking: Sequence[tuple[Layout, float]]
    """Layouts that do not hold it, with the bytes that each device lacks: of those on each platform the nearest."""
    tried: int


def size(model: ModelSpec, option: PrecisionOption, layouts: Sequence[Layout], demand: Demand) -> Sized:
    """Which layouts hold the model with one request of the full context; none of none do."""
    if not layouts:
        nothing = np.empty((0, 1))
        room = Room(pool_bytes=nothing, state_limit=nothing)
        return Sized(option=option, laid=None, room=room, lacking=(), tried=0)
    laid = laid_out(model, tuple(layouts))
    memory = size_layouts(laid, demand)
    short = np.broadcast_to(memory.shortfall_bytes, (len(layouts), 1))[:, 0]
    lacking = [place for place, lack in enumerate(short) if lack > 0]
    distance = short * laid.devices[:, 0]
    nearest_ones = nearest((layouts[one], distance[one], one) for one in lacking)
    held = tuple(one for one, lack in zip(layouts, short, strict=True) if lack <= 0)
    return Sized(
        option=option,
        laid=laid_out(model, held) if held else None,
        room=room_of(memory, short <= 0),
        lacking=[(layouts[place], float(short[place])) for place in nearest_ones],
        tried=len(layouts),
    )


def room_of(memory: PoolAnswer, held: NDArray[np.bool_]) -> Room:
    """What the engine of the layouts that are `held` has for requests."""
    pools, states = (
        np.broadcast_to(values, (len(held), 1))[held] for values in (memory.usable_pool_bytes, memory.state_limit)
    )
    return Room(pool_bytes=pools, state_limit=np.maximum(states, 1.0))


def evaluate(sized: Sequence[Sized], demand: Demand) -> list[Evaluated | None]:
    """Predict what holds the model at every number of units, in as few evaluations as can be; None where nothing does.

    Precisions and engines go into one evaluation where their layers are of the same kinds.
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, one in enumerate(sized):
        if one.laid is not None:
            groups.setdefault(likeness(machine(one.laid)), []).append(place)
    found: list[Evaluated | None] = [None] * len(sized)
    for places in groups.values():
        for place, evaluated in zip(places, _predict([sized[one] for one in places], demand), strict=True):
            found[place] = evaluated
    return found


def _predict(sized: Sequence[Sized], demand: Demand) -> Iterator[Evaluated]:
    laid = [one.laid for one in sized if one.laid is not None]
    all_of_them = together(tuple(laid))
    units = units_tried(demand, int(all_of_them.replicas_per_unit.min()))
    replicas = all_of_them.replicas_per_unit * units[None, :]
    room = Room(
        pool_bytes=np.concatenate([one.room.pool_bytes for one in sized]),
        state_limit=np.concatenate([one.room.state_limit for one in sized]),
    )
    prediction = predict_case(all_of_them.case(load_of(demand), room=room, replicas=replicas))
    with np.errstate(invalid="ignore"):  # a saturated load waits for ever: infinite less infinite
        ttft = np.broadcast_to(ttft_quantile_s(prediction, quantile=0.99), replicas.shape)
    tpot = np.broadcast_to(tpot_quantile_s(prediction, quantile=0.99, steps=demand.osl_tokens - 1.0), replicas.shape)
    miss = np.broadcast_to(worst_miss(demand, prediction, ttft, tpot), replicas.shape)
    start = 0
    for one, part in zip(sized, laid, strict=True):
        rows = slice(start, start + len(part.layouts))
        start = rows.stop
        yield Evaluated(
            option=one.option,
            layouts=part.layouts,
            packings=part.packings,
            units=units,
            prediction=_rows_of(prediction, rows),
            ttft_p99_s=ttft[rows],
            tpot_p99_s=tpot[rows],
            miss=miss[rows],
        )


def _rows_of(prediction: ServingPrediction, rows: slice) -> ServingPrediction:
    """The prediction of some of its rows; a number that all rows share stays."""
    values = {name: np.atleast_2d(getattr(prediction, name)) for name in prediction.__dataclass_fields__}
    return ServingPrediction(**{name: one[rows] if len(one) > 1 else one for name, one in values.items()})
