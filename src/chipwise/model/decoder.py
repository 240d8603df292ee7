"""The common decoder: reads the shape keys of a causal language model and lays out its layers.

Most families are this with a `Style`; those that are not use the same pieces (`dims`, `window_plan`, `moe_plan`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from chipwise.model import keys as k
from chipwise.model.blocks import (
    Block,
    Heads,
    NormKind,
    Projections,
    Weights,
    assemble,
    attention_weights,
    lm_head,
    mlp,
    norm,
    norms,
    table,
    vocabulary,
)
from chipwise.model.blocks import matrix as matrix_of
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys, side_by_side
from chipwise.model.spec import Layer

NORM_PAIR = ("input_layernorm", "post_attention_layernorm")
NORM_FOUR = (*NORM_PAIR, "pre_feedforward_layernorm", "post_feedforward_layernorm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dims:
    """The sizes every decoder states."""

    hidden: int
    layers: int
    heads: Heads
    ffn: int
    vocab: int


def dims(keys: Keys, *, ffn: bool = True, ffn_times: int = 0) -> Dims:
    """Read the common sizes; all that are missing are named in one error.

    A missing head size is hidden size / heads; missing KV heads are as many as query heads. Where the family says so,
    a missing MLP width is `ffn_times` the hidden size. `ffn` false: the family reads the widths itself.
    """
    needs_ffn = ffn and not ffn_times
    keys.need(k.HIDDEN, k.LAYERS, k.HEADS, k.VOCAB, *((k.FFN,) if needs_ffn else ()))
    hidden = keys.size(*k.HIDDEN, least=1)
    return Dims(
        hidden=hidden,
        layers=keys.layers(),
        heads=heads_of(keys, hidden),
        ffn=keys.size(*k.FFN, default=ffn_times * hidden) if ffn else 0,
        vocab=keys.size(*k.VOCAB),
    )


def heads_of(keys: Keys, hidden: int) -> Heads:
    """The attention shape: heads, KV heads (absent: as many), head size (absent: hidden / heads)."""
    query = keys.size(*k.HEADS, least=1)
    latent = keys.size("qk_nope_head_dim", default=0) + keys.size("qk_rope_head_dim", default=0)
    dim = keys.maybe(*k.HEAD_DIM) or latent or hidden // query
    if dim * query != hidden and not keys.maybe(*k.HEAD_DIM) and not latent:
        keys.notes.append(f"{keys.path}head_dim is not in the config and {query} heads do not divide {hidden}: {dim}")
    kv = keys.maybe(*k.KV_HEADS) or query
    return Heads(hidden=hidden, query=query, kv=kv, dim=dim)


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a family's decoder differs from Llama's. `tied` is the class default where the config is silent.

    `pattern`: every so-many-th layer is full and the others have a window; 0 leaves it to the config.
    `positions`: rows of a learned position table.
    """

    bias: str = ""
    qk_norm: Literal["", "head", "full"] = ""
    qk_norm_kind: NormKind = "rms"
    norm: NormKind = "rms"
    norm_names: tuple[str, ...] = NORM_PAIR
    gated: bool = True
    mlp_bias: bool = False
    tied: bool = False
    head_bias: bool = False
    positions: int = 0
    pattern: int = 0
    final_norm: bool = True


LLAMA = Style()


def projections(style: Style) -> Projections:
    """The attention style of a decoder style."""
    return Projections(bias=style.bias, qk_norm=style.qk_norm, qk_norm_kind=style.qk_norm_kind)


def decoder(
    keys: Keys,
    style: Style = LLAMA,
    *,
    size: Dims | None = None,
    ffns: Mapping[str, Block] | None = None,
    plan: Sequence[str] = (),
    more: Weights = (),
) -> Draft:
    """A causal decoder whose layers differ in window (`window_plan`) and FFN kind only.

    Args:
        keys: the config.
        style: how its layers differ from Llama's.
        size: the sizes, where the family reads them itself.
        ffns: feed-forward blocks by label; one dense MLP where left out.
        plan: the label of each layer; the first of `ffns` for all where left out.
        more: weights that every layer has besides.
    """
    size = size or dims(keys, ffn=ffns is None)
    blocks = ffns or {"dense": Block(weights=mlp(size.hidden, size.ffn, gated=style.gated, bias=style.mlp_bias))}
    labels = plan or [next(iter(blocks))] * size.layers
    mixers = attention_mixers(keys, size.heads, projections(style))
    kinds = window_plan(keys, size.layers, pattern=style.pattern)
    around = (*norms(style.norm_names, size.hidden, style.norm), *more)
    layers = assemble(side_by_side(keys, "layer_types", kinds, labels), mixers, blocks, around)
    return causal_lm(keys, size, layers, style)


def attention_mixers(keys: Keys, heads: Heads, style: Projections) -> dict[str, Block]:
    """Full, sliding and chunked attention of one shape, by label."""
    weights = attention_weights(heads, style)
    window = keys.maybe("sliding_window", "sliding_window_size", "window_size")
    chunk = keys.maybe("attention_chunk_size")
    return {
        "full": Block(weights=weights, attention=heads.attention()),
        "sliding": Block(weights=weights, attention=heads.attention("sliding", window_tokens=window)),
        "chunked": Block(weights=weights, attention=heads.attention("chunked", window_tokens=chunk)),
    }


LAYER_TYPES = {
    "full_attention": "full",
    "attention": "full",
    "global": "full",
    "sliding_attention": "sliding",
    "local": "sliding",
    "chunked_attention": "chunked",
}


def window_plan(keys: Keys, layers: int, *, pattern: int = 0) -> list[str]:
    """Which layers look back without end: `layer_types` first, then a pattern (every `pattern`-th is full).

    A window counts only where it is in force: `use_sliding_window` false, or a window as long as the
    context, leaves every layer full.
    """
    listed = keys.items("layer_types")
    if listed:
        if len(listed) < layers:
            raise keys.wrong("layer_types", f"{len(listed)} entries", f"one entry for each of {layers} layers")
        return [_layer_type(keys, item) for item in listed[:layers]]
    window = keys.maybe("sliding_window", "sliding_window_size")
    context = keys.maybe(*k.CONTEXT)
    in_force = window and keys.flag("use_sliding_window", default=True) and not (context and window >= context)
    if not in_force:
        return ["full"] * layers
    every = pattern or keys.maybe("sliding_window_pattern", "_sliding_window_pattern")
    if every:
        return ["full" if (index + 1) % every == 0 else "sliding" for index in range(layers)]
    if keys.raw("use_sliding_window") is not None:
        first = keys.size("max_window_layers", default=0)
        return ["full" if index < first else "sliding" for index in range(layers)]
    return ["sliding"] * layers


def _layer_type(keys: Keys, item: object) -> str:
    kind = LAYER_TYPES.get(item) if isinstance(item, str) else None
    if kind is None:
        raise keys.wrong("layer_types", item, f"one of {', '.join(sorted(LAYER_TYPES))}")
    return kind


def is_tied(keys: Keys, *, default: bool) -> bool:
    """Whether the head shares the embedding's storage: the config's word, else the class's, else the family's."""
    return keys.flag("tie_word_embeddings", default=default)


def causal_lm(keys: Keys, size: Dims, layers: tuple[Layer, ...], style: Style = LLAMA) -> Draft:
    """Embedding, layers, final norm and the head that the architecture's name asks for."""
    final = norm("model.norm", size.hidden, style.norm) if style.final_norm else ()
    outer = [vocabulary(size.vocab, size.hidden), *final]
    if style.positions:
        outer.append(table("model.embed_positions", style.positions, size.hidden))
    outer += head(keys, size, style)
    return Draft(
        kind="llm",
        layers=layers,
        outer=tuple(outer),
        hidden_size=size.hidden,
        vocab_size=size.vocab,
        max_context_tokens=keys.maybe(*k.CONTEXT),
    )


def head(keys: Keys, size: Dims, style: Style = LLAMA) -> Weights:
    """The head by the architecture's name: a classifier, nothing for a bare model, otherwise the language model's."""
    name = keys.head
    if name.endswith("ForSequenceClassification"):
        return matrix_of("score", (keys.labels, size.hidden), "head")
    if name.endswith("ForTokenClassification"):
        return matrix_of("score", (keys.labels, size.hidden), "head", bias=True)
    if name.endswith(("ForRewardModel", "RewardModel")):
        return matrix_of("v_head", (1, size.hidden), "head")
    if name.endswith("Model") and not name.endswith(("LMHeadModel", "ChatGLMModel")):
        return ()
    return lm_head(size.vocab, size.hidden, is_tied=is_tied(keys, default=style.tied), bias=style.head_bias)


def moe_plan(keys: Keys, layers: int) -> list[str]:
    """Which layers are `moe` and which `dense`, by whichever rule the config follows.

    `mlp_layer_types` (sparse/dense) or a 0/1 list `moe_layer_freq`; else `first_k_dense_replace` with every
    `moe_layer_freq`-th layer; else `mlp_only_layers` with `decoder_sparse_step`; else all.

    >>> moe_plan(Keys(data={"first_k_dense_replace": 1}), 3)
    ['dense', 'moe', 'moe']
    """
    named = keys.items("mlp_layer_types")
    if named:
        return ["moe" if item in ("sparse", "moe") else "dense" for item in named[:layers]]
    freq = keys.raw("moe_layer_freq")
    if isinstance(freq, list):
        return ["moe" if item else "dense" for item in freq[:layers]]
    first = keys.size("first_k_dense_replace", "n_dense_layers", default=0)
    step = keys.size("moe_layer_freq", "decoder_sparse_step", default=1) or 1
    only = set(keys.sizes("mlp_only_layers"))
    if keys.has("decoder_sparse_step"):
        sparse = [(index + 1) % step == 0 for index in range(layers)]
    else:
        sparse = [index % step == 0 for index in range(layers)]
    return [
        "moe" if is_moe and index >= first and index not in only else "dense" for index, is_moe in enumerate(sparse)
    ]


def with_layers(draft: Draft, layers: tuple[Layer, ...]) -> Draft:
    """The draft with other layers."""
    return replace(draft, layers=layers)
