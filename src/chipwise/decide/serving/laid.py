"""Layouts of one engine as rows, with all about them that no load changes: worked out once, then remembered.

A page asks about one model again and again while its sliders move: only the load is new each time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from chipwise.capacity import Packing, pack
from chipwise.engines import spare_layers
from chipwise.memory import ServingMemoryInput, Sized, sized
from chipwise.parallelism import Split, shard
from chipwise.perf.hardware import stack
from chipwise.perf.load import Seating, ServingInput, ServingLoad, case_of, site_of, with_machine
from chipwise.perf.machine import machine_of
from chipwise.perf.parameters import stack_parameters
from chipwise.perf.side_by_side import side_by_side
from chipwise.precision import bytes_per_param, kv_bytes_per_element

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from chipwise.decide.serving.seats import Layout
    from chipwise.model import ModelSpec
    from chipwise.parallelism import LayerShards
    from chipwise.perf.hardware import Hardware
    from chipwise.perf.load import Case
    from chipwise.perf.machine import Machine
    from chipwise.perf.parameters import Parameters

    Floats = NDArray[np.float64]

KEPT = 256
"""Sets of layouts that are remembered: about ten questions' worth."""
IDLE = ServingLoad(kind="single", isl=1.0, osl=1.0)
"""Stands where no load is asked yet."""


def column(values: Iterable[float]) -> Floats:
    """One value a row."""
    return np.array(list(values), dtype=float)[:, None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Room:
    """What the engine of each layout has for requests, columns."""

    pool_bytes: Floats
    """What of its cache they fill."""
    state_limit: Floats
    """How many of them it has recurrent states for; infinite without such a limit."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Laid:
    """A model over the splits of layouts, a row each, and how their engine is set; columns throughout."""

    layouts: tuple[Layout, ...]
    shards: LayerShards
    capacity_bytes: Floats
    utilization: Floats
    chunk_tokens: Floats
    max_num_seqs: Floats
    graph_max_batch: Floats
    nvlink: NDArray[np.bool_]
    devices: Floats
    """Of one replica."""
    packings: tuple[Packing, ...]
    replicas_per_unit: Floats

    def asked(self, load: ServingLoad, *, room: Room, replicas: Floats) -> ServingInput:
        """What perf is asked about every layout with `replicas` (rows by columns) copies that share the load.

        Args:
            load: totals for the deployment.
            room: what the engine of each has for requests.
            replicas: copies.
        """
        idle = _idle(self)
        most = np.minimum(idle.max_num_seqs, room.state_limit)
        return replace(idle, load=load, kv_pool_bytes=room.pool_bytes, max_num_seqs=most, replicas=replicas)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Together:
    """Several `Laid` as one, row under row: of other precisions, or under other engines."""

    machine: Machine
    max_num_seqs: Floats
    chunk_tokens: Floats
    replicas_per_unit: Floats

    def case(self, load: ServingLoad, *, room: Room, replicas: Floats) -> Case:
        """What perf is asked about every layout, as `Laid.asked`."""
        most = np.minimum(self.max_num_seqs, room.state_limit)
        seating = Seating(kv_pool_bytes=room.pool_bytes, max_num_seqs=most, chunk_tokens=self.chunk_tokens)
        return case_of(self.machine, seating, load, replicas=replicas)


@lru_cache(maxsize=KEPT)
def together(parts: tuple[Laid, ...]) -> Together:
    """`parts` in their order; they are alike (`likeness`)."""
    return Together(
        machine=side_by_side([machine(one) for one in parts], [len(one.layouts) for one in parts]),
        max_num_seqs=np.concatenate([one.max_num_seqs for one in parts]),
        chunk_tokens=np.concatenate([one.chunk_tokens for one in parts]),
        replicas_per_unit=np.concatenate([one.replicas_per_unit for one in parts]),
    )


def machine(laid: Laid) -> Machine:
    """What every layout of `laid` runs on."""
    return _idle(laid).machine or machine_of(site_of(_idle(laid)))


@lru_cache(maxsize=KEPT)
def laid_out(model: ModelSpec, layouts: tuple[Layout, ...]) -> Laid:
    """The model over the splits of `layouts`; one engine at one version runs all of them."""
    packings = tuple(_packed(one) for one in layouts)
    limits = [one.seat.limits for one in layouts]
    return Laid(
        layouts=layouts,
        shards=shard(model, split_of(layouts)),
        capacity_bytes=column(one.seat.platform.device_memory_bytes for one in layouts),
        utilization=column(one.utilization for one in limits),
        chunk_tokens=column(one.chunk_tokens for one in limits),
        max_num_seqs=column(one.max_num_seqs for one in limits),
        graph_max_batch=column(one.graph_max_batch for one in limits),
        nvlink=column(one.seat.fast_link for one in layouts) > 0,
        devices=column(one.devices for one in layouts),
        packings=packings,
        replicas_per_unit=column(one.replicas_per_unit for one in packings),
    )


def _packed(layout: Layout) -> Packing:
    return pack(
        devices_per_replica=layout.devices,
        devices_per_instance=layout.seat.platform.devices,
        most_replicas=layout.most_replicas,
    )


def split_of(layouts: Sequence[Layout]) -> Split:
    """The splits of all layouts as one whose degrees are columns."""
    names = ("tp", "pp", "ep", "dp", "cp")
    degrees = {name: column(float(getattr(one.split, name)) for one in layouts) for name in names}
    return Split(**degrees, spare_layers=spare_layers(layouts[0].seat.engine))


@lru_cache(maxsize=KEPT)
def memory_of(laid: Laid) -> Sized:
    """What every layout takes, but for the load."""
    seat = laid.layouts[0].seat
    return sized(
        ServingMemoryInput(
            shards=laid.shards,
            capacity_bytes=laid.capacity_bytes,
            utilization=laid.utilization,
            context_tokens=1.0,
            concurrency=1.0,
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


@lru_cache(maxsize=KEPT)
def _idle(laid: Laid) -> ServingInput:
    """What perf is asked of every layout, but for the load."""
    hardware, parameters = _stood_on(laid.layouts)
    idle = ServingInput(
        shards=laid.shards,
        hardware=hardware,
        parameters=parameters,
        weight_bytes={name: bytes_per_param(name) for name in hardware.gemm_flops_per_s},
        kv_element_bytes=kv_bytes_per_element(laid.layouts[0].seat.limits.kv_format),
        kv_pool_bytes=0.0,
        max_num_seqs=laid.max_num_seqs,
        chunk_tokens=laid.chunk_tokens,
        load=IDLE,
    )
    return with_machine(idle)


def _stood_on(layouts: Sequence[Layout]) -> tuple[Hardware, Parameters]:
    """What every layout stands on, a row each: the few seats are stacked once, and rows pick among them."""
    places: dict[int, int] = {}
    rows = [places.setdefault(id(one.seat), len(places)) for one in layouts]
    seats = {id(one.seat): one.seat for one in layouts}
    hardware = stack([seats[key].hardware for key in places])
    parameters = stack_parameters([seats[key].parameters for key in places])
    return replace(hardware, **_tall(hardware, rows)), replace(parameters, **_tall(parameters, rows))


def _tall(stacked: Hardware | Parameters, rows: list[int]) -> dict[str, Any]:
    """Every array field at `rows` as a column, in mappings too."""
    values = {name: getattr(stacked, name) for name in stacked.__dataclass_fields__}
    return {
        name: {key: one[rows, None] for key, one in value.items()} if isinstance(value, dict) else value[rows, None]
        for name, value in values.items()
    }


def nearest(missed: Iterable[tuple[Layout, float, int]]) -> list[int]:
    """Of layouts with how far they miss and their places: the place of the nearest one of each platform."""
    least: dict[int, tuple[float, int]] = {}
    for layout, distance, place in missed:
        platform = id(layout.seat.platform)
        if platform not in least or distance < least[platform][0]:
            least[platform] = (distance, place)
    return [place for _, place in least.values()]
