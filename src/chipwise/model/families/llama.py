"""Llama, Mistral, Mixtral and models of their shape: RMS norms, gated MLP, grouped-query attention."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model import keys as k
from chipwise.model.blocks import Heads, Moe, matrix, moe, norm, norms, vector
from chipwise.model.decoder import LLAMA, NORM_PAIR, Style, causal_lm, decoder, dims
from chipwise.model.draft import Draft, stack
from chipwise.model.keys import Keys
from chipwise.model.mixture import Mix, mixture
from chipwise.model.spec import Experts


def llama(keys: Keys) -> Draft:
    """Llama: `attention_bias` puts biases on all four projections, `mlp_bias` on the MLP."""
    bias = "qkvo" if keys.flag("attention_bias") else ""
    return decoder(keys, Style(bias=bias, mlp_bias=keys.flag("mlp_bias")))


def mistral(keys: Keys) -> Draft:
    """Mistral: Llama with a sliding window where one is in force."""
    return decoder(keys, LLAMA)


def mixtral(keys: Keys) -> Draft:
    """Mixtral: every MLP is a choice of experts."""
    keys.need(k.EXPERTS, k.PER_TOKEN, k.FFN)
    size = dims(keys)
    mix = Mix(width=k.FFN, prefix="block_sparse_moe", router="block_sparse_moe.gate")
    return decoder(keys, LLAMA, ffns={"moe": mixture(keys, size.hidden, mix)["moe"]})


def arcee(keys: Keys) -> Draft:
    """Arcee AFM: Llama with an MLP that has no gate."""
    bias = "qkvo" if keys.flag("attention_bias") else ""
    return decoder(keys, Style(bias=bias, mlp_bias=keys.flag("mlp_bias"), gated=False))


def seed_oss(keys: Keys) -> Draft:
    """Seed-OSS: biases on Q, K, V; `attention_out_bias` apart."""
    bias = ("qkv" if keys.flag("attention_bias") else "") + ("o" if keys.flag("attention_out_bias") else "")
    return decoder(keys, Style(bias=bias, mlp_bias=keys.flag("mlp_bias")))


def biased(keys: Keys) -> Draft:
    """InternLM 1 (`bias`), InternLM 3 and ERNIE 4.5 (`use_bias`, `qkv_bias`): biases under other names."""
    every = keys.flag("bias") or keys.flag("use_bias")
    bias = "qkvo" if every else "qkv" if keys.flag("qkv_bias") else ""
    return decoder(keys, Style(bias=bias, mlp_bias=keys.flag("use_bias")))


def internlm(keys: Keys) -> Draft:
    """InternLM 1: `bias` (true where unsaid) is on the attention only."""
    return decoder(keys, Style(bias="qkvo" if keys.flag("bias", default=True) else ""))


def internlm2(keys: Keys) -> Draft:
    """InternLM 2: Llama with one fused projection; `bias` is on the attention."""
    return decoder(keys, Style(bias="qkvo" if keys.flag("bias") else ""))


def bitnet(keys: Keys) -> Draft:
    """BitNet: Llama with a norm before each output projection."""
    size = dims(keys)
    more = (*norm("self_attn.attn_sub_norm", size.hidden), *norm("mlp.ffn_sub_norm", size.ffn))
    return decoder(keys, Style(bias="qkvo" if keys.flag("attention_bias") else ""), more=more)


def nanochat(keys: Keys) -> Draft:
    """nanochat: norms without scales, an MLP without a gate."""
    return decoder(keys, Style(norm="none", gated=False, bias="qkvo" if keys.flag("attention_bias") else ""))


def apertus(keys: Keys) -> Draft:
    """Apertus: an MLP without a gate whose activation has two parameters, norms over each head."""
    style = Style(gated=False, qk_norm="head", bias="qkvo" if keys.flag("attention_bias") else "")
    return decoder(keys, style, more=(vector("mlp.act_fn", 2),))


def jetmoe(keys: Keys) -> Draft:
    """JetMoE: query and output projections are experts too, chosen by a router of their own; one KV head each."""
    keys.need(k.EXPERTS, k.PER_TOKEN, ("num_key_value_heads",), ("kv_channels",))
    hidden, routed, chosen = keys.size("hidden_size"), keys.size(*k.EXPERTS), keys.size(*k.PER_TOKEN)
    kv, dim = keys.size("num_key_value_heads"), keys.size("kv_channels")
    mixed = moe(Moe(hidden=hidden, routed=routed, per_token=chosen, width=keys.size("intermediate_size")))
    heads = Heads(hidden=hidden, query=kv * chosen, kv=kv, dim=dim)
    pair = (
        *matrix("self_attn.experts.input", (kv * dim, hidden), "expert", units=kv),
        *matrix("self_attn.experts.output", (hidden, kv * dim), "expert", units=kv, cut="in"),
    )
    found = mixed.experts or Experts(routed=routed, per_token=chosen, weights=())
    weights = (
        *mixed.weights,
        *matrix("self_attn.kv_proj", (2 * kv * dim, hidden), "attention", units=kv),
        *matrix("self_attn.router", (routed, hidden), "router"),
        *norms((*NORM_PAIR, "mlp.bias", "self_attn.bias"), hidden),
    )
    layer = stack(keys.layers(), weights, heads.attention())
    layers = tuple(replace(one, experts=replace(found, weights=(*found.weights, *pair))) for one in layer)
    return causal_lm(keys, dims(keys.also(num_attention_heads=kv * chosen, head_dim=dim)), layers, Style(tied=True))


def jais2(keys: Keys) -> Draft:
    """Jais 2: norms that shift, biases everywhere, an MLP without a gate."""
    bias = "qkvo" if keys.flag("attention_bias", default=True) else ""
    return decoder(keys, Style(bias=bias, norm="layer", gated=False, mlp_bias=keys.flag("mlp_bias", default=True)))


def diffllama(keys: Keys) -> Draft:
    """DiffLlama: four vectors of a head's width weigh one attention map against another."""
    dim = dims(keys).heads.dim
    lambdas = tuple(vector(f"self_attn.lambda_{name}", dim, "attention") for name in ("q1", "k1", "q2", "k2"))
    return decoder(keys, Style(bias="qkvo" if keys.flag("attention_bias") else ""), more=lambdas)


def doge(keys: Keys) -> Draft:
    """Doge: head norms, a decay for each KV head, learned residual weights; its experts are not read."""
    if keys.flag("is_moe"):
        raise keys.missing("the layout of Doge's experts (is_moe)")
    size = dims(keys)
    heads = size.heads
    bias = "qkvo" if keys.flag("attention_bias") else ""
    more = (
        *norms(("input_residual", "post_attention_residual"), size.hidden),
        vector("self_attn.A", heads.kv, "attention"),
        *matrix("self_attn.dt_proj", (heads.kv, heads.kv * heads.dim), "attention", bias=bool(bias)),
    )
    return decoder(keys, Style(bias=bias, qk_norm="head", mlp_bias=keys.flag("mlp_bias")), size=size, more=more)


def hyperclovax(keys: Keys) -> Draft:
    """HyperCLOVA X: Llama, with a norm after each block too where `use_post_norm`."""
    after = ("post_norm1", "post_norm2") if keys.flag("use_post_norm", default=True) else ()
    bias = "qkvo" if keys.flag("attention_bias") else ""
    return decoder(keys, Style(bias=bias, mlp_bias=keys.flag("mlp_bias"), norm_names=(*NORM_PAIR, *after)))


READERS = {
    "hyperclovax": hyperclovax,
    "granite_docling_text": llama,
    "cosmos3_edge_text": arcee,
    "jais2": jais2,
    "diffllama": diffllama,
    "doge": doge,
    "llama": llama,
    "mistral": mistral,
    "ministral": mistral,
    "ministral3": mistral,
    "mixtral": mixtral,
    "cwm": llama,
    "helium": llama,
    "smollm3": llama,
    "iquestcoder": llama,
    "aquila": llama,
    "yi": llama,
    "xverse": mistral,
    "baichuan": mistral,
    "exaone": mistral,
    "arcee": arcee,
    "seed_oss": seed_oss,
    "ernie4_5": biased,
    "internlm": internlm,
    "internlm2": internlm2,
    "internlm3": biased,
    "bitnet": bitnet,
    "nanochat": nanochat,
    "apertus": apertus,
    "apertus1p5_text": apertus,
    "jetmoe": jetmoe,
}
