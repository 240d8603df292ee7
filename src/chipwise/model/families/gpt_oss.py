"""GPT-OSS: alternating 128-token windows, attention sinks, biases everywhere, every layer a choice of experts."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model import keys as k
from chipwise.model.blocks import Block, Moe, Projections, assemble, attention_weights, moe, norms, vector
from chipwise.model.decoder import NORM_PAIR, causal_lm, dims, window_plan
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys


def gpt_oss(keys: Keys) -> Draft:
    """Even layers slide, odd ones are full, where `layer_types` does not say otherwise."""
    keys.need(k.EXPERTS, k.PER_TOKEN)
    size = dims(keys)
    bias = "qkvo" if keys.flag("attention_bias", default=True) else ""
    sinks = vector("self_attn.sinks", size.heads.query, "attention", units=size.heads.query)
    weights = (*attention_weights(size.heads, Projections(bias=bias)), sinks)
    window = keys.size("sliding_window")
    mixers = {
        "full": Block(weights=weights, attention=size.heads.attention()),
        "sliding": Block(weights=weights, attention=size.heads.attention("sliding", window_tokens=window)),
    }
    shape = Moe(
        hidden=size.hidden,
        routed=keys.size(*k.EXPERTS),
        per_token=keys.size(*k.PER_TOKEN),
        width=size.ffn,
        router_bias=True,
        expert_bias=True,
        router_name="mlp.router",
    )
    plan = [(kind, "moe") for kind in window_plan(keys, size.layers, pattern=2)]
    layers = assemble(plan, mixers, {"moe": moe(shape)}, norms(NORM_PAIR, size.hidden))
    return causal_lm(keys, size, layers)


def privacy_filter(keys: Keys) -> Draft:
    """OpenAI's privacy filter: gpt-oss looking both ways, within a window in every layer."""
    layers = keys.layers()
    draft = gpt_oss(keys.also(layer_types=["sliding_attention"] * layers))
    both = tuple(replace(layer, attention=replace(layer.attention, causal=False)) for layer in draft.layers)
    return replace(draft, kind="encoder", layers=both)


READERS = {"gpt_oss": gpt_oss, "openai_privacy_filter": privacy_filter}
