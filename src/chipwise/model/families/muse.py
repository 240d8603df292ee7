"""Muse Glimmer and Spark: gates as wide as the heads, windows in three layers of four; Spark's experts are narrower."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model import keys as k
from chipwise.model.blocks import Block, Moe, Projections, Weights, assemble, matrix, moe, norms, vector
from chipwise.model.decoder import NORM_FOUR, Dims, Style, attention_mixers, causal_lm, decoder, dims, window_plan
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys
from chipwise.model.mixture import PER_TOKEN


def _gate(size: Dims) -> Weights:
    width = size.heads.query * size.heads.dim
    return matrix("self_attn.gate_proj", (width, size.hidden), "attention", units=size.heads.query)


def _bias(keys: Keys) -> str:
    return "qkvo" if keys.flag("attention_bias") else ""


def muse_glimmer(keys: Keys) -> Draft:
    """Muse Glimmer: four norms a layer."""
    size = dims(keys)
    return decoder(keys, Style(bias=_bias(keys), norm_names=NORM_FOUR), size=size, more=_gate(size))


def muse_spark(keys: Keys) -> Draft:
    """Muse Spark: experts on a projected input, a gate on every residual."""
    keys.need(k.EXPERTS, PER_TOKEN, ("moe_hidden_size",), ("moe_intermediate_size",))
    size = dims(keys, ffn=False)
    inside = keys.size("moe_hidden_size")
    block = moe(
        Moe(
            hidden=size.hidden,
            routed=keys.size(*k.EXPERTS),
            per_token=keys.size(*PER_TOKEN),
            width=keys.size("moe_intermediate_size"),
            latent=inside,
        )
    )
    more = norms(("mlp.pre_expert_norm", "mlp.experts.post_expert_norm"), inside)
    ffns = {"moe": Block(weights=(*block.weights, *more), experts=block.experts)}
    mixers = {
        kind: replace(mixer, weights=(*mixer.weights, *_gate(size)))
        for kind, mixer in attention_mixers(keys, size.heads, Projections(bias=_bias(keys))).items()
    }
    gates = ("post_attention_residual_gate", "post_feedforward_residual_gate")
    names = ("input_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm")
    around = (*norms(names, size.hidden), *(vector(name, size.hidden, "other") for name in gates))
    plan = [(kind, "moe") for kind in window_plan(keys, size.layers, pattern=4)]
    return causal_lm(keys, size, assemble(plan, mixers, ffns, around))


READERS = {"muse_glimmer_text": muse_glimmer, "muse_spark_text": muse_spark}
