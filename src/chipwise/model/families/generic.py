"""Decoders of no known family whose config says enough: read as Llama, Mixtral or DeepSeek are, with a warning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chipwise.errors import KnowledgeError
from chipwise.model import keys as k
from chipwise.model.decoder import Style, decoder, dims
from chipwise.model.draft import Draft
from chipwise.model.families.bert import bert
from chipwise.model.families.deepseek import deepseek
from chipwise.model.families.glm import mixed
from chipwise.model.families.vit import vit
from chipwise.model.keys import Keys
from chipwise.model.mixture import SHARED_WIDTH, WIDTH, Mix
from chipwise.model.strange import strange_keys, unread_keys
from chipwise.model.towers import VISION_LAYERS, VISION_WIDTH


def generic_type(config: Mapping[str, Any]) -> bool:
    """Whether a config without a family says that it writes text."""
    return head_of(config).endswith(("ForCausalLM", "LMHeadModel")) and not any(
        isinstance(value, Mapping) and any(value.get(name) for name in k.LAYERS) for value in config.values()
    )


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
    _refuse_strange(keys, name)
    keys.need(VISION_WIDTH, VISION_LAYERS, k.HEADS, k.FFN, ("image_size", "img_size"), ("patch_size",))
    known = keys.also(image_size=keys.raw("image_size", "img_size"))
    warning = f"model_type {name!r} is not known: read as ViT by its keys, a gate in its MLP or its head may differ"
    return replace(vit(known), warnings=(warning,))


def generic(keys: Keys) -> Draft:
    """A decoder with the norms of Llama; biases, head norms and experts as the usual keys say.

    Raises:
        KnowledgeError: a size is missing, or a key speaks of layers that are not known; they are named.
    """
    name = keys.text("unknown_type", default="none")
    _refuse_strange(keys, name)
    keys.need(k.HIDDEN, k.LAYERS, k.HEADS, (*k.FFN, *WIDTH), k.VOCAB)
    mlp = "a gated MLP" if _gated(keys) else "an MLP without a gate"
    warning = f"model_type {name!r} is not known: read as a plain decoder with {mlp}, biases and norms may differ"
    unread = unread_keys(keys.data)
    more = (f"not known what {', '.join(unread)} add to a layer: read as nothing",) if unread else ()
    return replace(_read(keys), warnings=(warning, *more))


# Activations that are never put behind a gate.
_UNGATED = ("relu2", "squared_relu", "relu_squared")


def _gated(keys: Keys) -> bool:
    return keys.text("hidden_act", "mlp_hidden_act", "activation") not in _UNGATED


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
