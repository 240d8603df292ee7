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
from chipwise.decide.failures import Failure
from chipwise.decide.question import FULLEST
from chipwise.decide.serving.laid import laid_out
from chipwise.decide.serving.misses import memory_failure, nearest
from chipwise.memory import PoolAnswer, ServingMemoryInput, size_pool
from chipwise.perf.load import ServingLoad, ServingPrediction
from chipwise.perf.serving import predict_serving
from chipwise.perf.spread import tpot_quantile_s, ttft_quantile_s

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    return float(found[row if found.shape[0] > 1 else 0, at if found.shape[1] > 1 else 0])


def size_layouts(laid: Laid, demand: Demand, concurrency: Floats | float = 1.0) -> PoolAnswer:
    """The memory of every layout with room for `concurrency` requests of the full context."""
    seat = laid.layouts[0].seat
    return size_pool(
        ServingMemoryInput(
            shards=laid.shards,
            capacity_bytes=laid.capacity_bytes,
            utilization=laid.utilization,
            context_tokens=demand.context_tokens,
            concurrency=concurrency,
            chunk_tokens=laid.chunk_tokens,
            whole_prompts=seat.limits.whole_prompts,
            max_num_seqs=laid.max_num_seqs,
            graph_max_batch=laid.graph_max_batch,
            nvlink=laid.nvlink,
            engine=seat.engine.name,
            kv_format=seat.limits.kv_format,
            engine_version=seat.engine.asked_version or seat.engine.version,
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
    laid = laid_out(model, tuple(layouts))
    memory = size_layouts(laid, demand)
    short = np.broadcast_to(memory.shortfall_bytes, (len(layouts), 1))[:, 0]
    lacking = [place for place, lack in enumerate(short) if lack > 0]
    refused = [
        (layouts[place], memory_failure(layouts[place], option, float(short[place])))
        for place in nearest([(layouts[one], short[one] * layouts[one].devices, one) for one in lacking])
    ]
    held = tuple(one for one, lack in zip(layouts, short, strict=True) if lack <= 0)
    if not held:
        return None, refused
    pool_bytes = np.broadcast_to(memory.kv_pool_bytes, (len(layouts), 1))[short <= 0]
    return _predict(option, laid_out(model, held), pool_bytes, demand), refused


def _predict(option: PrecisionOption, laid: Laid, pool_bytes: Floats, demand: Demand) -> Evaluated:
    units = units_tried(demand, int(laid.replicas_per_unit.min()))
    replicas = laid.replicas_per_unit * units[None, :]
    prediction = predict_serving(laid.asked(load_of(demand), pool_bytes=pool_bytes, replicas=replicas))
    with np.errstate(invalid="ignore"):  # a saturated load waits for ever: infinite less infinite
        ttft = np.broadcast_to(ttft_quantile_s(prediction, quantile=0.99), replicas.shape)
    tpot = np.broadcast_to(tpot_quantile_s(prediction, quantile=0.99, steps=demand.osl_tokens - 1.0), replicas.shape)
    return Evaluated(
        option=option,
        layouts=laid.layouts,
        packings=laid.packings,
        units=units,
        prediction=prediction,
        ttft_p99_s=ttft,
        tpot_p99_s=tpot,
        miss=np.broadcast_to(worst_miss(demand, prediction, ttft, tpot), replicas.shape),
    )
