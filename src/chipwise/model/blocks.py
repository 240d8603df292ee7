"""The parts layers are made of: matrices, norms, attention, MLPs, experts. Families put them together.

Every builder returns weights with exact shapes under the names that checkpoints and quantisation lists use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from chipwise.errors import InputError
from chipwise.model.draft import NO_ATTENTION, grouped
from chipwise.model.spec import Attention, AttentionKind, Experts, Layer, Part, Weight

Weights = tuple[Weight, ...]
Cut = Literal["out", "in"]
NormKind = Literal["rms", "layer", "none"]

_AS_STORED: frozenset[Part] = frozenset({"norm", "embedding", "head", "router"})


def matrix(
    name: str, out_in: tuple[int, int], part: Part, *, bias: bool = False, units: int = 1, cut: Cut = "out"
) -> Weights:
    """A linear layer, with its bias if it has one. A row-parallel (`cut="in"`) bias is whole on every device.

    >>> sum(weight.params for weight in matrix("q", (64, 32), "attention", bias=True))
    2112
    """
    out, inside = out_in
    main = Weight(
        name=name,
        part=part,
        out_features=out,
        in_features=inside,
        tp_units=units,
        cut=cut,
        quantisable=part not in _AS_STORED,
    )
    return (main, vector(f"{name}.bias", out, part, units=units if cut == "out" else 1)) if bias else (main,)


def vector(name: str, size: int, part: Part = "norm", *, units: int = 1) -> Weight:
    """A vector: a bias, a norm's scale, a per-head constant."""
    return Weight(name=name, part=part, out_features=size, in_features=1, tp_units=units, gemm=False, quantisable=False)


def table(name: str, rows: int, width: int, *, units: int = 1, part: Part = "embedding") -> Weight:
    """An embedding: rows that are looked up, never multiplied."""
    return Weight(
        name=name, part=part, out_features=rows, in_features=width, tp_units=units, gemm=False, quantisable=False
    )


def conv(name: str, out_in: tuple[int, int], kernel: int, *, bias: bool = True, part: Part = "other") -> Weights:
    """A convolution as the matrix it is: `out` x (`in` channels of its group * `kernel` taps)."""
    out, inside = out_in
    main = Weight(name=name, part=part, out_features=out, in_features=inside * kernel, quantisable=False)
    return (main, vector(f"{name}.bias", out, part)) if bias else (main,)


def norm(name: str, width: int, kind: NormKind = "rms") -> Weights:
    """A normalisation: `rms` has a scale, `layer` a scale and a shift, `none` nothing.

    >>> [weight.name for weight in norm("norm", 8, "layer")]
    ['norm', 'norm.bias']
    """
    if kind == "none":
        return ()
    return (vector(name, width), vector(f"{name}.bias", width)) if kind == "layer" else (vector(name, width),)


def norms(names: Sequence[str], width: int, kind: NormKind = "rms") -> Weights:
    """Several normalisations of one width."""
    return tuple(weight for name in names for weight in norm(name, width, kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part of a layer: its weights, what it attends to, the experts it routes to."""

    weights: Weights = ()
    attention: Attention = NO_ATTENTION
    experts: Experts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """The shape of an attention: `query` heads of `dim` over `kv` heads, values of `value_dim` (0: as `dim`)."""

    hidden: int
    query: int
    kv: int
    dim: int
    value_dim: int = 0

    @property
    def v_dim(self) -> int:
        """Width of a value head."""
        return self.value_dim or self.dim

    def attention(
        self, kind: AttentionKind = "full", *, window_tokens: int | None = None, causal: bool = True
    ) -> Attention:
        """The attention of this shape."""
        return Attention(
            kind=kind,
            query_heads=self.query,
            kv_heads=self.kv,
            head_dim=self.dim,
            value_head_dim=self.v_dim,
            window_tokens=window_tokens,
            causal=causal,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Projections:
    """What varies between attentions of one shape: `bias` names the projections that have one ("qkv", "qkvo").

    `qk_norm` is `head` (one scale of a head's width), `full` (of all heads' width) or empty. `no` names the
    projections that do not exist ("v" where keys serve as values, "kv" where another layer's cache is read).
    """

    bias: str = ""
    qk_norm: Literal["", "head", "full"] = ""
    qk_norm_kind: NormKind = "rms"
    no: str = ""
    prefix: str = "self_attn"
    names: tuple[str, str, str, str] = ("q_proj", "k_proj", "v_proj", "o_proj")
    kv_hidden: int = 0


PLAIN = Projections()


def attention_weights(heads: Heads, style: Projections = PLAIN) -> Weights:
    """Query, key, value and output projections of `heads`, with biases and head norms as `style` says.

    >>> shape = Heads(hidden=4096, query=32, kv=8, dim=128)
    >>> sum(weight.params for weight in attention_weights(shape))
    41943040
    """
    source = style.kv_hidden or heads.hidden
    q_width, k_width, v_width = heads.query * heads.dim, heads.kv * heads.dim, heads.kv * heads.v_dim
    shapes: dict[str, tuple[tuple[int, int], int, Cut]] = {
        "q": ((q_width, heads.hidden), heads.query, "out"),
        "k": ((k_width, source), heads.kv, "out"),
        "v": ((v_width, source), heads.kv, "out"),
        "o": ((heads.hidden, heads.query * heads.v_dim), heads.query, "in"),
    }
    out: list[Weight] = []
    for letter, leaf in zip("qkvo", style.names, strict=True):
        if letter not in style.no:
            shape, units, cut = shapes[letter]
            name = f"{style.prefix}.{leaf}"
            out += matrix(name, shape, "attention", bias=letter in style.bias, units=units, cut=cut)
    if style.qk_norm:
        by_head = style.qk_norm == "head"
        out += norm(f"{style.prefix}.q_norm", heads.dim if by_head else q_width, style.qk_norm_kind)
        if "k" not in style.no:
            out += norm(f"{style.prefix}.k_norm", heads.dim if by_head else k_width, style.qk_norm_kind)
    return tuple(out)


def mlp(
    hidden: int, width: int, *, gated: bool = True, bias: bool = False, prefix: str = "mlp", part: Part = "mlp"
) -> Weights:
    """A feed-forward block: up and down, and a gate where it is gated.

    >>> sum(weight.params for weight in mlp(4096, 14336))
    176160768
    """
    names = ("gate_proj", "up_proj") if gated else ("up_proj",)
    rising = [matrix(f"{prefix}.{leaf}", (width, hidden), part, bias=bias, units=width) for leaf in names]
    down = matrix(f"{prefix}.down_proj", (hidden, width), part, bias=bias, units=width, cut="in")
    return (*(weight for pair in rising for weight in pair), *down)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moe:
    """Routed experts of `width`, `shared` always-on width beside them, and what the router holds."""

    hidden: int
    routed: int
    per_token: int
    width: int
    shared: int = 0
    shared_count: int = 0
    shared_gate: bool = False
    shared_name: str = "mlp.shared_experts"
    router_bias: bool = False
    expert_bias: bool = False
    gated: bool = True
    prefix: str = "mlp"
    router_name: str = "mlp.gate"
    latent: int = 0


def moe(shape: Moe) -> Block:
    """Router, shared expert and routed experts. With a `latent` width the experts work on a projected input.

    >>> block = moe(Moe(hidden=4096, routed=8, per_token=2, width=14336))
    >>> block.experts.params, sum(weight.params for weight in block.weights)
    (1409286144, 32768)
    """
    inside = shape.latent or shape.hidden
    expert = mlp(
        inside,
        shape.width,
        gated=shape.gated,
        bias=shape.expert_bias,
        prefix=f"{shape.prefix}.experts",
        part="expert",
    )
    weights = list(matrix(shape.router_name, (shape.routed, shape.hidden), "router", bias=shape.router_bias))
    if shape.shared:
        weights += mlp(shape.hidden, shape.shared, gated=shape.gated, prefix=shape.shared_name, part="shared-expert")
    if shape.shared_gate:
        weights += matrix(f"{shape.prefix}.shared_expert_gate", (1, shape.hidden), "router")
    if shape.latent:
        weights += matrix(f"{shape.prefix}.fc1_latent_proj", (shape.latent, shape.hidden), "mlp")
        weights += matrix(f"{shape.prefix}.fc2_latent_proj", (shape.hidden, shape.latent), "mlp")
    experts = Experts(
        routed=shape.routed,
        per_token=shape.per_token,
        weights=expert,
        shared=shape.shared_count or bool(shape.shared),
    )
    return Block(weights=tuple(weights), experts=experts)


def assemble(
    plan: Sequence[tuple[str, str]],
    mixers: Mapping[str, Block],
    ffns: Mapping[str, Block],
    around: Weights = (),
) -> tuple[Layer, ...]:
    """Layers from a plan of (mixer, ffn) labels: equal labels become one run; `around` are the norms of each.

    Raises:
        InputError: a label that is none of the blocks'.
    """

    def build(labels: tuple[str, str]) -> Layer:
        mixer, ffn = _block(mixers, labels[0]), _block(ffns, labels[1])
        return Layer(
            count=1,
            attention=mixer.attention,
            weights=(*mixer.weights, *ffn.weights, *around),
            experts=ffn.experts or mixer.experts,
        )

    return grouped(plan, build)


def _block(blocks: Mapping[str, Block], kind: str) -> Block:
    if kind not in blocks:
        raise InputError(
            f"a layer is said to be {kind[:40]!r}",
            why=f"one of {', '.join(sorted(blocks))} is expected there",
            fix="correct the list of layer kinds in the config, or give the safetensors file",
        )
    return blocks[kind]


def hyper_connections(streams: int, hidden: int, *, outputs: int, scales: int) -> Weights:
    """What mixes `streams` residual streams around attention and feed-forward: `outputs` weights made from all streams.

    >>> sum(weight.params for weight in hyper_connections(4, 4096, outputs=24, scales=3))
    786486
    """
    return tuple(
        weight
        for name in ("attn_hc", "ffn_hc")
        for weight in (
            table(f"{name}.fn", outputs, streams * hidden, part="other"),
            vector(f"{name}.base", outputs + scales, "other"),
        )
    )


def hyper_head(streams: int, hidden: int) -> Weights:
    """What makes one stream of all at the end."""
    return (table("hc_head.fn", streams, streams * hidden, part="other"), vector("hc_head", streams + 1, "other"))


def tied(weight: Weight) -> Weight:
    """The same matrix as another: multiplied, but not stored again."""
    return replace(weight, stored=False)


def vocabulary(rows: int, hidden: int, *, name: str = "model.embed_tokens") -> Weight:
    """The token embedding, which tensor parallelism cuts by rows."""
    return table(name, rows, hidden, units=rows)


def lm_head(rows: int, hidden: int, *, is_tied: bool, bias: bool = False, name: str = "lm_head") -> Weights:
    """The output projection; a tied one shares the embedding's storage."""
    head = matrix(name, (rows, hidden), "head", bias=bias, units=rows)
    return (tied(head[0]), *head[1:]) if is_tied else head


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderStyle:
    """A transformer layer of the ViT, BERT or CLIP kind: norms with shifts, biases everywhere, unless said."""

    norm: NormKind = "layer"
    bias: str = "qkvo"
    gated: bool = False
    mlp_bias: bool = True
    norm_names: tuple[str, ...] = ("layer_norm1", "layer_norm2")
    qk_norm: Literal["", "head", "full"] = ""
    extra: Weights = field(default=())
    causal: bool = False


VIT = EncoderStyle()


def encoder_layers(count: int, heads: Heads, width: int, style: EncoderStyle = VIT) -> tuple[Layer, ...]:
    """`count` transformer layers; without a causal mask they look both ways and keep no cache."""
    if count == 0:
        return ()
    weights = (
        *attention_weights(heads, Projections(bias=style.bias, qk_norm=style.qk_norm)),
        *mlp(heads.hidden, width, gated=style.gated, bias=style.mlp_bias),
        *norms(style.norm_names, heads.hidden, style.norm),
        *style.extra,
    )
    attention = heads.attention(causal=style.causal)
    return (Layer(count=count, attention=attention, weights=weights, indices=tuple(range(count))),)
