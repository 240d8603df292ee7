"""Phi 1 to 4: parallel attention and MLP under one norm with biases (1, 2), Llama's shape (3, 4), MoE (3.5)."""

from __future__ import annotations

from chipwise.model import keys as k
from chipwise.model.blocks import Weights, norm
from chipwise.model.decoder import LLAMA, Style, decoder, dims
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys
from chipwise.model.mixture import Mix, mixture


def phi(keys: Keys) -> Draft:
    """Phi 1, 1.5 and 2: biases everywhere, also on the head."""
    size = dims(keys, ffn_times=4)
    style = Style(
        bias="qkvo",
        norm="layer",
        norm_names=("input_layernorm",),
        gated=False,
        mlp_bias=True,
        head_bias=True,
        qk_norm="head" if keys.flag("qk_layernorm") else "",
        qk_norm_kind="layer",
    )
    return decoder(keys, style, size=size)


def phi3(keys: Keys) -> Draft:
    """Phi 3, 3.5 mini, 4 and 4 mini."""
    return decoder(keys, LLAMA)


def phi3small(keys: Keys) -> Draft:
    """Phi 3 small: norms with shifts, biases everywhere, tied head, block-sparse attention that caches everything."""
    keys.need(("ff_intermediate_size",))
    style = Style(bias="qkvo", norm="layer", mlp_bias=True, tied=True)
    return decoder(keys.also(intermediate_size=keys.size("ff_intermediate_size")), style)


def phimoe(keys: Keys) -> Draft:
    """Phi 3.5 MoE: norms with shifts, biases on the attention and the head where the config says so."""
    keys.need(k.EXPERTS, k.PER_TOKEN, k.FFN)
    style = Style(bias="qkvo" if keys.flag("attention_bias") else "", norm="layer", head_bias=keys.flag("lm_head_bias"))
    size = dims(keys)
    mix = Mix(width=k.FFN, router="mlp.router")
    return decoder(keys, style, ffns={"moe": mixture(keys, size.hidden, mix)["moe"]})


def stablelm(keys: Keys) -> Draft:
    """StableLM 2 and 3B: norms with shifts; one norm where attention and MLP run in parallel."""
    size = dims(keys)
    parallel = keys.flag("use_parallel_residual")
    style = Style(
        bias="qkv" if keys.flag("use_qkv_bias") else "",
        norm="layer",
        norm_names=("input_layernorm",) if parallel else ("input_layernorm", "post_attention_layernorm"),
    )
    more: Weights = ()
    if keys.flag("qk_layernorm"):
        more = (
            *norm("self_attn.q_layernorm", size.heads.query * size.heads.dim),
            *norm("self_attn.k_layernorm", size.heads.kv * size.heads.dim),
        )
    return decoder(keys, style, more=more)


def starcoder2(keys: Keys) -> Draft:
    """StarCoder 2: biases everywhere, no gate."""
    bias = keys.flag("use_bias", default=True)
    style = Style(bias="qkvo" if bias else "", norm="layer", gated=False, mlp_bias=bias, tied=True)
    return decoder(keys, style)


def persimmon(keys: Keys) -> Draft:
    """Persimmon: biases everywhere, norms with shifts over each head."""
    style = Style(
        bias="qkvo",
        norm="layer",
        gated=False,
        mlp_bias=True,
        qk_norm="head" if keys.flag("qk_layernorm", default=True) else "",
        qk_norm_kind="layer",
    )
    return decoder(keys, style)


def orion(keys: Keys) -> Draft:
    """Orion: Llama with norms that shift."""
    return decoder(keys, Style(norm="layer"))


def nemotron(keys: Keys) -> Draft:
    """Nemotron 3 and 4: norms with shifts, squared ReLU without a gate."""
    bias = "qkvo" if keys.flag("attention_bias") else ""
    return decoder(keys, Style(bias=bias, norm="layer", gated=False, mlp_bias=keys.flag("mlp_bias")))


READERS = {
    "phi": phi,
    "phi-msft": phi,
    "phi3": phi3,
    "phi3small": phi3small,
    "phimoe": phimoe,
    "stablelm": stablelm,
    "stablelm_epoch": stablelm,
    "mixformer-sequential": phi,
    "starcoder2": starcoder2,
    "persimmon": persimmon,
    "nemotron": nemotron,
    "orion": orion,
}
