"""The fewest chips that hold a model, and what to change where it does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from chipwise.memory.answer import MemoryAnswer, PoolAnswer
from chipwise.memory.serving import (
    ServingMemoryInput,
    Sized,
    holds,
    pool_of,
    sized,
)
from chipwise.model import ModelSpec
from chipwise.parallelism import Split, legal_tp, shard
from chipwise.precision import with_precision
from chipwise.precision.formats import kv_bytes_per_element

if TYPE_CHECKING:
    from chipwise.engines import SpareLayers
    from chipwise.parallelism import LayerShards

_MOST_PROPOSED = 2
_LEAST_FRACTION = 1e-3
"""What a change must free of a chip to be worth naming."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change: what it frees on a chip and what it costs. `enough`: it fits by this alone."""

    change: str
    frees_bytes: float
    costs: str
    enough: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """What may be changed: formats legal for the model on the chip, degrees, other chips by capacity."""

    kv_format: str | None = "fp8"
    weight_formats: tuple[str, ...] = ("fp8",)
    most_tp: int = 8
    """Devices of one node."""
    most_stages: int = 8
    """Nodes that one replica may span; 1 with `most_tp` 1: a part of a chip, which talks to no other."""
    most_utilization: float | None = 0.95
    """The share of a device that an engine is asked to fill at most; None: as it is set."""
    bigger_parts_bytes: Mapping[str, float] = field(default_factory=dict)
    """Larger slices or fractions of the same chip, by name; the two smallest that hold the model are proposed."""
    bigger_chips_bytes: Mapping[str, float] = field(default_factory=dict)
    """Other chips, in the same way."""
    draft: ModelSpec | None = None
    """The draft model that is laid over the same devices."""


def _laid(model: ModelSpec, asked: ServingMemoryInput, split: Split, may: FitOptions) -> ServingMemoryInput:
    """The question over another split, the draft model with it."""
    draft = asked.draft if may.draft is None else shard(may.draft, split)
    return replace(asked, shards=shard(model, split), draft=draft)


def ways_of(model: ModelSpec, asked: ServingMemoryInput, may: FitOptions | None = None) -> Sized | None:
    """The model sized over every legal split at once, the fewest devices first; None where no tp is legal.

    tp goes up to the devices of one node, pp up to as many stages as may be; of equal counts the smaller pp comes
    first.
    """
    may = may or FitOptions()
    ways = _ways(model, may.most_tp, may.most_stages, asked.shards.split.spare_layers)
    if ways is None:
        return None
    draft = asked.draft if may.draft is None else shard(may.draft, ways.split)
    return sized(replace(asked, shards=ways, draft=draft))


def min_split(ways: Sized | None) -> Split | None:
    """The first of `ways_of` that holds the model and the stated cache; None: none does."""
    if ways is None:
        return None
    good = np.flatnonzero(holds(ways))
    if not good.size:
        return None
    split = ways.asked.shards.split
    tp, pp = (int(np.asarray(degrees)[good[0]]) for degrees in (split.tp, split.pp))
    return Split(tp=tp, pp=pp)


@lru_cache(maxsize=256)
def _ways(model: ModelSpec, most_tp: int, most_stages: int, spare_layers: SpareLayers) -> LayerShards | None:
    """The model over every legal tp and pp, the fewest devices first; None where no tp is legal."""
    stages = min(most_stages, max(model.layer_count, 1))
    pairs = [(tp, pp) for tp in legal_tp(model, most_tp) for pp in range(1, stages + 1)]
    if not pairs:
        return None
    pairs.sort(key=lambda pair: (pair[0] * pair[1], pair[1]))
    tp, pp = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    return shard(model, Split(tp=tp, pp=pp, spare_layers=spare_layers))


def min_chips(ways: Sized | None) -> int | None:
    """Chips of `min_split`: devices over devices a chip, rounded up; None where no split holds the model."""
    split = min_split(ways)
    return None if ways is None or split is None else -(-int(split.devices) // ways.asked.devices_per_chip)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedChange:
    """A change to a layout, sized but for its load."""

    change: str
    costs: str
    sized: Sized
    larger: bool = False
    """A larger slice or chip: the smallest two that suffice are named, and none that does not."""


def changes_of(model: ModelSpec, asked: ServingMemoryInput, may: FitOptions | None = None) -> tuple[SizedChange, ...]:
    """Changes that could free memory under any load, in the order of what they cost.

    KV cache in 8 bits, narrower weights, a larger share of the device, no graphs, twice the tensor parallelism, a
    bigger slice or chip. Each is sized alone.

    Args:
        model: at the precision asked.
        asked: the layout, under any load.
        may: what may be changed.
    """
    may = may or FitOptions()
    return (
        *_formats(model, asked, may),
        *_settings(asked, may),
        *_wider(model, asked, may),
        *_bigger(asked, may.bigger_parts_bytes, "room for fewer tenants on the GPU"),
        *_bigger(asked, may.bigger_chips_bytes, "another instance"),
    )


def _settings(asked: ServingMemoryInput, may: FitOptions) -> Iterator[SizedChange]:
    if may.most_utilization is not None and float(asked.utilization) < may.most_utilization:
        fuller = sized(replace(asked, utilization=may.most_utilization))
        costs = "less room for graphs and for other processes"
        yield SizedChange(change=f"fill {may.most_utilization:g} of the memory", costs=costs, sized=fuller)
    if not asked.eager:
        eager = sized(replace(asked, eager=True))
        yield SizedChange(change="no graphs (eager)", costs="slower decoding", sized=eager)


def _formats(model: ModelSpec, asked: ServingMemoryInput, may: FitOptions) -> Iterator[SizedChange]:
    if may.kv_format and kv_bytes_per_element(may.kv_format) < kv_bytes_per_element(asked.kv_format):
        narrow = sized(replace(asked, kv_format=may.kv_format))
        yield SizedChange(change=f"hold the KV cache in {may.kv_format}", costs="a small loss of quality", sized=narrow)
    for name in may.weight_formats:
        shards = shard(with_precision(model, name), asked.shards.split)
        narrow = sized(replace(asked, shards=shards))
        yield SizedChange(change=f"hold the weights in {name}", costs="some loss of quality", sized=narrow)


def _wider(model: ModelSpec, asked: ServingMemoryInput, may: FitOptions) -> Iterator[SizedChange]:
    """Twice the tensor parallelism inside a node, beyond one twice the pipeline stages."""
    split = asked.shards.split
    tp, pp = int(split.tp) * 2, int(split.pp) * 2
    if tp in legal_tp(model, may.most_tp):
        wider, name = replace(split, tp=tp), f"tp {int(split.tp)} to {tp}"
    elif pp <= min(may.most_stages, model.layer_count):
        wider, name = replace(split, pp=pp), f"pp {int(split.pp)} to {pp}"
    else:
        return
    yield SizedChange(change=name, costs="twice the chips", sized=sized(_laid(model, asked, wider, may)))


def _bigger(asked: ServingMemoryInput, sizes_bytes: Mapping[str, float], costs: str) -> Iterator[SizedChange]:
    for size, name in sorted((size, name) for name, size in sizes_bytes.items()):
        yield SizedChange(change=name, costs=costs, sized=sized(replace(asked, capacity_bytes=size)), larger=True)


def to_make_it_fit(one: Sized, before: MemoryAnswer, tried: Sequence[SizedChange]) -> list[Change]:
    """Which `changes_of` a layout help it under its load, and two of the load itself; empty where it fits already.

    One that frees next to nothing is left out; a shorter context and fewer requests stand before larger slices and
    chips.

    Args:
        one: what does not fit.
        before: `answer_of(one)`.
        tried: `changes_of` the layout.
    """
    if before.fits:
        return []
    load = {"context_tokens": one.context_tokens, "concurrency": one.concurrency}
    found = [_change(each.change, each.costs, before, pool_of(each.sized.under(**load))) for each in tried]
    settings = [change for each, change in zip(tried, found, strict=True) if not each.larger]
    larger = [change for each, change in zip(tried, found, strict=True) if each.larger and change.enough]
    changes = [*settings, *_shorter(one, before), *_smallest(larger)]
    least = _LEAST_FRACTION * float(one.asked.capacity_bytes)
    return [change for change in changes if change.frees_bytes > least]


def _smallest(larger: Sequence[Change]) -> Iterator[Change]:
    """Of larger slices, then of larger chips, the first few."""
    for costs in dict.fromkeys(change.costs for change in larger):
        yield from [change for change in larger if change.costs == costs][:_MOST_PROPOSED]


def _shorter(one: Sized, before: MemoryAnswer) -> Iterator[Change]:
    context, concurrency = one.context_tokens, one.concurrency
    tokens = int(before.longest_context)
    if 0 < tokens < int(context):
        after = pool_of(one.under(context_tokens=tokens, concurrency=concurrency))
        yield _change(f"context of {tokens} tokens", "longer requests are refused", before, after)
    requests = int(before.max_concurrency_at_context)
    if 0 < requests < int(concurrency):
        after = pool_of(one.under(context_tokens=context, concurrency=requests))
        yield _change(f"{requests} requests in flight", "the others wait", before, after)


def _change(name: str, costs: str, before: MemoryAnswer, after: PoolAnswer) -> Change:
    return Change(change=name, frees_bytes=_gain(before, after), costs=costs, enough=bool(after.fits))


def _gain(before: MemoryAnswer, after: PoolAnswer) -> float:
    """Bytes a chip gains: what its shortfall shrinks by and its free memory grows by."""
    lost = float(before.shortfall_bytes) - float(after.shortfall_bytes)
    return lost + float(after.budget.free_bytes) - float(before.budget.free_bytes)
