"""A GGUF header becomes a `ModelSpec`: metadata in the usual config keys, each weight in the type its tensor has."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from chipwise.errors import ChipwiseError
from chipwise.model.gguf import Gguf, broken, read_gguf
from chipwise.model.quantise import Rule, Scheme
from chipwise.model.read import Source, read_source
from chipwise.model.spec import ModelSpec, Quantisation
from chipwise.model.stored import bits_per_weight
from chipwise.model.tensors import from_tensors

# general.architecture -> model_type, where the names differ.
_TYPES = {
    "qwen2moe": "qwen2_moe",
    "qwen3moe": "qwen3_moe",
    "qwen3next": "qwen3_next",
    "qwen35": "qwen3_5_text",
    "qwen35moe": "qwen3_5_moe_text",
    "gemma3": "gemma3_text",
    "deepseek2": "deepseek_v3",
    "gpt-oss": "gpt_oss",
    "glm4moe": "glm4_moe",
    "command-r": "cohere",
    "gptneox": "gpt_neox",
    "olmo2": "olmo2",
    "exaone4": "exaone4",
    "seed_oss": "seed_oss",
    "minimax-m2": "minimax_m2",
    "nomic-bert": "nomic_bert",
    "ernie4_5-moe": "ernie4_5_moe",
    "hunyuan-moe": "hunyuan_v1_moe",
    "hunyuan-dense": "hunyuan_v1_dense",
    "falcon-h1": "falcon_h1",
    "granitehybrid": "granitemoehybrid",
    "nemotron_h": "nemotron_h",
    "kimi-linear": "kimi_linear",
}

_KEYS = {
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "context_length": "max_position_embeddings",
    "attention.sliding_window": "sliding_window",
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
    "expert_shared_count": "n_shared_experts",
    "leading_dense_block_count": "first_k_dense_replace",
    "attention.kv_lora_rank": "kv_lora_rank",
    "attention.q_lora_rank": "q_lora_rank",
    "rope.dimension_count": "qk_rope_head_dim",
    "nextn_predict_layers": "num_nextn_predict_layers",
    "vocab_size": "vocab_size",
}

# Leaf of a tensor's name -> the leaves of our weights that it holds.
_LEAVES = {
    "attn_q": ("q_proj", "q_proj_gate"),
    "attn_k": ("k_proj",),
    "attn_v": ("v_proj",),
    "attn_qkv": ("q_proj", "k_proj", "v_proj"),
    "attn_output": ("o_proj",),
    "attn_q_a": ("q_a_proj",),
    "attn_q_b": ("q_b_proj",),
    "attn_kv_a_mqa": ("kv_a_proj_with_mqa",),
    "attn_kv_b": ("kv_b_proj",),
    "attn_k_b": ("kv_b_proj",),
    "ffn_gate": ("gate_proj",),
    "ffn_up": ("up_proj",),
    "ffn_down": ("down_proj",),
}


def from_gguf(file: Path, name: str) -> ModelSpec:
    """The model of a GGUF file. Tensor shapes decide the total, metadata explains the layers.

    Raises:
        InputError: the file is not GGUF.
    """
    header = read_gguf(file)
    total = sum(tensor.params for tensor in header.tensors)
    if not total:
        raise broken(file, "it holds no tensors")
    try:
        spec = read_source(Source(config=config_of(header), name=name, params_source="gguf", scheme=_scheme(header)))
    except ChipwiseError as error:
        spec = replace(from_tensors(header.tensors, name), params_source="gguf")
        spec = replace(spec, warnings=(*spec.warnings, f"its metadata was not enough: {error.what}"))
    counted = spec.params_total + spec.params_mtp
    notes = list(spec.warnings)
    if abs(counted - total) > total / 1000:
        notes.append(f"tensors hold {total} parameters, the metadata describes {counted}: the tensors count")
    return replace(
        spec,
        params_stated=total - spec.params_mtp if counted != total else None,
        quantisation=_quantisation(header),
        dtype=None,
        warnings=tuple(note for note in notes if "names no dtype" not in note),
    )


def config_of(header: Gguf) -> dict[str, Any]:
    """The metadata under the key names of a config.json."""
    arch = str(header.metadata.get("general.architecture", ""))
    names = {tensor.name for tensor in header.tensors}
    config: dict[str, Any] = {
        "model_type": _TYPES.get(arch, arch.replace("-", "_")),
        "architectures": ["ForCausalLM" if "token_embd.weight" in names else "Model"],
        "tie_word_embeddings": "output.weight" not in names,
    }
    for key, known in _KEYS.items():
        value = header.metadata.get(f"{arch}.{key}")
        if isinstance(value, int) or (isinstance(value, list) and value and known == "intermediate_size"):
            config[known] = value
    config["vocab_size"] = _vocabulary(header)
    _head_sizes(header, arch, config)
    if arch == "llama" and config.get("num_experts"):
        config["model_type"] = "mixtral"
    return config


def _vocabulary(header: Gguf) -> int | None:
    embedding = next((tensor for tensor in header.tensors if tensor.name == "token_embd.weight"), None)
    return embedding.shape[0] if embedding else header.lengths.get("tokenizer.ggml.tokens")


def _head_sizes(header: Gguf, arch: str, config: dict[str, Any]) -> None:
    key, value = (header.metadata.get(f"{arch}.attention.{name}_length") for name in ("key", "value"))
    if config.get("kv_lora_rank"):
        for name in ("key", "value"):
            longer = header.metadata.get(f"{arch}.attention.{name}_length_mla")
            key, value = (
                (longer, value) if name == "key" and longer else (key, longer if name == "value" and longer else value)
            )
        rope = config.get("qk_rope_head_dim")
        if isinstance(key, int) and isinstance(rope, int):
            config |= {"qk_nope_head_dim": key - rope, "v_head_dim": value, "head_dim": None}
    elif isinstance(key, int):
        config["head_dim"] = key
        config.pop("qk_rope_head_dim", None)
    else:
        config.pop("qk_rope_head_dim", None)


def _scheme(header: Gguf) -> Scheme:
    """The type of each tensor under the name of the weight it holds, and the most common type for the rest."""
    leaves = {
        key: tensor.dtype
        for tensor in header.tensors
        if bits_per_weight(tensor.dtype) is not None
        for key in _our_keys(tensor.name)
    }
    return Scheme(method="gguf", rules=(Rule(format=_main_type(header)),), leaves=leaves, towers=True, head=True)


def _our_keys(name: str) -> list[str]:
    if name == "token_embd.weight":
        return ["||embed_tokens"]
    if name == "output.weight":
        return ["||lm_head"]
    parts = name.split(".")
    if len(parts) < 4 or parts[0] != "blk":
        return []
    leaf = parts[2].removesuffix("_exps").removesuffix("_shexp")
    kind = "expert" if parts[2].endswith("_exps") else ""
    return [f"{parts[1]}|{kind}|{ours}" for ours in _LEAVES.get(leaf, ())]


def _main_type(header: Gguf) -> str:
    counts: Counter[str] = Counter()
    for tensor in header.tensors:
        counts[tensor.dtype] += tensor.params
    return counts.most_common(1)[0][0]


def _quantisation(header: Gguf) -> Quantisation | None:
    kind = _main_type(header)
    if kind in {"fp32", "fp16", "bf16"}:
        return None
    total = sum(tensor.params for tensor in header.tensors)
    bits = sum(tensor.params * (bits_per_weight(tensor.dtype) or 0.0) for tensor in header.tensors)
    return Quantisation(method="gguf", weight_format=kind, bits_per_weight=bits / total)
