"""Llama, Mistral, Mixtral and models of their shape: RMS norms, gated MLP, grouped-query attention."""

from __future__ import annotations

from chipwise.model import keys as k
from chipwise.model.blocks import norm, vector
from chipwise.model.decoder import LLAMA, Style, decoder, dims
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys
from chipwise.model.mixture import Mix, mixture


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


READERS = {
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
}
