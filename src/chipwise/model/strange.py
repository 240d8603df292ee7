"""Which keys of a config a plain decoder does not read: those that speak of other layers, and those that may."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from chipwise.model import keys as k
from chipwise.model.decoder import LAYER_TYPES
from chipwise.model.mixture import PER_TOKEN, SHARED_COUNT, SHARED_WIDTH, WIDTH

# Signs of a mechanism that a plain decoder does not have: what they add to a layer is not known.
_STRANGE = (
    "mamba", "ssm", "linear_attn", "linear_num", "conv_kernel", "conv_l", "lru", "rwkv", "vision", "audio", "visual",
    "encoder", "decoder_", "block_config", "hybrid", "altup", "retention", "kv_shared", "per_layer_in", "recurren",
    "text_config", "latent_size", "cycles", "hc_mult", "gated_norm", "kv_source", "block_type", "delta_rule", "xlstm",
)  # fmt: skip
# The same, of mechanisms that a config switches off by a 1: one loop, every layer of a kind, no widening.
_FROM_TWO = re.compile(
    r"(linear|sparse|cross)_?att|engram|hyper_?connection|multi_query|(attn|attention|ffn|mlp|mixer)_config"
    r"|(^|_)(loops?|looped|looping|recursions?|recursive|ut_steps|repeats|expand|d_state|d_conv|dt_rank|time_mix)(_|$)"
)
# Which layers are of which kind: every so many, one entry for each, or all of one kind.
_RHYTHM = re.compile(
    r"(^|_)(attn|attention|layers?|blocks?|full|global|local|dense|expert|moe)(_\w+)?"
    r"_(interval|period|offset|every|pattern|idxs|indices|ids)(_|$)"
    r"|layers?_(step|freq|frequency|stride)(_|$)|(attn|attention|layers?|blocks?|mixer)_types?(_|$)"
)
_OTHER_KINDS = re.compile(r"linear|sparse|mamba|ssm|rwkv|delta|lightning|retention|hyena", re.IGNORECASE)
# Numbers under such words are experts, caches or states of a kind that the usual keys do not speak of.
_COUNTED = ("expert", "moe", "kv", "key_value", "state_", "memory", "swa_", "num_groups", "group_num")

_SIZED = re.compile(r"(^|_)(dim|dims|size|rank|heads?|layers?|experts?|groups?|width|depth|window)($|_)")
_SIZES = re.compile(rf"{_SIZED.pattern}|ffn|mlp|intermediate|hidden")
# Sizes that a plain decoder reads, and those that say how it trains, looks up or generates.
_OTHER_USUAL = (
    "batch_size decoder_sparse_step ep_size first_k_dense_replace group_size image_size img_size "
    "kv_lora_rank layer_types max_window_layers mlp_layer_types mlp_only_layers "
    "moe_layer_freq n_dense_layers n_group n_groups num_expert_group num_nextn_predict_layers patch_size pool_size "
    "qk_head_dim qk_nope_head_dim qk_rope_head_dim rotary_dim router_group_size sliding_window sliding_window_pattern "
    "sliding_window_size topk_group window_size _sliding_window_pattern"
)
# Read where the keys and values come from a latent, as DeepSeek's do.
_LATENT = frozenset(("index_head_dim", "index_n_heads", "indexer_types", "q_lora_rank", "v_head_dim"))
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
# Words of keys that say how a model is rotated, trained, stored, looked up or run: no weight comes or goes with them.
_QUIET = re.compile(
    r"token|rope|rotary|position_ids|dropout|drop$|(^|_)init|dtype|auto_?map|quanti[sz]ation|compression|label|cache"
    r"|loss|gradient|checkpoint|flash|sdpa|fused?(_|$)|unsloth|softmax|scale_attn|attn_weights|dynamic_ntk|logn_attn"
    r"|(sequence|tensor)_parallel|deepspeed|_[tp]p_plan$|(^|_)mup(_|$)|scale_emb|repeat_ngram|^transformers\.js"
    r"|^(summary|keys_to_ignore|forced|suppress|begin_suppress|bad_words|task_specific|pretrain\w*|tie|transformers)_"
    r"|custom_pipelines$"
    r"|_(implementation|autoset|fp32|fp16|bf16|fn)(_|$)|^(fp32|fp16|bf16|fp8)$|bfloat16|float16"
)
# What such a decoder reads or has anyway, and plain settings.
_SETTINGS = (
    "architectures attention_bias use_bias mlp_bias qkv_bias use_qkv_bias add_qkv_bias use_qk_norm qk_norm "
    "qk_layernorm use_sliding_window norm_topk_prob rms_norm rmsnorm use_rmsnorm use_rms_norm gated is_gated_act "
    "use_swiglu no_bias is_decoder is_causal causal do_sample early_stopping remove_invalid_values pruned_heads "
    "seq_aux torchscript moe_renormalize renormalize generation_config data_config training_config "
    "output_hidden_states output_attentions output_past output_router_logits return_dict _from_model_config"
)
_PLAIN = frozenset(_SETTINGS.split())


def strange_keys(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Keys that speak of layers which a plain decoder does not have. What is off (false, 0, nothing) says nothing.

    A list with an entry for each layer, or of sizes, says that the layers differ. Where `layer_types` tells each
    layer's kind, keys for their order say nothing more.

    >>> strange_keys({"hidden_size": 64, "expert_count": 8, "num_experts": 4, "mamba_d_state": 16, "use_mamba": False})
    ('expert_count', 'mamba_d_state')
    >>> strange_keys({"num_loops": 3, "full_attention_interval": 4, "head_dims": [64, 128]})
    ('full_attention_interval', 'head_dims', 'num_loops')
    """
    listed = config.get("layer_types")
    kinds = listed if isinstance(listed, list) else []
    odd = any(item not in LAYER_TYPES for item in kinds if isinstance(item, str))
    layers = next((config[name] for name in k.LAYERS if config.get(name)), 0)
    read = _read_of(config)
    found = {
        name
        for name, value in config.items()
        if name not in read
        and (
            _other_mechanism(name.lower(), value)
            or _differs_by_layer(name.lower(), value, layers)
            or (not kinds and _is_rhythm(name.lower(), value))
        )
    }
    return tuple(sorted(found | ({"layer_types"} if odd else set())))


def _read_of(config: Mapping[str, Any]) -> frozenset[str]:
    return _USUAL | _LATENT if config.get("kv_lora_rank") else _USUAL


def _other_mechanism(name: str, value: object) -> bool:
    """Whether a key is of a mechanism that a plain decoder has not, and its value puts it in force."""
    if value and "token" not in name and any(part in name for part in _STRANGE):
        return True
    if _is_on(value) and not _QUIET.search(name) and _FROM_TWO.search(name):
        return True
    return _is_count(value) and any(part in name for part in _COUNTED)


def _is_rhythm(name: str, value: object) -> bool:
    """Whether a key says which layers are of which kind: a list, every so many, a pattern in letters, another kind."""
    mixed = isinstance(value, str) and "pattern" in name and len(set(value)) > 1
    other = isinstance(value, str) and _OTHER_KINDS.search(value)
    return bool(_is_count(value) or mixed or other) and not _QUIET.search(name) and bool(_RHYTHM.search(name))


def _differs_by_layer(name: str, value: object, layers: object) -> bool:
    """Whether a list has an entry for each layer, or numbers under a word for sizes."""
    if not isinstance(value, list) or not value or _QUIET.search(name) or name in _PLAIN:
        return False
    numbers = all(isinstance(item, int | float) and not isinstance(item, bool) for item in value)
    return len(value) == layers or (numbers and bool(_SIZES.search(name)))


def _is_on(value: object) -> bool:
    return value is True or (bool(value) and value != 1)


def _is_count(value: object) -> bool:
    """Whether a value counts something: a number above 1, or one for each layer."""
    return bool(value) if isinstance(value, list | dict) else type(value) is int and value > 1


def unread_keys(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Keys that a plain decoder does not read and that may add to a layer: sizes, lists, parts, what is switched on.

    >>> unread_keys({"hidden_size": 4096, "share_q_dim": 2048, "num_attention_groups": 1, "use_cache": True})
    ('num_attention_groups', 'share_q_dim')
    >>> unread_keys({"attn_output_gate": True, "rope_scaling": {"factor": 8}, "use_gate": False})
    ('attn_output_gate',)
    """
    read = _read_of(config)
    return tuple(sorted(name for name, value in config.items() if name not in read and _may_add(name.lower(), value)))


def _may_add(name: str, value: object) -> bool:
    if isinstance(value, bool | list | dict):
        return bool(value) and name not in _PLAIN and not _QUIET.search(name)
    return isinstance(value, int) and value > 0 and bool(_SIZED.search(name)) and "token" not in name
