"""Decoders whose layers differ in heads or windows: Laguna, MiMo V2, Step 3.5, AFMoE (Trinity), LFM2, SmolLM-like."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model import keys as k
from chipwise.model.blocks import (
    Block,
    Heads,
    Projections,
    assemble,
    attention_weights,
    matrix,
    mlp,
    norms,
    vector,
)
from chipwise.model.decoder import NORM_PAIR, Dims, Style, causal_lm, decoder, dims, moe_plan, window_plan
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys, side_by_side
from chipwise.model.mixture import Mix, mixture
from chipwise.model.recurrent import short_conv


def laguna(keys: Keys) -> Draft:
    """Laguna: `num_attention_heads_per_layer`, a gate for each head, windows, a score correction for each expert."""
    size = dims(keys, ffn=False)
    per_layer = keys.sizes("num_attention_heads_per_layer") or (size.heads.query,) * size.layers
    gating = keys.raw("gating")
    kinds = window_plan(keys, size.layers) if keys.has("layer_types") else ["full"] * size.layers
    mixers: dict[str, Block] = {}
    for kind, query in set(zip(kinds, per_layer, strict=False)):
        heads = replace(size.heads, query=query)
        mixers[f"{kind}/{query}"] = _gated(keys, heads, kind, by_element=gating == "per-element", gated=bool(gating))
    known = keys if keys.has("mlp_layer_types", "mlp_only_layers") else keys.also(mlp_only_layers=[0])
    ffns = mixture(known, size.hidden, Mix(shared=("shared_expert_intermediate_size",)))
    scores = vector("mlp.e_score_correction_bias", keys.size(*k.EXPERTS), "router")
    ffns["moe"] = replace(ffns["moe"], weights=(*ffns["moe"].weights, scores))
    plan = [
        (f"{kind}/{query}", ffn)
        for kind, query, ffn in side_by_side(
            keys, "num_attention_heads_per_layer", kinds, per_layer, moe_plan(known, size.layers)
        )
    ]
    return causal_lm(keys, size, assemble(plan, mixers, ffns, norms(NORM_PAIR, size.hidden)))


def _gated(keys: Keys, heads: Heads, kind: str, *, gated: bool, by_element: bool) -> Block:
    style = Projections(bias="qkvo" if keys.flag("attention_bias") else "", qk_norm="head")
    width = heads.query * (heads.dim if by_element else 1)
    gate = matrix("self_attn.g_proj", (width, heads.hidden), "attention", units=heads.query) if gated else ()
    window = keys.maybe("sliding_window")
    attention = heads.attention("sliding", window_tokens=window) if kind == "sliding" else heads.attention()
    return Block(weights=(*attention_weights(heads, style), *gate), attention=attention)


def mimo_v2_flash(keys: Keys) -> Draft:
    """MiMo V2 Flash: windowed layers have their own heads and a sink for each; values are narrower than keys."""
    size = dims(keys, ffn=False)
    full = replace(size.heads, value_dim=keys.size("v_head_dim", default=0))
    slide = Heads(
        hidden=size.hidden,
        query=keys.size("swa_num_attention_heads", default=full.query),
        kv=keys.size("swa_num_key_value_heads", default=full.kv * 2),
        dim=keys.size("swa_head_dim", default=full.dim),
        value_dim=keys.size("swa_v_head_dim", default=full.v_dim),
    )
    window = keys.size("sliding_window", "sliding_window_size")
    sinks = vector("self_attn.sinks", slide.query, "attention", units=slide.query)
    mixers = {
        "full": Block(weights=attention_weights(full), attention=full.attention()),
        "sliding": Block(
            weights=(*attention_weights(slide), sinks),
            attention=slide.attention("sliding", window_tokens=window),
        ),
    }
    listed = keys.items("hybrid_layer_pattern")
    kinds = ["sliding" if flag else "full" for flag in listed[: size.layers]]
    kinds = kinds or window_plan(keys, size.layers)
    plan = side_by_side(keys, "hybrid_layer_pattern", kinds, moe_plan(keys, size.layers))
    ffns = mixture(keys, size.hidden)
    return causal_lm(keys, size, assemble(plan, mixers, ffns, norms(NORM_PAIR, size.hidden)))


def step3p5(keys: Keys) -> Draft:
    """Step 3.5 and the text model of 3.7: a gate for each head, windowed layers with heads of their own."""
    size = dims(keys, ffn=False)
    other = keys.mapping("attention_other_setting")
    known = Keys(data=other)
    slide = replace(
        size.heads,
        query=known.size("num_attention_heads", default=size.heads.query),
        kv=known.size("num_attention_groups", "num_key_value_heads", default=size.heads.kv),
    )
    groups = keys.maybe("num_attention_groups")
    full = replace(size.heads, kv=groups or size.heads.kv)
    mixers = {
        "full": _gated(keys, full, "full", gated=True, by_element=False),
        "sliding": _gated(keys, slide, "sliding", gated=True, by_element=False),
    }
    mix = Mix(shared=("share_expert_dim", "share_expert_dims"), router="moe.gate", prefix="moe")
    ffns = mixture(keys, size.hidden, mix)
    plan = side_by_side(keys, "layer_types", window_plan(keys, size.layers), _step_moe(keys, size))
    return causal_lm(keys, size, assemble(plan, mixers, ffns, norms(NORM_PAIR, size.hidden)))


def _step_moe(keys: Keys, size: Dims) -> list[str]:
    listed = keys.raw("moe_layers_enum")
    if isinstance(listed, str):
        moe = {int(part) for part in listed.split(",") if part.strip().isdigit()}
        return ["moe" if index in moe else "dense" for index in range(size.layers)]
    return moe_plan(keys, size.layers)


def afmoe(keys: Keys) -> Draft:
    """AFMoE (Trinity): a gate as wide as the heads, four norms, a bias for each expert's score, windows 3 in 4."""
    size = dims(keys, ffn=False)
    width = size.heads.query * size.heads.dim
    gate = matrix("self_attn.gate_proj", (width, size.hidden), "attention", units=size.heads.query)
    weights = (*attention_weights(size.heads, Projections(qk_norm="head")), *gate)
    window = keys.maybe("sliding_window")
    mixers = {
        "full": Block(weights=weights, attention=size.heads.attention()),
        "sliding": Block(weights=weights, attention=size.heads.attention("sliding", window_tokens=window)),
    }
    kinds = window_plan(keys, size.layers, pattern=keys.size("global_attn_every_n_layers", default=4))
    dense = keys.size("num_dense_layers", default=1)
    ffns = mixture(keys, size.hidden, Mix(router="mlp.router.gate"))
    scores = vector("mlp.expert_bias", keys.size(*k.EXPERTS), "router")
    ffns["moe"] = replace(ffns["moe"], weights=(*ffns["moe"].weights, scores))
    plan = [(kind, "dense" if index < dense else "moe") for index, kind in enumerate(kinds)]
    names = (*NORM_PAIR, "pre_mlp_layernorm", "post_mlp_layernorm")
    return causal_lm(keys, size, assemble(plan, mixers, ffns, norms(names, size.hidden)))


def _lfm2_width(keys: Keys) -> int:
    width = keys.size("block_ff_dim", "intermediate_size")
    if not keys.flag("block_auto_adjust_ff_dim", default=True):
        return width
    scaled = int(keys.number("block_ffn_dim_multiplier", default=1.0) * int(2 * width / 3))
    multiple = keys.size("block_multiple_of", default=256, least=1)
    return -(-scaled // multiple) * multiple


def _lfm2_kinds(keys: Keys, layers: int) -> list[str]:
    listed = keys.items("layer_types")
    if listed:
        return ["conv" if item == "conv" else "full" for item in listed[:layers]]
    full = keys.sizes("full_attn_idxs")
    known = set(full) if full else set(range(layers))
    return ["full" if index in known else "conv" for index in range(layers)]


def _lfm2(keys: Keys, ffns: dict[str, Block], labels: list[str]) -> Draft:
    size = dims(keys, ffn=False)
    weights = attention_weights(size.heads, Projections(qk_norm="head"))
    kernel = keys.size("conv_L_cache", default=3)
    mixers = {
        "full": Block(weights=weights, attention=size.heads.attention()),
        "conv": short_conv(size.hidden, kernel, bias=keys.flag("conv_bias")),
    }
    plan = side_by_side(keys, "layer_types", _lfm2_kinds(keys, size.layers), labels)
    layers = assemble(plan, mixers, ffns, norms(("operator_norm", "ffn_norm"), size.hidden))
    return causal_lm(keys, size, layers, Style(tied=True))


def lfm2(keys: Keys) -> Draft:
    """LFM2: gated short convolutions with some attention layers; the MLP width is rounded as the class rounds it."""
    size = dims(keys, ffn=False)
    dense = Block(weights=mlp(size.hidden, _lfm2_width(keys), prefix="feed_forward"))
    return _lfm2(keys, {"dense": dense}, ["dense"] * size.layers)


def lfm2_moe(keys: Keys) -> Draft:
    """LFM2 MoE: dense layers first, then experts with a bias for each score."""
    size = dims(keys, ffn=False)
    first = keys.size("num_dense_layers", default=0)
    ffns = mixture(keys, size.hidden, Mix(prefix="feed_forward", router="feed_forward.gate"))
    labels = ["dense" if index < first else "moe" for index in range(size.layers)]
    return _lfm2(keys, ffns, labels)


def lfm3(keys: Keys) -> Draft:
    """LFM3: LFM2's convolutions with windowed and full attention, a gate for each head, norms after each block."""
    size = dims(keys)
    gate = keys.flag("use_attention_gate", default=True)
    sandwich = ("post_operator_norm", "post_ffn_norm") if keys.flag("use_sandwich_norm", default=True) else ()
    weights = (
        *attention_weights(size.heads, Projections(qk_norm="head")),
        *(matrix("self_attn.g_proj", (size.heads.query, size.hidden), "attention", units=size.heads.query)
          if gate else ()),
    )  # fmt: skip
    window = keys.maybe("sliding_window")
    mixers = {
        "full": Block(weights=weights, attention=size.heads.attention()),
        "sliding": Block(weights=weights, attention=size.heads.attention("sliding", window_tokens=window)),
        "conv": short_conv(size.hidden, keys.size("conv_L_cache", default=7), bias=keys.flag("conv_bias")),
    }
    listed = keys.items("layer_types")
    if len(listed) < size.layers:
        raise keys.missing("layer_types")
    names = {"conv": "conv", "sliding_attention": "sliding"}
    plan = [(names.get(str(item), "full"), "dense") for item in listed[: size.layers]]
    ffns = {"dense": Block(weights=mlp(size.hidden, size.ffn, prefix="feed_forward"))}
    around = norms(("operator_norm", "ffn_norm", *sandwich), size.hidden)
    return causal_lm(keys, size, assemble(plan, mixers, ffns, around), Style(tied=True))


def llama4_text(keys: Keys) -> Draft:
    """Llama 4: chunked attention but for every `no_rope_layer_interval`-th layer; experts with a shared one."""
    size = dims(keys, ffn=False)
    keys.need(("intermediate_size",), ("intermediate_size_mlp",))
    interval = keys.size("no_rope_layer_interval", default=4) or 4
    listed = keys.sizes("no_rope_layers")
    roped = listed or tuple(int((index + 1) % interval != 0) for index in range(size.layers))
    plain = attention_weights(size.heads, Projections(bias="qkvo" if keys.flag("attention_bias") else ""))
    chunk = keys.maybe("attention_chunk_size")
    chunked = size.heads.attention("chunked", window_tokens=chunk) if chunk else size.heads.attention()
    mixers = {
        "full": Block(weights=plain, attention=size.heads.attention()),
        "chunked": Block(weights=plain, attention=chunked),
    }
    mix = Mix(width=("intermediate_size",), shared=("intermediate_size",), prefix="feed_forward")
    mix = replace(mix, router="feed_forward.router", shared_name="feed_forward.shared_expert")
    ffns = mixture(keys, size.hidden, mix, dense=("intermediate_size_mlp",))
    step = keys.size("interleave_moe_layer_step", default=1) or 1
    moe = set(keys.sizes("moe_layers")) or set(range(step - 1, size.layers, step))
    plan = [("chunked" if roped[index] else "full", "moe" if index in moe else "dense") for index in range(size.layers)]
    return causal_lm(keys, size, assemble(plan, mixers, ffns, norms(NORM_PAIR, size.hidden)))


def vaultgemma(keys: Keys) -> Draft:
    """VaultGemma: Gemma 2 with two norms a layer."""
    bias = "qkvo" if keys.flag("attention_bias") else ""
    return decoder(keys, Style(bias=bias, tied=True, pattern=2))


READERS = {
    "laguna": laguna,
    "mimo_v2_flash": mimo_v2_flash,
    "step3p5": step3p5,
    "afmoe": afmoe,
    "lfm2": lfm2,
    "lfm2_moe": lfm2_moe,
    "lfm3": lfm3,
    "llama4_text": llama4_text,
    "vaultgemma": vaultgemma,
}
