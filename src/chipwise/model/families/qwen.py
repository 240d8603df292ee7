"""Qwen 1 to 3, dense and MoE: biases on Q, K and V (1, 2), or norms over each head (3)."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model.blocks import Block, mlp, table
from chipwise.model.decoder import Style, decoder, dims, moe_plan
from chipwise.model.draft import Draft, stack
from chipwise.model.keys import Keys
from chipwise.model.mixture import Mix, mixture

QWEN2 = Style(bias="qkv")


def qwen1(keys: Keys) -> Draft:
    """Qwen 1: `intermediate_size` counts gate and up together; no bias on the output projection."""
    size = dims(keys)
    ffns = {"dense": Block(weights=mlp(size.hidden, size.ffn // 2))}
    return decoder(keys, QWEN2, size=size, ffns=ffns)


def qwen2(keys: Keys) -> Draft:
    """Qwen 1.5, 2 and 2.5."""
    return decoder(keys, QWEN2)


def mimo(keys: Keys) -> Draft:
    """MiMo 7B: Qwen 2 with multi-token-prediction layers beside it."""
    draft = decoder(keys, QWEN2)
    count = keys.size("num_nextn_predict_layers", default=0)
    return replace(draft, mtp=stack(count, draft.layers[-1].weights, draft.layers[-1].attention))


def style3(keys: Keys) -> Style:
    """The style of Qwen 3: a norm over each query and key head."""
    return Style(bias="qkvo" if keys.flag("attention_bias") else "", qk_norm="head")


def qwen3(keys: Keys) -> Draft:
    """Qwen 3."""
    return decoder(keys, style3(keys))


QWEN2_MIX = Mix(shared=("shared_expert_intermediate_size",), shared_gate=True, shared_name="mlp.shared_expert")


def qwen2_moe(keys: Keys) -> Draft:
    """Qwen 1.5 and 2 MoE: a shared expert behind a gate of its own."""
    keys.need(("shared_expert_intermediate_size",))
    size = dims(keys, ffn=False)
    style = Style(bias="qkv" if keys.flag("qkv_bias", default=True) else "")
    return decoder(keys, style, size=size, ffns=mixture(keys, size.hidden, QWEN2_MIX), plan=moe_plan(keys, size.layers))


def molmo2(keys: Keys) -> Draft:
    """Molmo 2's text model: Qwen 3 with rows for image tokens, which the head does not have."""
    over_all = keys.text("qk_norm_type", default="qwen3") == "olmo"
    bias = "qkv" if keys.flag("attention_bias", "qkv_bias") else ""
    draft = decoder(keys, Style(bias=bias, qk_norm="full" if over_all else "head"))
    more = table("model.embed_tokens.extra", keys.size("additional_vocab_size", default=128), draft.hidden_size)
    return replace(draft, outer=(*draft.outer, more))


def qwen3_moe(keys: Keys) -> Draft:
    """Qwen 3 MoE: no shared expert."""
    size = dims(keys, ffn=False)
    return decoder(keys, style3(keys), size=size, ffns=mixture(keys, size.hidden), plan=moe_plan(keys, size.layers))


READERS = {
    "molmo2_text": molmo2,
    "qwen2": qwen2,
    "qwen2_vl_text": qwen2,
    "qwen2_5_vl_text": qwen2,
    "qwen2_5_omni_text": qwen2,
    "mimo": mimo,
    "qwen3": qwen3,
    "qwen3_vl_text": qwen3,
    "qwen2_moe": qwen2_moe,
    "qwen3_moe": qwen3_moe,
    "qwen3_vl_moe_text": qwen3_moe,
    "qwen3_omni_moe_text": qwen3_moe,
    "mellum": qwen3_moe,
}
