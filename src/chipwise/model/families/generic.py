"""Decoders of no known family whose config says enough: read as Llama, Mixtral or DeepSeek are, with a warning."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chipwise.errors import KnowledgeError
from chipwise.model import keys as k
from chipwise.model.decoder import LAYER_TYPES, Style, decoder, dims
from chipwise.model.draft import Draft
from chipwise.model.families.bert import bert
from chipwise.model.families.deepseek import deepseek
from chipwise.model.families.glm import mixed
from chipwise.model.families.vit import vit
from chipwise.model.keys import Keys
from chipwise.model.mixture import PER_TOKEN, SHARED_COUNT, SHARED_WIDTH, WIDTH, Mix
from chipwise.model.towers import VISION_LAYERS, VISION_WIDTH

# Signs of a mechanism that a plain decoder does not have: what they add to a layer is not known.
_STRANGE = (
    "mamba", "ssm", "linear_attn", "linear_num", "conv_kernel", "conv_l", "lru", "rwkv", "vision", "audio", "visual",
    "encoder", "decoder_", "block_config", "hybrid", "altup", "retention", "kv_shared", "per_layer_in", "recurren",
    "text_config", "latent_size", "cycles", "hc_mult", "gated_norm", "kv_source", "block_type", "delta_rule", "xlstm",
)  # fmt: skip
# Numbers under such words are experts, caches or states of a kind that the usual keys do not speak of.
_COUNTED = ("expert", "moe", "kv", "key_value", "state_", "memory", "swa_", "num_groups", "group_num")


def generic_type(config: Mapping[str, Any]) -> bool:
    """Whether a config without a family says that it writes text."""
    return head_of(config).endswith(("ForCausalLM", "LMHeadModel")) and not any(
        isinstance(value, Mapping) and any(value.get(name) for name in k.LAYERS) for value in config.values()
    )


def strange_keys(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Keys that speak of layers which a plain decoder does not have.

    >>> strange_keys({"hidden_size": 64, "expert_count": 8, "num_experts": 4, "mamba_d_state": 16, "use_mamba": False})
    ('expert_count', 'mamba_d_state')
    """
    words = [
        name
        for name, value in config.items()
        if value and "token" not in name and any(part in name.lower() for part in _STRANGE)
    ]
    counts = [
        name
        for name, value in config.items()
        if _is_count(value) and name not in _USUAL and any(part in name.lower() for part in _COUNTED)
    ]
    layers = config.get("layer_types")
    unknown = isinstance(layers, list) and any(item not in LAYER_TYPES for item in layers if isinstance(item, str))
    return tuple(sorted({*words, *counts, *(("layer_types",) if unknown else ())}))


def _is_count(value: object) -> bool:
    """Whether a value counts something: a number above 1, or one for each layer."""
    return bool(value) if isinstance(value, list | dict) else type(value) is int and value > 1


def _refuse_strange(keys: Keys, name: str) -> None:
    """Refuse a config of no known family that speaks of more than a plain decoder.

    Raises:
        KnowledgeError: it has keys whose effect on a layer is not known; they are named.
    """
    found = strange_keys(keys.data)
    if not found:
        return
    raise KnowledgeError(
        f"model_type {name!r} is not one we can read: what {', '.join(keys.path + key for key in found)} "
        f"add{'s' * (len(found) == 1)} to its layers is not known",
        why="a plain decoder has nothing of the kind, and a guess at its size is no answer",
        fix="give its safetensors or GGUF file, or its sizes as params:70b,layers=80,hidden=8192,heads=64,kv_heads=8",
    )


def head_of(config: Mapping[str, Any]) -> str:
    """The first architecture that a config names."""
    named = config.get("architectures")
    return named[0] if isinstance(named, list) and named and isinstance(named[0], str) else ""


_ENCODES = ("ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "Model", "ForPreTraining")


_BERT = (
    "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size",
    "max_position_embeddings", "type_vocab_size",
)  # fmt: skip


def encoder_type(config: Mapping[str, Any]) -> bool:
    """Whether a config without a family says enough to be read as BERT: token types and learned positions too."""
    return head_of(config).endswith(_ENCODES) and not strange_keys(config) and all(config.get(name) for name in _BERT)


def generic_encoder(keys: Keys) -> Draft:
    """An encoder with BERT's layers."""
    name = keys.text("unknown_type", default="none")
    warning = f"model_type {name!r} is not known: read as BERT by its keys, its tables and head may differ"
    return replace(bert(keys), warnings=(warning,))


def vision_type(config: Mapping[str, Any]) -> bool:
    """Whether a config without a family speaks of patches of an image, as a vision transformer does."""
    return bool(config.get("patch_size")) and any(config.get(name) for name in k.LAYERS)


def generic_vision(keys: Keys) -> Draft:
    """A vision transformer with ViT's layers: every size must be said.

    Raises:
        KnowledgeError: a size is missing, or a key speaks of layers that ViT does not have; they are named.
    """
    name = keys.text("unknown_type", default="none")
    keys.need(VISION_WIDTH, VISION_LAYERS, k.HEADS, k.FFN, ("image_size", "img_size"), ("patch_size",))
    _refuse_strange(keys, name)
    known = keys.also(image_size=keys.raw("image_size", "img_size"))
    warning = f"model_type {name!r} is not known: read as ViT by its keys, a gate in its MLP or its head may differ"
    return replace(vit(known), warnings=(warning,))


def generic(keys: Keys) -> Draft:
    """A decoder with the norms of Llama; biases, head norms and experts as the usual keys say.

    Raises:
        KnowledgeError: a size is missing, or a key speaks of layers that are not known; they are named.
    """
    name = keys.text("unknown_type", default="none")
    keys.need(k.HIDDEN, k.LAYERS, k.HEADS, (*k.FFN, *WIDTH), k.VOCAB)
    _refuse_strange(keys, name)
    mlp = "a gated MLP" if _gated(keys) else "an MLP without a gate"
    warning = f"model_type {name!r} is not known: read as a plain decoder with {mlp}, biases and norms may differ"
    strange = unread_sizes(keys.data)
    more = (f"not known what {', '.join(strange)} add to a layer: read as nothing",) if strange else ()
    return replace(_read(keys), warnings=(warning, *more))


# Activations that are never put behind a gate.
_UNGATED = ("relu2", "squared_relu", "relu_squared")


def _gated(keys: Keys) -> bool:
    return keys.text("hidden_act", "mlp_hidden_act", "activation") not in _UNGATED


_SIZED = re.compile(r"(^|_)(dim|dims|size|rank|heads?|layers?|experts?|groups?|width|depth)($|_)")
# Sizes that a plain decoder reads, and those that say how it trains, looks up or generates.
_OTHER_USUAL = (
    "batch_size decoder_sparse_step ep_size first_k_dense_replace group_size image_size index_head_dim "
    "index_n_heads kv_lora_rank max_window_layers mlp_only_layers "
    "moe_layer_freq n_dense_layers n_group n_groups num_expert_group num_nextn_predict_layers pool_size q_lora_rank "
    "qk_head_dim qk_nope_head_dim qk_rope_head_dim rotary_dim router_group_size sliding_window_size topk_group "
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
        *PER_TOKEN,
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
    bias = "qkvo" if _any(keys, "attention_bias", "use_bias") else "qkv" if _any(keys, *_QKV_BIAS) else ""
    normed = _any(keys, "use_qk_norm", "qk_norm", "qk_layernorm")
    style = Style(
        bias=bias,
        mlp_bias=_any(keys, "mlp_bias", "use_bias"),
        qk_norm="head" if normed else "",
        norm="layer" if keys.has(*_LAYER_NORM) and not keys.has("rms_norm_eps") else "rms",
        gated=_gated(keys),
    )
    if not keys.maybe(*k.EXPERTS):
        return decoder(keys, style, size=dims(keys))
    width = WIDTH if keys.has(*WIDTH) else k.FFN
    shared = SHARED_WIDTH if keys.has(*SHARED_WIDTH) else ()
    return mixed(keys, style, Mix(width=width, shared=shared, gated=style.gated))


_QKV_BIAS = ("qkv_bias", "use_qkv_bias", "add_qkv_bias")
_LAYER_NORM = ("layer_norm_eps", "layer_norm_epsilon", "layernorm_epsilon")


def _any(keys: Keys, *names: str) -> bool:
    return any(keys.raw(name) is True for name in names)


READERS = {"generic": generic, "generic_encoder": generic_encoder, "generic_vision": generic_vision}
