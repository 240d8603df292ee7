"""Decoders of no known family whose config says enough: read as Llama, Mixtral or DeepSeek are, with a warning."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chipwise.model import keys as k
from chipwise.model.decoder import Style, decoder, dims
from chipwise.model.draft import Draft
from chipwise.model.families.bert import bert
from chipwise.model.families.deepseek import deepseek
from chipwise.model.families.glm import mixed
from chipwise.model.keys import Keys
from chipwise.model.mixture import SHARED_COUNT, SHARED_WIDTH, WIDTH, Mix

_NEEDED = (("hidden_size",), ("num_hidden_layers",), ("num_attention_heads",), ("intermediate_size",), ("vocab_size",))
# Signs of a mechanism that a plain decoder does not have: what they add to a layer is not known.
_STRANGE = (
    "mamba", "ssm", "linear_attn", "linear_num", "conv_kernel", "conv_l", "lru", "rwkv", "vision", "audio", "visual",
    "encoder", "decoder_", "block_configs", "hybrid", "altup", "state_size", "retention", "kv_shared", "per_layer_in",
    "text_config", "latent_size", "cycles", "hc_mult", "gated_norm", "kv_source",
)  # fmt: skip


def generic_type(config: Mapping[str, Any]) -> bool:
    """Whether a config without a family says enough to be read as a plain decoder."""
    if not head_of(config).endswith(("ForCausalLM", "LMHeadModel")):
        return False
    strange = [name for name in config for part in _STRANGE if part in name.lower() and config[name]]
    return not strange and all(any(config.get(name) for name in group) for group in _NEEDED)


def head_of(config: Mapping[str, Any]) -> str:
    """The first architecture that a config names."""
    named = config.get("architectures")
    return named[0] if isinstance(named, list) and named and isinstance(named[0], str) else ""


_ENCODES = ("ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "Model", "ForPreTraining")


def encoder_type(config: Mapping[str, Any]) -> bool:
    """Whether a config without a family says enough to be read as BERT: token types and learned positions too."""
    said = (*_NEEDED, ("max_position_embeddings",), ("type_vocab_size",))
    strange = [name for name in config for part in _STRANGE if part in name.lower() and config[name]]
    return head_of(config).endswith(_ENCODES) and not strange and all(config.get(group[0]) for group in said)


def generic_encoder(keys: Keys) -> Draft:
    """An encoder with BERT's layers."""
    name = keys.text("unknown_type", default="none")
    warning = f"model_type {name!r} is not known: read as BERT by its keys, its tables and head may differ"
    return replace(bert(keys), warnings=(warning,))


def generic(keys: Keys) -> Draft:
    """A decoder with the norms of Llama; biases, head norms and experts as the usual keys say."""
    name = keys.text("unknown_type", default="none")
    warning = f"model_type {name!r} is not known: read as a plain decoder by its keys, biases and norms may differ"
    strange = unread_sizes(keys.data)
    more = (f"not known what {', '.join(strange)} add to a layer: read as nothing",) if strange else ()
    return replace(_read(keys), warnings=(warning, *more))


_SIZED = re.compile(r"(^|_)(dim|dims|size|rank|heads?|layers?|experts?|groups?|width|depth)($|_)")
# Sizes that a plain decoder reads, and those that say how it trains, looks up or generates.
_OTHER_USUAL = (
    "batch_size ep_size group_size image_size kv_lora_rank max_window_layers mlp_only_layers n_group "
    "n_groups num_expert_group num_nextn_predict_layers pool_size q_lora_rank qk_head_dim "
    "qk_nope_head_dim qk_rope_head_dim rotary_dim router_group_size sliding_window_size topk_group "
    "v_head_dim window_size"
)
_USUAL = frozenset(
    (
        *k.HIDDEN,
        *k.LAYERS,
        *k.HEADS,
        *k.KV_HEADS,
        *k.HEAD_DIM,
        *k.FFN,
        *k.VOCAB,
        *k.EXPERTS,
        *WIDTH,
        *SHARED_WIDTH,
        *SHARED_COUNT,
        *_OTHER_USUAL.split(),
    )
)


def unread_sizes(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Keys that speak of a size and that a plain decoder does not have.

    >>> unread_sizes({"hidden_size": 4096, "share_q_dim": 2048, "num_attention_groups": 1})
    ('num_attention_groups', 'share_q_dim')
    """
    found = (
        name
        for name, value in config.items()
        if isinstance(value, int) and not isinstance(value, bool) and value > 0 and name not in _USUAL
    )
    return tuple(sorted(name for name in found if _SIZED.search(name) and "token" not in name))


def _read(keys: Keys) -> Draft:
    if keys.maybe("kv_lora_rank"):
        return deepseek(keys)
    bias = "qkvo" if keys.flag("attention_bias") or keys.flag("use_bias") else "qkv" if keys.flag("qkv_bias") else ""
    normed = keys.flag("use_qk_norm") or keys.flag("qk_norm") or keys.flag("qk_layernorm")
    style = Style(bias=bias, mlp_bias=keys.flag("mlp_bias"), qk_norm="head" if normed else "")
    if not keys.maybe(*k.EXPERTS):
        return decoder(keys, style, size=dims(keys))
    width = WIDTH if keys.has(*WIDTH) else k.FFN
    shared = SHARED_WIDTH if keys.has(*SHARED_WIDTH) else ()
    return mixed(keys, style, Mix(width=width, shared=shared))


READERS = {"generic": generic, "generic_encoder": generic_encoder}
