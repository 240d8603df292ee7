"""Which layers each pipeline stage holds, and which stage is the fullest: it decides what fits.

Every stage gets `L // pp` layers; which stages take the spare ones is the engine's rule (`Split.spare_layers`). The
first stage holds the embedding, the last one the head and the final norm.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from chipwise.parallelism.arrays import Number
from chipwise.precision import bytes_per_param

if TYPE_CHECKING:
    from chipwise.engines import SpareLayers
    from chipwise.model import Layer, ModelSpec, Weight

_LAST_STAGE_PARTS = frozenset({"head", "norm"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The fullest stage: layers of each entry of `model.layers`, copies of each outer weight."""

    layer_counts: tuple[Number, ...]
    outer_copies: tuple[Number, ...]


def stage_sizes(layers: int, pp: int, spare: SpareLayers = "before-last") -> list[int]:
    """Layers of each of `pp` stages, the spare ones by the engine's rule.

    >>> stage_sizes(61, 4), stage_sizes(62, 4), stage_sizes(32, 4)
    ([15, 15, 16, 15], [15, 16, 16, 15], [8, 8, 8, 8])
    >>> stage_sizes(62, 4, "last"), stage_sizes(62, 4, "last-each"), stage_sizes(62, 4, "first-each")
    ([15, 15, 15, 17], [15, 15, 16, 16], [16, 16, 15, 15])
    """
    each, left = divmod(layers, pp)
    if spare == "last":
        return [each] * (pp - 1) + [each + left]
    first = {"before-last": pp - 1 - left, "last-each": pp - left, "first-each": 0}[spare]
    return [each + (first <= stage < first + left) for stage in range(pp)]


def fullest_stage(model: ModelSpec, pp: Number, spare: SpareLayers = "before-last") -> Stage:
    """The stage that holds most bytes, for one `pp` or an array of them.

    Args:
        model: layers with their positions; without positions they are taken in the order of the list.
        pp: whole numbers from 1 to the number of layers.
        spare: where the engine puts the layers that do not divide.

    Returns:
        Counts with the shape of `pp`.
    """
    if isinstance(pp, int | float):
        alone = _fullest(model, max(int(pp), 1), spare)
        return Stage(layer_counts=tuple(map(float, alone[0])), outer_copies=tuple(map(float, alone[1])))
    degrees = np.asarray(pp, dtype=int)
    distinct = np.flatnonzero(np.bincount(degrees.ravel()))
    stages = [_fullest(model, max(int(one), 1), spare) for one in distinct]
    pick = np.searchsorted(distinct, degrees)
    return Stage(
        layer_counts=tuple(_spread(column, pick) for column in zip(*(one[0] for one in stages), strict=True)),
        outer_copies=tuple(_spread(column, pick) for column in zip(*(one[1] for one in stages), strict=True)),
    )


def _spread(column: tuple[int, ...], pick: np.ndarray) -> Number:
    spread: Number = np.asarray(column, dtype=float)[pick]
    return spread if np.ndim(spread) else float(spread)


@lru_cache(maxsize=1024)
def _fullest(model: ModelSpec, pp: int, spare: SpareLayers) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Layers and copies of the fullest of `pp` stages."""
    outer = [_outer_copies(weight, first=True, last=True) for weight in model.outer]
    if pp == 1:
        return tuple(layer.count for layer in model.layers), tuple(outer)
    owner, each = _positions(model), [_layer_bytes(layer) for layer in model.layers]
    best: tuple[float, list[int], list[int]] | None = None
    start = 0
    for index, size in enumerate(stage_sizes(len(owner), pp, spare)):
        held = [0] * len(model.layers)
        for entry in owner[start : start + size]:
            held[entry] += 1
        copies = [_outer_copies(one, first=index == 0, last=index == pp - 1, apart=True) for one in model.outer]
        weight = sum(n * size_bytes for n, size_bytes in zip(held, each, strict=True))
        weight += sum(n * _whole_bytes(one) for n, one in zip(copies, model.outer, strict=True))
        if best is None or weight >= best[0]:
            best = (weight, held, copies)
        start += size
    return (tuple(best[1]), tuple(best[2])) if best else ((0,) * len(model.layers), tuple(outer))


def _positions(model: ModelSpec) -> list[int]:
    """Which entry of `model.layers` stands at each position of the stack."""
    placed = [(place, entry) for entry, layer in enumerate(model.layers) for place in layer.indices]
    if len(placed) == model.layer_count:
        return [entry for _, entry in sorted(placed)]
    return [entry for entry, layer in enumerate(model.layers) for _ in range(layer.count)]


def _outer_copies(weight: Weight, *, first: bool, last: bool, apart: bool = False) -> int:
    """Copies of an outer weight on a stage; a tied head needs its own where the embedding is elsewhere."""
    if weight.part in _LAST_STAGE_PARTS:
        return int(last and (weight.stored or apart))
    return int(first and weight.stored)


def _whole_bytes(weight: Weight) -> float:
    return weight.out_features * weight.in_features * bytes_per_param(weight.format)


def _layer_bytes(layer: Layer) -> float:
    each = sum(_whole_bytes(weight) for weight in layer.weights if weight.stored)
    experts = layer.experts
    if experts:
        each += experts.routed * sum(_whole_bytes(weight) for weight in experts.weights)
    return each
