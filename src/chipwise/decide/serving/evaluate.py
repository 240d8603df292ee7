"""Memory and performance of many layouts at many sizes of deployment, in one pass of array arithmetic.

Rows are layouts, columns are units of purchase: a unit is the smallest set of whole instances that holds whole
replicas. An engine queues what does not fit at once, so a layout must hold one request of the full context, and the
bars decide the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from chipwise.capacity import Packing, pack
from chipwise.decide.failures import Failure
from chipwise.decide.question import FULLEST
from chipwise.decide.serving.misses import memory_failure, nearest
from chipwise.engines import spare_layers
from chipwise.memory import PoolAnswer, ServingMemoryInput, size_pool
from chipwise.parallelism import Split, shard
from chipwise.perf.hardware import stack
from chipwise.perf.load import ServingInput, ServingLoad, ServingPrediction
from chipwise.perf.parameters import stack_parameters
from chipwise.perf.serving import predict_serving
from chipwise.perf.spread import tpot_quantile_s, ttft_quantile_s
from chipwise.precision import bytes_per_param, kv_bytes_per_element

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from chipwise.decide.question import Demand
    from chipwise.decide.serving.seats import Layout
    from chipwise.model import ModelSpec
    from chipwise.parallelism import LayerShards
    from chipwise.perf.hardware import Hardware
    from chipwise.perf.parameters import Parameters
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


def column(values: Sequence[float]) -> Floats:
    """One value a row."""
    return np.array(values, dtype=float)[:, None]


def element(values: Floats | float, row: int, at: int) -> float:
    """One of values that broadcast over rows and columns.

    >>> element(np.array([[1.0], [2.0]]), 1, 7), element(3.0, 0, 0)
    (2.0, 3.0)
    """
    found = np.atleast_2d(values)
    return float(found[row if found.shape[0] > 1 else 0, at if found.shape[1] > 1 else 0])


def split_of(layouts: Sequence[Layout]) -> Split:
    """The splits of all layouts as one whose degrees are columns."""
    names = ("tp", "pp", "ep", "dp", "cp")
    degrees = {name: column([float(getattr(one.split, name)) for one in layouts]) for name in names}
    return Split(**degrees, spare_layers=spare_layers(layouts[0].seat.engine))


def size_layouts(
    shards: LayerShards, layouts: Sequence[Layout], demand: Demand, concurrency: Floats | float = 1.0
) -> PoolAnswer:
    """The memory of every layout with room for `concurrency` requests of the full context; one engine for all."""
    engine = layouts[0].seat.engine
    return size_pool(
        ServingMemoryInput(
            shards=shards,
            capacity_bytes=column([one.seat.platform.device_memory_bytes for one in layouts]),
            utilization=column([one.seat.limits.utilization for one in layouts]),
            context_tokens=demand.context_tokens,
            concurrency=concurrency,
            chunk_tokens=column([one.seat.limits.chunk_tokens for one in layouts]),
            whole_prompts=layouts[0].seat.limits.whole_prompts,
            max_num_seqs=column([one.seat.limits.max_num_seqs for one in layouts]),
            graph_max_batch=column([one.seat.limits.graph_max_batch for one in layouts]),
            nvlink=column([float(one.seat.fast_link) for one in layouts]) > 0,
            engine=engine.name,
            kv_format=layouts[0].seat.limits.kv_format,
            engine_version=engine.asked_version or engine.version,
        )
    )


def load_of(demand: Demand) -> ServingLoad:
    """The demand as perf asks it: totals for the deployment."""
    return ServingLoad(
        kind=demand.kind,
        isl=demand.isl_tokens,
        osl=demand.osl_tokens,
        concurrency=demand.users,
        rate_per_s=demand.rate_per_s,
        batch=demand.users,
    )


def _tall(stacked: Hardware | Parameters, rows: list[int]) -> dict[str, Any]:
    """Every array field at `rows` as a column, in mappings too."""
    values = {name: getattr(stacked, name) for name in stacked.__dataclass_fields__}
    return {
        name: {key: one[rows, None] for key, one in value.items()} if isinstance(value, dict) else value[rows, None]
        for name, value in values.items()
    }


def _machines(layouts: Sequence[Layout]) -> tuple[Hardware, Parameters]:
    """What every layout stands on, a row each: the few seats are stacked once, and rows pick among them."""
    places: dict[int, int] = {}
    rows = [places.setdefault(id(one.seat), len(places)) for one in layouts]
    seats = {id(one.seat): one.seat for one in layouts}
    hardware = stack([seats[key].hardware for key in places])
    parameters = stack_parameters([seats[key].parameters for key in places])
    return replace(hardware, **_tall(hardware, rows)), replace(parameters, **_tall(parameters, rows))


def serving_input(
    shards: LayerShards, layouts: Sequence[Layout], pool_bytes: Floats, demand: Demand, replicas: Floats
) -> ServingInput:
    """What perf is asked about every layout with `replicas` (rows by columns) copies that share the load.

    Args:
        shards: the model over the splits of the layouts.
        layouts: one a row.
        pool_bytes: what the engine of each takes for the cache, a column.
        demand: the load.
        replicas: copies.
    """
    hardware, parameters = _machines(layouts)
    return ServingInput(
        shards=shards,
        hardware=hardware,
        parameters=parameters,
        weight_bytes={name: bytes_per_param(name) for name in hardware.gemm_flops_per_s},
        kv_element_bytes=kv_bytes_per_element(layouts[0].seat.limits.kv_format),
        kv_pool_bytes=pool_bytes,
        max_num_seqs=column([one.seat.limits.max_num_seqs for one in layouts]),
        chunk_tokens=column([one.seat.limits.chunk_tokens for one in layouts]),
        load=load_of(demand),
        replicas=replicas,
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


def evaluate(
    model: ModelSpec, option: PrecisionOption, layouts: Sequence[Layout], demand: Demand
) -> tuple[Evaluated | None, list[tuple[Layout, Failure]]]:
    """Size every layout; predict those that hold the model at every number of units.

    Returns:
        The layouts that hold it, evaluated (None where none does); of the others on each platform the one that lacked
        least.
    """
    shards = shard(model, split_of(layouts))
    memory = size_layouts(shards, layouts, demand)
    short = np.broadcast_to(memory.shortfall_bytes, (len(layouts), 1))[:, 0]
    lacking = [place for place, lack in enumerate(short) if lack > 0]
    refused = [
        (layouts[place], memory_failure(layouts[place], option, float(short[place])))
        for place in nearest([(layouts[one], short[one] * layouts[one].devices, one) for one in lacking])
    ]
    held = [one for one, lack in zip(layouts, short, strict=True) if lack <= 0]
    if not held:
        return None, refused
    if lacking:
        shards = shard(model, split_of(held))
    pool_bytes = np.broadcast_to(memory.kv_pool_bytes, (len(layouts), 1))[short <= 0]
    return _predict(option, (shards, held), pool_bytes, demand), refused


def _packed(layout: Layout) -> Packing:
    return pack(
        devices_per_replica=layout.devices,
        devices_per_instance=layout.seat.platform.devices,
        most_replicas=layout.most_replicas,
    )


def _predict(
    option: PrecisionOption, laid: tuple[LayerShards, Sequence[Layout]], pool_bytes: Floats, demand: Demand
) -> Evaluated:
    shards, layouts = laid
    packings = [_packed(one) for one in layouts]
    units = units_tried(demand, min(one.replicas_per_unit for one in packings))
    replicas = column([float(one.replicas_per_unit) for one in packings]) * units[None, :]
    prediction = predict_serving(serving_input(shards, layouts, pool_bytes, demand, replicas))
    with np.errstate(invalid="ignore"):  # a saturated load waits for ever: infinite less infinite
        ttft = np.broadcast_to(ttft_quantile_s(prediction, quantile=0.99), replicas.shape)
    tpot = np.broadcast_to(tpot_quantile_s(prediction, quantile=0.99, steps=demand.osl_tokens - 1.0), replicas.shape)
    return Evaluated(
        option=option,
        layouts=layouts,
        packings=packings,
        units=units,
        prediction=prediction,
        ttft_p99_s=ttft,
        tpot_p99_s=tpot,
        miss=np.broadcast_to(worst_miss(demand, prediction, ttft, tpot), replicas.shape),
    )
