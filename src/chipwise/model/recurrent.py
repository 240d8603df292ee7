"""Layers that keep a state of fixed size instead of a cache that grows: Mamba, gated delta rules, convolutions.

State elements of the recurrence are kept in 4 bytes, those of the short convolution in 2 (kernel - 1 columns).
"""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.model.blocks import Block, Weights, conv, matrix, norm, vector
from chipwise.model.spec import Attention, AttentionKind, Part

STATE_BYTES = 4
CONV_BYTES = 2
_PART: Part = "attention"


def state_bytes(*, recurrent: int, channels: int, kernel: int) -> int:
    """`recurrent * 4 + channels * (kernel - 1) * 2`.

    Args:
        recurrent: elements of the recurrent state.
        channels: channels of the short convolution.
        kernel: its taps.

    >>> state_bytes(recurrent=128 * 64 * 128, channels=10240, kernel=4)
    4255744
    """
    return recurrent * STATE_BYTES + channels * max(kernel - 1, 0) * CONV_BYTES


def recurrent_attention(kind: AttentionKind, heads: int, head_dim: int, state: int) -> Attention:
    """A layer that keeps `state` bytes a sequence, split over its heads."""
    return Attention(
        kind=kind,
        query_heads=heads,
        kv_heads=heads,
        head_dim=head_dim,
        value_head_dim=head_dim,
        state_bytes_per_sequence=state,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2:
    """The shape of a Mamba 2 mixer: `inner` = heads * head_dim channels, B and C of `groups * state`."""

    hidden: int
    heads: int
    head_dim: int
    state: int
    groups: int
    kernel: int
    bias: bool = False
    conv_bias: bool = True
    norm: bool = True
    prefix: str = "mixer"

    @property
    def inner(self) -> int:
        """Channels of the mixer."""
        return self.heads * self.head_dim

    @property
    def channels(self) -> int:
        """Channels of the convolution: the input, B and C."""
        return self.inner + 2 * self.groups * self.state


def mamba2(shape: Mamba2) -> Block:
    """Projection to gate, input, B, C and step; convolution; decay; norm; projection back."""
    at, heads = shape.prefix, shape.heads
    weights = (
        *matrix(
            f"{at}.in_proj",
            (shape.inner + shape.channels + heads, shape.hidden),
            _PART,
            bias=shape.bias,
            units=heads,
        ),
        *conv(f"{at}.conv1d", (shape.channels, 1), shape.kernel, bias=shape.conv_bias, part=_PART),
        *(vector(f"{at}.{name}", heads, _PART, units=heads) for name in ("dt_bias", "A_log", "D")),
        *(norm(f"{at}.norm", shape.inner) if shape.norm else ()),
        *matrix(f"{at}.out_proj", (shape.hidden, shape.inner), _PART, bias=shape.bias, units=heads, cut="in"),
    )
    state = state_bytes(recurrent=shape.inner * shape.state, channels=shape.channels, kernel=shape.kernel)
    return Block(weights=weights, attention=recurrent_attention("mamba", heads, shape.head_dim, state))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba1:
    """The shape of a Mamba 1 mixer. `inner_norms`: norms over step, B and C, as Jamba has them."""

    hidden: int
    inner: int
    state: int
    rank: int
    kernel: int
    bias: bool = False
    conv_bias: bool = True
    inner_norms: bool = False
    prefix: str = "mixer"


def mamba1(shape: Mamba1) -> Block:
    """Projection to input and gate; convolution; step, B and C of each channel; projection back."""
    at, inner = shape.prefix, shape.inner
    named = (("dt_layernorm", shape.rank), ("b_layernorm", shape.state), ("c_layernorm", shape.state))
    weights = (
        *matrix(f"{at}.in_proj", (2 * inner, shape.hidden), _PART, bias=shape.bias, units=inner),
        *conv(f"{at}.conv1d", (inner, 1), shape.kernel, bias=shape.conv_bias, part=_PART),
        *matrix(f"{at}.x_proj", (shape.rank + 2 * shape.state, inner), _PART, units=inner, cut="in"),
        *matrix(f"{at}.dt_proj", (inner, shape.rank), _PART, bias=True, units=inner),
        vector(f"{at}.A_log", inner * shape.state, _PART, units=inner),
        vector(f"{at}.D", inner, _PART, units=inner),
        *(vector(f"{at}.{name}", width) for name, width in named if shape.inner_norms),
        *matrix(f"{at}.out_proj", (shape.hidden, inner), _PART, bias=shape.bias, units=inner, cut="in"),
    )
    state = state_bytes(recurrent=inner * shape.state, channels=inner, kernel=shape.kernel)
    return Block(weights=weights, attention=recurrent_attention("mamba", 0, 0, state))


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """The shape of a gated delta rule: key heads serve groups of value heads."""

    hidden: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    kernel: int

    @property
    def channels(self) -> int:
        """Channels of the convolution over Q, K and V."""
        return 2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim

    @property
    def attention(self) -> Attention:
        """A state of key_dim x value_dim for every value head."""
        state = state_bytes(
            recurrent=self.value_heads * self.key_dim * self.value_dim,
            channels=self.channels,
            kernel=self.kernel,
        )
        return Attention(
            kind="linear",
            query_heads=self.value_heads,
            kv_heads=self.key_heads,
            head_dim=self.key_dim,
            value_head_dim=self.value_dim,
            state_bytes_per_sequence=state,
        )


def gated_delta(shape: Delta, *, prefix: str = "linear_attn") -> Block:
    """Gated DeltaNet as Qwen builds it: one projection for Q, K, V and gate, one for decay and step."""
    inner = shape.value_heads * shape.value_dim
    heads = shape.value_heads
    weights = (
        *matrix(f"{prefix}.in_proj_qkv", (shape.channels, shape.hidden), _PART, units=shape.key_heads),
        *matrix(f"{prefix}.in_proj_z", (inner, shape.hidden), _PART, units=heads),
        *matrix(f"{prefix}.in_proj_b", (heads, shape.hidden), _PART, units=heads),
        *matrix(f"{prefix}.in_proj_a", (heads, shape.hidden), _PART, units=heads),
        *conv(f"{prefix}.conv1d", (shape.channels, 1), shape.kernel, bias=False, part=_PART),
        *(vector(f"{prefix}.{name}", heads, _PART, units=heads) for name in ("dt_bias", "A_log")),
        *norm(f"{prefix}.norm", shape.value_dim),
        *matrix(f"{prefix}.out_proj", (shape.hidden, inner), _PART, units=heads, cut="in"),
    )
    return Block(weights=weights, attention=shape.attention)


def short_conv(hidden: int, kernel: int, *, bias: bool) -> Block:
    """A gated short convolution (LFM2): its cache holds `kernel` columns of the hidden size."""
    weights: Weights = (
        *matrix("conv.in_proj", (3 * hidden, hidden), _PART, bias=bias, units=hidden),
        *conv("conv.conv", (hidden, 1), kernel, bias=bias, part=_PART),
        *matrix("conv.out_proj", (hidden, hidden), _PART, bias=bias, units=hidden, cut="in"),
    )
    return Block(weights=weights, attention=recurrent_attention("linear", 0, 0, hidden * kernel * CONV_BYTES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kda:
    """The shape of Kimi delta attention: as many value heads as key heads, of one width. Gates are low-rank or full."""

    hidden: int
    heads: int
    dim: int
    kernel: int
    full_gate: bool = False
    full_decay: bool = False

    @property
    def inner(self) -> int:
        """Width of all heads."""
        return self.heads * self.dim


def kimi_delta(shape: Kda) -> Block:
    """Kimi delta attention: Q, K, V through short convolutions, a decay for every channel, a gated norm."""
    at, inner, heads = "self_attn", shape.inner, shape.heads
    gate_names = ("g_proj",) if shape.full_gate else ()
    weights: Weights = (
        *(
            weight
            for name in ("q_proj", "k_proj", "v_proj", *gate_names)
            for weight in matrix(f"{at}.{name}", (inner, shape.hidden), "attention", units=heads)
        ),
        *conv(f"{at}.conv1d", (3 * inner, 1), shape.kernel, bias=False, part="attention"),
        vector(f"{at}.forget_gate.dt_bias", inner, "attention", units=heads),
        vector(f"{at}.forget_gate.A_log", heads, "attention", units=heads),
        *(_full_rank(shape) if shape.full_decay else _low_rank(shape, "f")),
        *matrix(f"{at}.b_proj", (heads, shape.hidden), "attention", units=heads),
        *(() if shape.full_gate else _low_rank(shape, "g")),
        *norm(f"{at}.o_norm", shape.dim),
        *matrix(f"{at}.o_proj", (shape.hidden, inner), "attention", units=heads, cut="in"),
    )
    state = state_bytes(recurrent=inner * shape.dim, channels=3 * inner, kernel=shape.kernel)
    return Block(weights=weights, attention=recurrent_attention("linear", heads, shape.dim, state))


def _full_rank(shape: Kda) -> Weights:
    return matrix("self_attn.forget_gate.f_proj", (shape.inner, shape.hidden), "attention", units=shape.heads)


def _low_rank(shape: Kda, letter: str) -> Weights:
    at = f"self_attn.{letter}"
    return (
        *matrix(f"{at}_a_proj", (shape.dim, shape.hidden), "attention"),
        *matrix(f"{at}_b_proj", (shape.inner, shape.dim), "attention", units=shape.heads),
    )
