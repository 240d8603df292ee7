"""Machines of different models, formats and engines as one, row under row: one evaluation answers for all of them.

What machines hold is numbers; what is none (a kind of cache, how many experts there are) parts them (`likeness`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from chipwise.parallelism import CacheShard, Number
from chipwise.perf.costs import Costs, ExpertCosts, LayerCosts, Streams, stacked
from chipwise.perf.machine import Machine
from chipwise.perf.parameters import NAMES, Parameters

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

CACHE_NUMBERS = frozenset({"query_heads", "kv_heads", "elements_per_token", "state_bytes_per_sequence"})
CACHE_WORDS = tuple(one.name for one in fields(CacheShard) if one.name not in CACHE_NUMBERS)

Under = Callable[[Sequence[Number]], Number]


def likeness(machine: Machine) -> tuple[object, ...]:
    """What machines must have in common to be joined: their layers' kinds, and a vocabulary."""
    return (machine.vocab_size, *(_kind(layer) for layer in machine.costs.layers))


def _kind(layer: LayerCosts) -> tuple[object, ...]:
    experts = layer.experts
    routing = None if experts is None else (experts.routed, experts.per_token)
    return (routing, *(getattr(layer.cache, name) for name in CACHE_WORDS))


def side_by_side(machines: Sequence[Machine], rows: Sequence[int]) -> Machine:
    """One machine whose numbers are columns: those of the first in `rows[0]` rows, those of the next under them.

    Its steps take as long as those of each; single operations are no longer told apart (`Costs.linear` is empty).

    Args:
        machines: alike (`likeness`), each of one site or of a column of them.
        rows: how many rows each has.
    """
    under = partial(_under, rows=rows)
    numbers = (
        *("pp", "dp", "cp", "bytes_per_s", "cache_bytes_per_s", "attention_flops_per_s", "kv_element_bytes"),
        *("compiled_sequences", "host_sampling"),
    )
    return Machine(
        costs=_costs([one.costs for one in machines], under),
        parameters=Parameters(**{name: under([getattr(one.parameters, name) for one in machines]) for name in NAMES}),
        vocab_size=machines[0].vocab_size,
        dimensions=2,
        **{name: under([getattr(one, name) for one in machines]) for name in numbers},
    )


def _under(values: Sequence[Number], *, rows: Sequence[int]) -> Number:
    """Values as one column; a number that all share stays one."""
    if all(isinstance(value, float) and value == values[0] for value in values):
        return values[0]
    return np.concatenate([np.broadcast_to(value, (count, 1)) for value, count in zip(values, rows, strict=True)])


def _costs(costs: Sequence[Costs], under: Under) -> Costs:
    with_prompts, without = zip(*(one.launches_s for one in costs), strict=True)
    return Costs(
        streams=_streams([one.streams for one in costs], under),
        head=_streams([one.head for one in costs], under),
        layers=tuple(_layer(ones, under) for ones in zip(*(one.layers for one in costs), strict=True)),
        linear=(),
        launches_s=(under(with_prompts), under(without)),
        fixed_s=under([one.fixed_s for one in costs]),
        token_s=under([one.token_s for one in costs]),
    )


def _streams(streams: Sequence[Streams], under: Under) -> Streams:
    """Matrices in their order; a site that has fewer of them has nothing there."""
    most = max(streams, key=lambda one: len(one.operations)).operations

    def side(name: str) -> Floats:
        sides = [getattr(one, name) for one in streams]
        return stacked([under([one[at] if at < len(one) else 0.0 for one in sides]) for at in range(len(most))])

    return Streams(operations=most, compute_s=side("compute_s"), weights_s=side("weights_s"), moved_s=side("moved_s"))


def _layer(layers: Sequence[LayerCosts], under: Under) -> LayerCosts:
    cache = layers[0].cache
    held: dict[str, Any] = {name: under([getattr(one.cache, name) for one in layers]) for name in CACHE_NUMBERS}
    return LayerCosts(
        count=under([one.count for one in layers]),
        cache=replace(cache, **held),
        experts=_experts([one.experts for one in layers if one.experts is not None], under),
    )


def _experts(experts: Sequence[ExpertCosts], under: Under) -> ExpertCosts | None:
    if not experts:
        return None
    numbers = ("local", "skew", "compute_s", "moved_s", "read_s")
    held: dict[str, Any] = {name: under([getattr(one, name) for one in experts]) for name in numbers}
    return replace(experts[0], **held)
