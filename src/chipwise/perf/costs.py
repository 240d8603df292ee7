"""What a step costs on a site, worked out once for all steps: every operation that grows with its tokens alone.

Matrices are stacked: element `g` of axis 0 is one part of the model in one format, all its layers counted, and a step
of any number of tokens is a few array operations for all of them. What else grows evenly with the tokens (norms,
collectives) is an intercept and a slope.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chipwise.parallelism import CacheShard, Number
from chipwise.perf import operators as op

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from chipwise.perf.rates import Rates, Site
    from chipwise.perf.work import ExpertWork, GemmWork, LayerWork

    Floats = NDArray[np.float64]

COMPUTE, BANDWIDTH, COMMUNICATION, OVERHEAD = 0.0, 1.0, 2.0, 3.0
BOUNDS = ("compute", "bandwidth", "communication", "overhead", "capacity")
ACTIVATION_BYTES = 2.0


def present(tokens: Number) -> Number:
    """1 where there are tokens, else 0: what has none is not launched."""
    return np.sign(tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """Matrices that the same tokens pass, stacked along axis 0: `max(tokens * compute, weights + tokens * moved)`.

    `compute_s` and `moved_s` are seconds a token, `weights_s` seconds of reading the weights once.
    """

    operations: tuple[str, ...]
    compute_s: Floats
    weights_s: Floats
    moved_s: Floats

    def roof(self, tokens: Number) -> op.Roofline:
        """Both sides of each where there are `tokens` tokens on the device; where there are none, it does not run."""
        dimensions = np.ndim(tokens)
        return op.Roofline(
            compute_s=tokens * lifted(self.compute_s, dimensions),
            bandwidth_s=lifted(self.weights_s, dimensions) + tokens * lifted(self.moved_s, dimensions),
        )

    def seconds(self, tokens: Number) -> Number:
        """All of them, one after the other."""
        found: Number = np.add.reduce(self.roof(tokens).seconds) * present(tokens)
        return found


def lifted(stack: Floats, dimensions: int) -> Floats:
    """The stack with at least `dimensions` axes behind axis 0.

    >>> lifted(np.array([1.0, 2.0]), 2).shape
    (2, 1, 1)
    """
    more = dimensions + 1 - stack.ndim
    return stack if more <= 0 else stack.reshape(stack.shape[:1] + (1,) * more + stack.shape[1:])


def stacked(values: Sequence[Number]) -> Floats:
    """Values that broadcast, one an element of axis 0.

    >>> stacked([1.0, np.array([2.0, 3.0])]).tolist()
    [[1.0, 1.0], [2.0, 3.0]]
    """
    shapes = {np.shape(value) for value in values}
    found = np.empty((len(values), *(shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes))))
    for place, value in enumerate(values):
        found[place] = value
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """An operation of all layers that takes `fixed_s` and `token_s` for each token on the device."""

    operation: str
    kind: float
    fixed_s: Number
    token_s: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertCosts:
    """Routed experts of one layer on the fullest device."""

    routed: int
    per_token: int
    local: Number
    skew: Number
    """Tokens of the fullest device over the mean."""
    compute_s: Number
    """Seconds of a token that one expert computes."""
    moved_s: Number
    """Seconds of the activations of a token in one expert."""
    read_s: Number
    """Seconds of reading one expert's weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerCosts:
    """`count` equal layers: what does not grow evenly with the tokens."""

    count: Number
    cache: CacheShard
    experts: ExpertCosts | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What the steps of one site cost, per pipeline stage.

    `head` sees sampled tokens only. `launches_s` is a step that carries prompts, then one that does not.
    """

    streams: Streams
    head: Streams
    layers: tuple[LayerCosts, ...]
    linear: tuple[Linear, ...]
    launches_s: tuple[Number, Number]
    fixed_s: Number
    """The sum over `linear`."""
    token_s: Number


def costs_of(site: Site, rates: Rates, weight_bytes: Mapping[str, Number]) -> Costs:
    """Gather what a step of `site` costs.

    Args:
        site: the work of a device.
        rates: what it reaches.
        weight_bytes: bytes a parameter counts for, by format.

    Raises:
        KeyError: a weight format of the model has no rate or no size.
    """
    work = site.work
    linear = tuple(_linear(site, rates))
    return Costs(
        streams=_streams([(gemm, layer.count) for layer in work.layers for gemm in layer.gemms], rates, weight_bytes),
        head=_streams([(gemm, 1.0 / work.pp) for gemm in work.head], rates, weight_bytes),
        layers=tuple(
            LayerCosts(count=one.count, cache=one.cache, experts=_experts(site, one.experts, rates, weight_bytes))
            for one in work.layers
        ),
        linear=linear,
        launches_s=(_launches(site, rates.prefill_kernel_s), _launches(site, rates.decode_kernel_s)),
        fixed_s=sum((one.fixed_s for one in linear), start=0.0),
        token_s=sum((one.token_s for one in linear), start=0.0),
    )


def _streams(counted: Sequence[tuple[GemmWork, Number]], rates: Rates, weight_bytes: Mapping[str, Number]) -> Streams:
    """GEMMs with how many layers have them."""
    return Streams(
        operations=tuple(gemm.operation for gemm, _ in counted),
        compute_s=stacked(
            [
                op.gemm_flops(tokens=1.0, params=gemm.params) * count / rates.gemm_flops_per_s[gemm.format]
                for gemm, count in counted
            ]
        ),
        weights_s=stacked(
            [gemm.params * weight_bytes[gemm.format] * count / rates.bytes_per_s for gemm, count in counted]
        ),
        moved_s=stacked([ACTIVATION_BYTES * gemm.activations * count / rates.bytes_per_s for gemm, count in counted]),
    )


def _experts(
    site: Site, experts: ExpertWork | None, rates: Rates, weight_bytes: Mapping[str, Number]
) -> ExpertCosts | None:
    """Rows and columns of an expert's piece are computed in whole lanes."""
    if experts is None:
        return None
    gemm, lanes = experts.gemm, site.parameters.array_lanes
    filled = op.padded(experts.width, lanes) / experts.width
    flops = op.gemm_flops(tokens=1.0, params=gemm.params * filled)
    return ExpertCosts(
        routed=experts.routed,
        per_token=experts.per_token,
        local=experts.local,
        skew=rates.expert_skew,
        compute_s=flops / rates.expert_flops_per_s[gemm.format],
        moved_s=ACTIVATION_BYTES * gemm.activations / rates.bytes_per_s,
        read_s=gemm.params * weight_bytes[gemm.format] / rates.bytes_per_s,
    )


def _launches(site: Site, kernel_s: Number) -> Number:
    """Kernels of all layers, those that narrow activations among them, and what routing adds where a layer routes."""
    total: Number = 0.0
    for layer in site.work.layers:
        routing = site.parameters.moe_layer_s if layer.experts is not None else 0.0
        kernels = layer.kernels + sum(count * _narrowed(site, name) for name, count in layer.gemm_kernels)
        total = total + layer.count * (kernels * kernel_s + routing)
    return total


def _narrowed(site: Site, name: str) -> Number:
    """1 where tensor cores take both factors narrow: a kernel narrows the activations first. Else 0.

    Source: docs.vllm.ai design/fusions (quantisation of what attention gives is a kernel of its own by default; that
    behind a norm is fused where graphs are compiled for it).
    """
    narrow = np.asarray(site.weight_bytes[name]) < ACTIVATION_BYTES
    return np.where(narrow & ~(np.asarray(site.hardware.widened.get(name, 0.0)) > 0), 1.0, 0.0)


def _linear(site: Site, rates: Rates) -> Iterator[Linear]:
    """Norms, then collectives: all-reduces behind partial sums; with data-parallel attention experts' tokens travel."""
    work = site.work
    token_bytes = work.hidden_size * ACTIVATION_BYTES
    layers: Number = sum((layer.count for layer in work.layers), start=0.0)
    once = op.elementwise_bytes(tokens=1.0, hidden_size=work.hidden_size) / rates.bytes_per_s
    yield Linear(operation="norms", kind=BANDWIDTH, fixed_s=0.0, token_s=layers * once)
    spread = np.asarray(work.dp) > 1
    reduces: Number = 0.0
    for layer in work.layers:
        reduces = reduces + layer.count * (layer.all_reduces - (spread if layer.experts is not None else 0.0))
    reduces = reduces * (np.asarray(work.tp) > 1)
    yield Linear(
        operation="all-reduce",
        kind=COMMUNICATION,
        fixed_s=reduces * rates.all_reduce.latency_s,
        token_s=reduces * rates.all_reduce.s_per_byte * token_bytes,
    )
    if np.any(spread):
        yield from _all_to_alls(site, rates, token_bytes)
    if np.any(np.asarray(work.pp) > 1):
        several = np.asarray(work.pp) > 1
        yield Linear(
            operation="pipeline send",
            kind=COMMUNICATION,
            fixed_s=several * rates.send.latency_s,
            token_s=several * rates.send.s_per_byte * token_bytes / work.tp,
        )


def _all_to_alls(site: Site, rates: Rates, token_bytes: float) -> Iterator[Linear]:
    work = site.work
    for layer in work.layers:
        if layer.experts is None:
            continue
        copies = np.minimum(layer.experts.per_token, work.tp * work.dp)
        times = layer.count * (np.asarray(work.dp) > 1) * 2.0
        yield Linear(
            operation="all-to-all",
            kind=COMMUNICATION,
            fixed_s=times * rates.all_to_all.latency_s,
            token_s=times * rates.all_to_all.s_per_byte * token_bytes / work.tp * copies,
        )


def cache_bytes_per_sequence(
    layers: Iterable[LayerWork | LayerCosts], *, cp: Number, context: Number, element_bytes: Number
) -> Number:
    """Bytes that a sequence of `context` tokens holds on one device: windows bound, states once."""
    total: Number = 0.0
    for layer in layers:
        cache = layer.cache
        tokens = context if cache.window_tokens is None else np.minimum(context, cache.window_tokens)
        entries = context / cache.compressed_every if cache.compressed_every else 0.0
        per_token = cache.elements_per_token * element_bytes / cp
        keys = cache.indexer_dim * (entries if cache.compressed_every else tokens)
        total = total + layer.count * (per_token * (tokens + entries) + keys + cache.state_bytes_per_sequence)
    return total
