"""The fitted numbers of the serving model, resolved for a chip and an engine from `data/calibrated.csv`.

The row of scope `all` holds a parameter's value; rows of a narrower scope (`fabric:pcie`,
`generation:hopper`, `chip:a10g`, `engine:vllm`) hold factors on it, and all that apply are multiplied. A
chip or an engine without a row takes the value of what stands above it.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources

import numpy as np

from chipwise.engines.versions import Version, at_least, parse_version
from chipwise.parallelism.arrays import Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Efficiencies (fractions of a sheet rate), latencies and overheads. Every field broadcasts."""

    compute_fraction: Number
    """Of the dense peak, reached by GEMMs."""
    moe_compute_fraction: Number
    """Of the dense peak, reached by the grouped GEMMs of routed experts."""
    widened_fraction: Number
    """Of the compute rate, where weights are widened before they are multiplied (int4 on bf16 units)."""
    attention_compute_fraction: Number
    """Of the dense peak, reached by prefill attention."""
    bandwidth_fraction: Number
    """Of the sheet memory bandwidth, reached when weights are streamed."""
    narrow_fraction: Number
    """Of that bandwidth, reached when weights of 4 bits and their scales are streamed."""
    cache_bandwidth_fraction: Number
    """Of the sheet memory bandwidth, reached when decode attention reads the cache."""
    link_fraction: Number
    """Of the sheet link rate, reached by collectives."""
    network_fraction: Number
    """Of the sheet rate of the network between nodes, reached by collectives and sends."""
    ring_fraction: Number
    """1: an all-reduce passes the links as a ring does; 0: the switches of the node reduce, in one passage."""
    collective_s: Number
    """One all-reduce of nothing among the devices of a node: launch, synchronisation, skew."""
    hop_s: Number
    """Added by each device beyond the second: a ring is longer, a switch has more peers to wait for."""
    network_s: Number
    """One collective of nothing over the network."""
    gap_s: Number
    """Per kernel of a layer and step: the gap that a CUDA graph leaves between two kernels."""
    moe_layer_s: Number
    """Added for a layer that routes: gate, sort, permute."""
    prefill_step_s: Number
    """Added to a step that carries prefill tokens: batch metadata, no whole-model CUDA graph."""
    prefill_kernel_s: Number
    """Added per kernel of a layer to such a step."""
    eager_kernel_s: Number
    """Per kernel of a layer when kernels are launched one by one (eager mode); beats `gap_s` where it is
    longer."""
    step_s: Number
    """Per step: schedule, prepare inputs, sample, post-process."""
    sequence_s: Number
    """Per sequence in a step."""
    request_s: Number
    """Per request before its first step: HTTP, tokenizer, admission."""
    prompt_token_s: Number
    """Per prompt token and request before its first step: tokenizer, block hashing."""
    burst_fraction: Number
    """Share of the requests of a closed loop that wait in the burst with which it starts."""
    mixed_fraction: Number
    """1: prefill tokens ride in decode steps; 0: they get steps of their own, and decodes wait."""
    exact_fraction: Number
    """1: lengths are computed as they come; 0: as graphs were compiled for, the next power of two."""
    expert_imbalance: Number
    """Tokens of the fullest expert-parallel device over the mean."""
    expert_variance: Number
    """How unevenly tokens choose experts: variance of an expert's popularity over its squared mean; 0: all alike."""
    expert_tile_tokens: Number
    """Tokens that a tile of an expert's GEMM holds; those that are not there are computed too."""
    array_lanes: Number
    """Rows and columns of an expert's piece are computed in whole multiples of this."""
    host_copy_s: Number
    """Sampling on the host, per logit of a computed sequence: gathered and copied there."""
    host_sample_s: Number
    """Sampling on the host, per logit of a sampled sequence."""
    reserve_fraction: Number
    """Of the output still to come, how much the scheduler holds free in the cache for each running
    request."""


NAMES = tuple(one.name for one in fields(Parameters))


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterRow:
    """One line of `calibrated.csv`."""

    name: str
    scope: str
    value: float
    kind: str
    source: str


@cache
def table() -> dict[tuple[str, str], ParameterRow]:
    """Every calibrated row, by (name, scope)."""
    text = resources.files("chipwise.perf").joinpath("data/calibrated.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return {
        (row["name"], row["scope"]): ParameterRow(
            name=row["name"],
            scope=row["scope"],
            value=float(row["value"]),
            kind=row["kind"],
            source=row["source"],
        )
        for row in rows
    }


@cache
def _runtimes() -> tuple[tuple[str, Version | None, str], ...]:
    text = resources.files("chipwise.perf").joinpath("data/runtimes.csv").read_text(encoding="utf-8")
    return tuple(
        (row["engine"], parse_version(row["below_version"]), row["runtime"])
        for row in csv.DictReader(text.splitlines())
    )


def runtime_of(engine: str, version: str | None) -> str:
    """What runs under an engine's name at a version; rewrites of an engine are runtimes of their own.

    An unknown version counts as current. Versions of one runtime are not told apart: too few measurements tell them
    apart from the models they were measured with.

    >>> runtime_of("vllm", "0.6.3"), runtime_of("vllm", "0.11.0"), runtime_of("sglang", None)
    ('vllm-v0', 'vllm', 'sglang')
    """
    known = parse_version(version) if version else None
    for name, below, runtime in _runtimes():
        if name == engine and (below is None or (known is not None and not at_least(known, below))):
            return runtime
    return engine


def scopes_of(*, chip: str, generation: str, engine: str, fabric: str) -> tuple[str, ...]:
    """The scopes whose factors apply to a chip, joined by a fabric, under an engine.

    >>> scopes_of(chip="h100-sxm", generation="hopper", engine="vllm", fabric="nvswitch")
    ('fabric:nvswitch', 'generation:hopper', 'chip:h100-sxm', 'engine:vllm')
    """
    return (f"fabric:{fabric}", f"generation:{generation}", f"chip:{chip}", f"engine:{engine}")


def capped(name: str, value: Number) -> Number:
    """A fraction is at most 1: nothing runs faster than the sheet says. Every other parameter is as it is.

    >>> float(capped("bandwidth_fraction", 1.2))
    1.0
    """
    return np.minimum(value, 1.0) if name.endswith("_fraction") else value


@cache
def parameters_for(*, chip: str, generation: str, engine: str, fabric: str = "nvswitch") -> Parameters:
    """The parameters of one chip, joined by `fabric`, under one runtime (`runtime_of`)."""
    known = table()
    scopes = scopes_of(chip=chip, generation=generation, engine=engine, fabric=fabric)
    values: dict[str, Number] = {}
    for name in NAMES:
        factors = (known[name, scope].value for scope in scopes if (name, scope) in known)
        values[name] = float(capped(name, known[name, "all"].value * math.prod(factors)))
    return Parameters(**values)


def stack_parameters(parameters: Sequence[Parameters]) -> Parameters:
    """Many sets of parameters as one whose fields are arrays."""
    return Parameters(**{name: np.array([getattr(one, name) for one in parameters], dtype=float) for name in NAMES})
