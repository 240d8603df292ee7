"""Command R and R7B (Cohere 1, 2): one norm before parallel attention and MLP, tied head; windows in version 2."""

from __future__ import annotations

from chipwise.model import keys as k
from chipwise.model.blocks import Weights, vector
from chipwise.model.decoder import Style, decoder, dims, moe_plan
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys
from chipwise.model.mixture import Mix, mixture


def cohere(keys: Keys) -> Draft:
    """Command R, R+ (`use_qk_norm`: a scale for every element of every head)."""
    size = dims(keys)
    more: Weights = ()
    if keys.flag("use_qk_norm"):
        heads = size.heads
        more = (
            vector("self_attn.q_norm", heads.query * heads.dim),
            vector("self_attn.k_norm", heads.kv * heads.dim),
        )
    bias = "qkvo" if keys.flag("attention_bias") else ""
    return decoder(keys, Style(bias=bias, norm_names=("input_layernorm",), tied=True), more=more)


def cohere2(keys: Keys) -> Draft:
    """Command R7B, Command A: every fourth layer is full."""
    bias = "qkvo" if keys.flag("attention_bias") else ""
    pattern = keys.size("sliding_window_pattern", "_sliding_window_pattern", default=4)
    return decoder(keys, Style(bias=bias, norm_names=("input_layernorm",), tied=True, pattern=pattern))


def cohere2_moe(keys: Keys) -> Draft:
    """Cohere 2 with experts: their width is the MLP's; dense layers first where the config says so."""
    size = dims(keys)
    bias = "qkvo" if keys.flag("attention_bias") else ""
    pattern = keys.size("sliding_window_pattern", "_sliding_window_pattern", default=4)
    style = Style(bias=bias, norm_names=("input_layernorm",), tied=True, pattern=pattern)
    ffns = mixture(keys, size.hidden, Mix(width=k.FFN), dense=("prefix_dense_intermediate_size", *k.FFN))
    return decoder(keys, style, size=size, ffns=ffns, plan=moe_plan(keys, size.layers))


READERS = {"cohere": cohere, "cohere2": cohere2, "cohere2_moe": cohere2_moe, "cohere_compass_text": cohere2}
