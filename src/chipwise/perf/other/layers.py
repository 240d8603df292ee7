"""Transformer layers and loose matrices as one forward pass: rows through a matrix, tokens looking at tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.perf.operators import elementwise_bytes, gemm_flops
from chipwise.perf.other.passes import ELEMENT_BYTES, Forward
from chipwise.perf.work import OTHER_KERNELS

if TYPE_CHECKING:
    from chipwise.model.spec import Attention, Layer, Weight


def multiplied(weight: Weight, *, rows: float, count: float = 1.0) -> Forward:
    """`rows` through one matrix, `count` matrices like it one after another.

    >>> from chipwise.model.spec import Weight
    >>> one = multiplied(Weight(name="q", part="attention", out_features=4, in_features=3), rows=10.0)
    >>> one.gemm_flops, one.weights, one.moved_bytes
    (240.0, 12.0, 140.0)
    """
    if not weight.gemm:
        return Forward(name=weight.name)
    params = float(weight.out_features * weight.in_features)
    width = weight.out_features + weight.in_features
    return Forward(
        name=weight.name,
        gemm_flops=float(count * gemm_flops(tokens=rows, params=params)),
        weights=count * params,
        moved_bytes=count * rows * width * ELEMENT_BYTES,
        kernels=count,
    )


def attended(
    attention: Attention, *, tokens: float, seen: float, count: float = 1.0, sequences: float = 1.0
) -> Forward:
    """Of each of `sequences`, `tokens` queries over `seen` keys and values: `2 * heads * (d_qk + d_v) * tokens * span`.

    A causal layer that sees its own tokens spans half of them; a window bounds the span. Layers that do not attend
    add nothing.
    """
    if attention.kind in {"none", "linear", "mamba"}:
        return Forward(name="attention")
    span = seen / 2.0 if attention.causal and seen == tokens else seen
    if attention.window_tokens is not None:
        span = min(span, float(attention.window_tokens))
    dims = attention.head_dim + attention.value_head_dim
    return Forward(
        name="attention",
        attention_flops=count * sequences * 2.0 * attention.query_heads * dims * tokens * span,
        kernels=count,
    )


def layer_stack(name: str, layers: Iterable[Layer], *, tokens: float, sequences: float = 1.0) -> Forward:
    """Every token of `sequences` sequences through every layer once; a sequence looks at itself alone.

    Experts run for the tokens that choose them, and all are read.

    The hidden width, which the norms and residuals move, is that of the attention's input.
    """
    total, rows = Forward(name=name), tokens * sequences
    for layer in layers:
        count = float(layer.count)
        for weight in layer.weights:
            total = total.plus(multiplied(weight, rows=rows, count=count))
        if layer.experts is not None:
            total = total.plus(_experts(layer, tokens=rows))
        total = total.plus(attended(layer.attention, tokens=tokens, seen=tokens, count=count, sequences=sequences))
        width = hidden_width(layer)
        moved = count * elementwise_bytes(tokens=rows, hidden_size=width)
        total = total.plus(Forward(name=name, elementwise_bytes=float(moved), kernels=count * (OTHER_KERNELS - 1)))
    return total


def _experts(layer: Layer, *, tokens: float) -> Forward:
    """Routed experts: each sees its even share of the tokens, and all of them are read."""
    experts, total = layer.experts, Forward(name="experts")
    if experts is None:
        return total
    share = tokens * experts.per_token / experts.routed
    for weight in experts.weights:
        total = total.plus(multiplied(weight, rows=share, count=float(layer.count * experts.routed)))
    return replace(total, kernels=float(layer.count * len(experts.weights)))


def hidden_width(layer: Layer) -> int:
    """What enters the layer: the input of its first matrix."""
    return next((weight.in_features for weight in layer.weights if weight.gemm), 0)


def widest_bytes(layers: Iterable[Layer], *, tokens: float) -> float:
    """What the widest matrix of a stack holds: its input, its output and the residual beside them.

    `2 bytes * tokens * max(in + out + hidden)`.
    """
    widths = [
        weight.in_features + weight.out_features + hidden_width(layer)
        for layer in layers
        for weight in layer.weights
        if weight.gemm
    ]
    return ELEMENT_BYTES * tokens * max(widths, default=0)
