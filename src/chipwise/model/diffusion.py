"""The parts diffusion transformers share: projections with biases, attention with head norms, timestep embedders."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.model.blocks import Heads, NormKind, Weights, conv, matrix, norm
from chipwise.model.draft import Draft, stack
from chipwise.model.keys import Keys
from chipwise.model.spec import Layer, Part

TIME_CHANNELS = 256
HEADS = ("num_attention_heads", "num_heads")
PART: Part = "other"


def linear(name: str, out: int, inside: int, *, bias: bool = True, part: Part = PART) -> Weights:
    """A linear layer, with bias unless said."""
    return matrix(name, (out, inside), part, bias=bias)


def width_of(keys: Keys) -> int:
    """The width of a diffusion transformer: heads times their size."""
    keys.need(HEADS, ("attention_head_dim",))
    return keys.size(*HEADS, least=1) * keys.size("attention_head_dim", least=1)


def heads_of(keys: Keys) -> Heads:
    """The attention shape of a diffusion transformer."""
    count, dim = keys.size(*HEADS, least=1), keys.size("attention_head_dim", least=1)
    return Heads(hidden=count * dim, query=count, kv=count, dim=dim)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attend:
    """An attention of a diffusion block: what it reads (`source` wide), its biases and its norms over Q and K."""

    width: int
    source: int = 0
    bias: bool = True
    out: bool = True
    out_bias: bool = True
    norm_width: int = 0
    norm_shift: bool = False
    prefix: str = "attn"
    names: tuple[str, str, str, str] = ("to_q", "to_k", "to_v", "to_out")


def attend(style: Attend) -> Weights:
    """Q, K, V and output projections, and norms over Q and K where they have a width."""
    w, source, at = style.width, style.source or style.width, style.prefix
    q, key, value, out = style.names
    kind: NormKind = "layer" if style.norm_shift else "rms"
    normed = ("norm_q", "norm_k") if style.norm_width else ()
    return (
        *linear(f"{at}.{q}", w, w, bias=style.bias, part="attention"),
        *linear(f"{at}.{key}", w, source, bias=style.bias, part="attention"),
        *linear(f"{at}.{value}", w, source, bias=style.bias, part="attention"),
        *(linear(f"{at}.{out}", w, w, bias=style.out_bias, part="attention") if style.out else ()),
        *(weight for name in normed for weight in norm(f"{at}.{q}.{name}", style.norm_width, kind)),
    )


def added(width: int, *, norm_width: int = 0, out: bool = True, shift: bool = False) -> Weights:
    """The second stream's projections in a joint attention."""
    names = ("add_q_proj", "add_k_proj", "add_v_proj", "to_add_out")
    return attend(Attend(width=width, norm_width=norm_width, norm_shift=shift, out=out, names=names))


def feed(width: int, inner: int, *, bias: bool = True, name: str = "ff", gated: bool = False) -> Weights:
    """A feed-forward of two layers; a gated one rises twice as wide."""
    return (
        *linear(f"{name}.net.0", inner * (2 if gated else 1), width, bias=bias, part="mlp"),
        *linear(f"{name}.net.2", width, inner, bias=bias, part="mlp"),
    )


def timestep(width: int, name: str = "timestep_embedder", inside: int = TIME_CHANNELS) -> Weights:
    """Two layers over a sinusoidal embedding."""
    return (*linear(f"{name}.linear_1", width, inside), *linear(f"{name}.linear_2", width, width))


def patch(name: str, width: int, channels: int, taps: int, *, bias: bool = True) -> Weights:
    """A patch embedding."""
    return conv(name, (width, channels), taps, bias=bias)


def area(keys: Keys, name: str = "patch_size", default: int = 1) -> int:
    """Values of a patch: the square of one number, or the product of a list."""
    value = keys.raw(name)
    if isinstance(value, list | tuple):
        total = 1
        for side in keys.sizes(name):
            total *= side
        return total
    return keys.size(name, default=default) ** 2


def blocks(count: int, heads: Heads, weights: Weights) -> tuple[Layer, ...]:
    """`count` equal blocks that look at everything."""
    return stack(count, weights, heads.attention(causal=False))


def denoiser(hidden: int, layers: tuple[Layer, ...], outer: Weights) -> Draft:
    """The draft of a diffusion model's network."""
    return Draft(kind="diffusion", layers=layers, outer=outer, hidden_size=hidden)
