"""Command R and R7B (Cohere 1, 2): one norm before parallel attention and MLP, tied head; windows in version 2."""

from __future__ import annotations

from chipwise.model.blocks import Weights, vector
from chipwise.model.decoder import Style, decoder, dims
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys


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


READERS = {"cohere": cohere, "cohere2": cohere2}
