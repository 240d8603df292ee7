"""Kimi Linear and K3: three layers of Kimi delta attention to each layer of latent attention, DeepSeek's mixture."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model.blocks import Block, Weights, assemble, matrix, norm, norms
from chipwise.model.decoder import NORM_PAIR, Dims, causal_lm, dims, moe_plan
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys, side_by_side
from chipwise.model.mixture import Mix, mixture
from chipwise.model.mla import mla_attention, mla_of, mla_weights
from chipwise.model.recurrent import Kda, kimi_delta


def _linear_shape(keys: Keys, hidden: int) -> Kda:
    inner = keys.mapping("linear_attn_config")
    known = Keys(data=inner, path=f"{keys.path}linear_attn_config.") if inner else keys
    heads, dim, kernel = ("num_heads", "head_dim", "short_conv_kernel_size")
    return Kda(
        hidden=hidden,
        heads=known.size(heads) if inner else keys.size("linear_num_heads"),
        dim=known.size(dim) if inner else keys.size("linear_head_dim"),
        kernel=known.size(kernel, default=4) if inner else keys.size("linear_conv_kernel_dim", default=4),
        full_gate=known.flag("use_full_rank_gate"),
    )


def _kinds(keys: Keys, layers: int) -> list[str]:
    """`linear_attn_config.full_attn_layers` counts from 1; else `layer_types`; else every fourth layer is full."""
    inner = keys.mapping("linear_attn_config")
    full = inner.get("full_attn_layers")
    if isinstance(full, list):
        known = set(Keys(data=inner, path=f"{keys.path}linear_attn_config.").sizes("full_attn_layers"))
        return ["mla" if index + 1 in known else "linear" for index in range(layers)]
    listed = keys.items("layer_types")
    if listed:
        return ["linear" if "linear" in str(item) else "mla" for item in listed[:layers]]
    return ["mla" if (index + 1) % 4 == 0 or index + 1 == layers else "linear" for index in range(layers)]


def kimi_linear(keys: Keys) -> Draft:
    """Kimi Linear and the text model of K3 (experts on a projected input, a gate on the latent attention)."""
    size = dims(keys, ffn=False)
    shape = mla_of(keys, size.hidden)
    gate: Weights = ()
    if keys.flag("mla_use_output_gate"):
        width = shape.heads * shape.value_dim
        gate = matrix("self_attn.g_proj", (width, size.hidden), "attention", units=shape.heads)
    mixers = {
        "mla": Block(weights=(*mla_weights(shape), *gate), attention=mla_attention(shape)),
        "linear": kimi_delta(_linear_shape(keys, size.hidden)),
    }
    ffns = _ffns(keys, size)
    plan = side_by_side(keys, "layer_types", _kinds(keys, size.layers), moe_plan(keys, size.layers))
    return causal_lm(keys, size, assemble(plan, mixers, ffns, norms(NORM_PAIR, size.hidden)))


def _ffns(keys: Keys, size: Dims) -> dict[str, Block]:
    latent = keys.maybe("routed_expert_hidden_size")
    if not latent:
        return mixture(keys, size.hidden, Mix())
    kinds = mixture(keys, size.hidden, Mix())
    inside = mixture(keys, latent, Mix())["moe"].experts
    both: Weights = (
        *matrix("block_sparse_moe.fc1_latent_proj", (latent, size.hidden), "mlp"),
        *matrix("block_sparse_moe.fc2_latent_proj", (size.hidden, latent), "mlp"),
        *(norm("block_sparse_moe.latent_norm", latent) if keys.flag("latent_moe_use_norm") else ()),
    )
    moe = replace(kinds["moe"], weights=(*kinds["moe"].weights, *both), experts=inside)
    return {**kinds, "moe": moe}


def bailing_hybrid(keys: Keys) -> Draft:
    """Ling and Ring hybrid: Kimi delta attention with full-rank gates, latent attention gated by head, a mixture."""
    size = dims(keys, ffn=False)
    shape = mla_of(keys, size.hidden)
    gate = matrix("self_attn.g_proj", (shape.heads, size.hidden), "attention", units=shape.heads)
    linear = Kda(
        hidden=size.hidden,
        heads=keys.maybe("linear_num_heads") or size.heads.query,
        dim=keys.maybe("linear_head_dim", "head_dim") or size.heads.dim,
        kernel=keys.size("linear_conv_kernel_dim", "short_conv_kernel_size", default=4),
        full_gate=True,
        full_decay=True,
    )
    mixers = {
        "mla": Block(weights=(*mla_weights(shape), *gate), attention=mla_attention(shape)),
        "linear": kimi_delta(linear),
    }
    every = keys.size("layer_group_size", default=6, least=1)
    kinds = (
        _kinds(keys, size.layers)
        if keys.items("layer_types")
        else ["mla" if (index + 1) % every == 0 else "linear" for index in range(size.layers)]
    )
    plan = side_by_side(keys, "layer_types", kinds, moe_plan(keys, size.layers))
    layers = assemble(plan, mixers, mixture(keys, size.hidden, Mix()), norms(NORM_PAIR, size.hidden))
    return causal_lm(keys, size, layers)


READERS = {"kimi_linear": kimi_linear, "bailing_hybrid": bailing_hybrid}
