"""Where a step runs: the work of a device at its reachable rates, worked out once for all steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.parallelism import Number
from chipwise.perf.costs import Costs, costs_of
from chipwise.perf.parameters import NAMES, Parameters
from chipwise.perf.rates import Site, rates_of

NARROW_BYTES = 0.75
"""A weight format of fewer bytes a parameter is narrow: its scales and small tiles are streamed less well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A laid-out model on a device, with all that a step needs to know."""

    costs: Costs
    parameters: Parameters
    pp: Number
    dp: Number
    cp: Number
    vocab_size: int
    bytes_per_s: Number
    """Of the memory, reached when weights and activations are streamed."""
    cache_bytes_per_s: Number
    """Of the memory, reached when the cache is read."""
    attention_flops_per_s: Number
    kv_element_bytes: Number
    compiled_sequences: Number
    """Sequences that a decode step of a replica computes at least: the batch of a compiled graph, else 0."""
    host_sampling: Number
    """1: tokens are sampled on the host; 0: on the device."""
    dimensions: int
    """Axes of the widest of all these numbers: 0 for one site, 1 or 2 for many."""


def machine_of(site: Site) -> Machine:
    """Work out the reachable rates of a site, and what a step costs there.

    Raises:
        KeyError: a weight format of the model has no rate or no size.
    """
    rates, work = rates_of(site), site.work
    weight_bytes = {name: _counted_bytes(site, name, size) for name, size in site.weight_bytes.items()}
    costs = costs_of(site, rates, weight_bytes)
    return Machine(
        costs=costs,
        parameters=site.parameters,
        pp=work.pp,
        dp=work.dp,
        cp=work.cp,
        vocab_size=work.vocab_size,
        bytes_per_s=rates.bytes_per_s,
        cache_bytes_per_s=rates.cache_bytes_per_s,
        attention_flops_per_s=rates.attention_flops_per_s,
        kv_element_bytes=site.kv_element_bytes,
        compiled_sequences=site.compiled_sequences,
        host_sampling=site.host_sampling,
        dimensions=_dimensions(site, costs),
    )


def _dimensions(site: Site, costs: Costs) -> int:
    work, hardware = site.work, site.hardware
    numbers = (work.tp, work.pp, work.ep, work.dp, work.cp, hardware.attention_flops_per_s)
    others = (site.kv_element_bytes, site.compiled_sequences, site.host_sampling, costs.fixed_s, *costs.launches_s)
    fitted = (getattr(site.parameters, name) for name in NAMES)
    stacks = (costs.streams, costs.head)
    matrices = (side.ndim - 1 for one in stacks for side in (one.compute_s, one.weights_s, one.moved_s))
    return max(*map(np.ndim, (*numbers, *others, *fitted)), *matrices)


def _counted_bytes(site: Site, name: str, size: Number) -> Number:
    """Bytes that a parameter counts for, scales included: more than it takes where it is streamed slower.

    Narrow weights are, where kernels widen them before they multiply; tensor cores that take them as they are read
    them as they read others.
    """
    narrow = (np.asarray(size) < NARROW_BYTES) & (np.asarray(site.hardware.widened.get(name, 0.0)) > 0)
    return size / np.where(narrow, site.parameters.narrow_fraction, 1.0)
