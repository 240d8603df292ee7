"""Mixture-of-experts decoders with windows and small additions: Flint, Kolibri 1, Beam, Zaya, Aria's text model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from chipwise.model import keys as k
from chipwise.model.blocks import (
    Block,
    Heads,
    Projections,
    Weights,
    assemble,
    attention_weights,
    conv,
    matrix,
    mlp,
    norm,
    norms,
    vector,
)
from chipwise.model.decoder import (
    NORM_FOUR,
    NORM_PAIR,
    Dims,
    Style,
    causal_lm,
    decoder,
    dims,
    moe_plan,
)
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys
from chipwise.model.mixture import PER_TOKEN, Mix, mixture
from chipwise.model.recurrent import state_bytes
from chipwise.model.spec import AttentionKind, Experts

_SHARED = ("shared_expert_intermediate_size",)


def listed(keys: Keys, layers: int, is_full: Callable[[int], bool]) -> Keys:
    """The keys with `layer_types`; where the config has none, as its class makes them."""
    if keys.items("layer_types"):
        return keys
    kinds = ["full_attention" if is_full(index) else "sliding_attention" for index in range(layers)]
    return keys.also(layer_types=kinds)


def flint(keys: Keys) -> Draft:
    """Flint: a sink for each head, head norms, a shared expert without a gate; the first two layers are dense."""
    size = dims(keys, ffn=False)
    last = size.layers - 1
    known = listed(keys, size.layers, lambda index: index in (0, last) or index % 4 == 1)
    known = known if known.has("mlp_only_layers") else known.also(mlp_only_layers=[0, 1])
    ffns = mixture(known, size.hidden, Mix(shared=_SHARED, shared_name="mlp.shared_expert"))
    style = Style(bias=_bias(keys), qk_norm="head")
    sinks = vector("self_attn.sinks", size.heads.query, "attention", units=size.heads.query)
    return decoder(known, style, size=size, ffns=ffns, plan=moe_plan(known, size.layers), more=(sinks,))


def kolibri1(keys: Keys) -> Draft:
    """Kolibri 1: norms after each block too, a shared expert, every fifth layer looks back without end."""
    size = dims(keys, ffn=False)
    known = listed(keys, size.layers, lambda index: (index + 1) % 5 == 0)
    ffns = {"moe": mixture(known, size.hidden, Mix(shared=_SHARED))["moe"]}
    names = (*NORM_PAIR, "post_self_attn_layernorm", "post_mlp_layernorm")
    return decoder(known, Style(qk_norm="head", norm_names=names), size=size, ffns=ffns)


def beam(keys: Keys) -> Draft:
    """Beam: gates as wide as the heads with a bias for each, four norms, dense layers first."""
    size = dims(keys, ffn=False)
    last = size.layers - 1
    known = listed(keys, size.layers, lambda index: (index + 1) % 6 == 0 or index == last)
    known = known if known.has("mlp_layer_types") else known.also(first_k_dense_replace=3)
    heads = size.heads
    gate = (
        *matrix("self_attn.gate_proj", (heads.query * heads.dim, size.hidden), "attention", units=heads.query),
        vector("self_attn.gate_bias", heads.query, "attention", units=heads.query),
    )
    style = Style(bias=_bias(keys), qk_norm="head", norm_names=NORM_FOUR)
    ffns = mixture(known, size.hidden)
    return decoder(known, style, size=size, ffns=ffns, plan=moe_plan(known, size.layers), more=gate)


def aria_text(keys: Keys) -> Draft:
    """Aria's text model: Llama with experts of the full width in every layer, some of them always on."""
    size = dims(keys)
    ffns = {"moe": mixture(keys, size.hidden, Mix(width=k.FFN, router="mlp.router"))["moe"]}
    return decoder(keys, Style(bias=_bias(keys)), size=size, ffns=ffns)


def _bias(keys: Keys) -> str:
    return "qkvo" if keys.flag("attention_bias") else ""


def zaya(keys: Keys) -> Draft:
    """Zaya: keys and queries pass a short convolution, half the values come a token late, the router is an MLP."""
    keys.need(k.EXPERTS, PER_TOKEN, ("moe_intermediate_size",), ("router_hidden_size",))
    size = dims(keys, ffn=False)
    window = keys.maybe("sliding_window")
    mixers = {
        "full": _convolved(keys, size.heads),
        "sliding": _convolved(keys, size.heads, window_tokens=window),
    }
    kinds = ["sliding" if item == "hybrid_sliding" else "full" for item in keys.items("layer_types")[: size.layers]]
    plan = [(kind, "first" if index == 0 else "moe") for index, kind in enumerate(kinds or ["full"] * size.layers)]
    first = _routed_by_mlp(keys, size)
    scale = vector("mlp.gate.router_states_scale", keys.size("router_hidden_size"), "router")
    ffns = {"first": first, "moe": replace(first, weights=(*first.weights, scale))}
    scales = ("post_attention_residual_scale", "post_mlp_residual_scale")
    around = (*norms(NORM_PAIR, size.hidden), *(vector(name, 4 * size.hidden, "other") for name in scales))
    layers = assemble(plan, mixers, ffns, around)
    draft = causal_lm(keys, size, layers, Style(tied=True, head_bias=keys.flag("lm_head_bias")))
    return replace(draft, outer=(*draft.outer, vector("input_hidden_states", 2 * size.hidden, "other")))


def _convolved(keys: Keys, heads: Heads, *, window_tokens: int | None = None) -> Block:
    first, second = keys.size("cca_time0", default=2), keys.size("cca_time1", default=2)
    channels = (heads.query + heads.kv) * heads.dim
    weights: Weights = (
        *attention_weights(heads, Projections(bias=_bias(keys))),
        *conv("self_attn.qkv_proj.conv_qk_depthwise", (channels, 1), first, part="attention"),
        *conv("self_attn.qkv_proj.conv_qk_grouped", (channels, heads.dim), second, part="attention"),
        vector("self_attn.qk_norm.temp", heads.kv, "attention", units=heads.kv),
    )
    late = state_bytes(recurrent=0, channels=channels, kernel=first + second - 1)
    kind: AttentionKind = "sliding" if window_tokens else "full"
    attention = heads.attention(kind, window_tokens=window_tokens)
    return Block(weights=weights, attention=replace(attention, state_bytes_per_sequence=late))


def _routed_by_mlp(keys: Keys, size: Dims) -> Block:
    routed, width = keys.size(*k.EXPERTS), keys.size("router_hidden_size")
    router: Weights = (
        *matrix("mlp.gate.down_proj", (width, size.hidden), "router", bias=True),
        *norm("mlp.gate.router_mlp.norm", width),
        *matrix("mlp.gate.router_mlp.fc1", (width, width), "router", bias=True),
        *matrix("mlp.gate.router_mlp.fc2", (width, width), "router", bias=True),
        *matrix("mlp.gate.router_mlp.out_proj", (routed + 1, width), "router"),
    )
    expert = mlp(size.hidden, keys.size("moe_intermediate_size"), prefix="mlp.experts", part="expert")
    return Block(weights=router, experts=Experts(routed=routed, per_token=keys.size(*PER_TOKEN), weights=expert))


READERS = {
    "flint": flint,
    "kolibri1": kolibri1,
    "beam": beam,
    "aria_text": aria_text,
    "zaya": zaya,
}
