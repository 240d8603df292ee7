"""The ways configs mislead, each as a small config of our own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from chipwise.errors import KnowledgeError
from chipwise.model.read import Source, read_source
from chipwise.model.spec import ModelSpec

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "max_position_embeddings": 4096,
    "torch_dtype": "bfloat16",
}


def read(config: Mapping[str, Any], name: str = "made-up", **more: Any) -> ModelSpec:
    return read_source(Source(config=config, name=name, **more))


def layers(spec: ModelSpec) -> dict[str, int]:
    kinds: dict[str, int] = {}
    for layer in spec.layers:
        kinds[layer.attention.kind] = kinds.get(layer.attention.kind, 0) + layer.count
    return kinds


def test_llama_by_hand() -> None:
    # attention 64*64*2 + 64*32*2, MLP 3*64*128, two norms; embedding and head, final norm
    layer = 64 * 64 * 2 + 64 * 32 * 2 + 3 * 64 * 128 + 2 * 64
    assert read(LLAMA).params_total == 4 * layer + 2 * 1000 * 64 + 64


def test_a_tied_head_is_stored_once_and_still_multiplied() -> None:
    spec = read({**LLAMA, "tie_word_embeddings": True})
    assert read(LLAMA).params_total - spec.params_total == 1000 * 64
    head = next(weight for weight in spec.outer if weight.part == "head")
    assert (head.gemm, head.stored, head.out_features) == (True, False, 1000)


def test_missing_kv_heads_are_as_many_as_query_heads() -> None:
    without = {key: value for key, value in LLAMA.items() if key != "num_key_value_heads"}
    assert read(without).kv_bytes_per_token() == 2 * read(LLAMA).kv_bytes_per_token()


def test_an_explicit_head_size_wins() -> None:
    assert read({**LLAMA, "head_dim": 32}).kv_bytes_per_token() == 4 * 2 * 2 * 32 * 2


def test_generation_keys_are_not_architecture() -> None:
    dump = {**LLAMA, "top_k": 50, "num_beams": 1, "temperature": 1.0, "num_return_sequences": 1}
    assert read(dump) == read(LLAMA)
    moe = {**LLAMA, "model_type": "qwen3_moe", "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
    experts = read({**moe, "top_k": 50}).layers[0].experts
    assert experts is not None
    assert (experts.routed, experts.per_token) == (8, 2)


def test_null_experts_are_no_experts() -> None:
    config = {**LLAMA, "num_experts": None, "num_experts_per_tok": None, "kv_lora_rank": None}
    assert read(config).architecture == "dense-llm"


@pytest.mark.parametrize(
    ("more", "kinds"),
    [
        ({"sliding_window": 512}, {"sliding": 4}),
        ({"sliding_window": 512, "use_sliding_window": False}, {"full": 4}),
        ({"sliding_window": 4096}, {"full": 4}),
        ({"sliding_window": None}, {"full": 4}),
        ({"sliding_window": 512, "use_sliding_window": True, "max_window_layers": 3}, {"full": 3, "sliding": 1}),
    ],
)
def test_a_window_counts_only_where_it_is_in_force(more: dict[str, Any], kinds: dict[str, int]) -> None:
    assert layers(read({**LLAMA, "model_type": "mistral", **more})) == kinds


def test_windows_by_layer() -> None:
    types = ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"]
    spec = read({**LLAMA, "model_type": "olmo3", "layer_types": types, "sliding_window": 128})
    assert layers(spec) == {"sliding": 3, "full": 1}
    assert spec.kv_bytes_per_token() == 2 * 2 * 16 * 2
    assert spec.state_bytes_per_sequence() == 3 * 128 * 2 * 2 * 16 * 2


def test_multi_query_has_one_kv_head() -> None:
    config = {
        "model_type": "gpt_bigcode",
        "n_embd": 64,
        "n_head": 4,
        "n_layer": 2,
        "n_positions": 128,
        "vocab_size": 100,
    }
    assert read({**config, "multi_query": True}).kv_bytes_per_token() == 2 * 2 * 16 * 2
    assert read({**config, "multi_query": False}).kv_bytes_per_token() == 2 * 2 * 64 * 2


def test_mla_heads_do_not_size_the_cache() -> None:
    config = {
        **LLAMA,
        "model_type": "deepseek_v3",
        "num_key_value_heads": 4,
        "head_dim": 192,
        "kv_lora_rank": 32,
        "q_lora_rank": None,
        "qk_nope_head_dim": 16,
        "qk_rope_head_dim": 8,
        "v_head_dim": 16,
        "n_routed_experts": None,
    }
    spec = read(config)
    assert spec.kv_bytes_per_token() == 4 * (32 + 8) * 2
    assert "self_attn.q_proj" in {weight.name for weight in spec.layers[0].weights}


def test_use_mla_false_is_plain_attention() -> None:
    config = {**LLAMA, "model_type": "deepseek_v2", "use_mla": False, "kv_lora_rank": None, "v_head_dim": 0}
    config |= {"qk_nope_head_dim": 0, "qk_rope_head_dim": 0, "n_routed_experts": None}
    assert layers(read(config)) == {"full": 4}


def test_shared_caches_keep_nothing() -> None:
    config = {**LLAMA, "model_type": "gemma4_text", "num_kv_shared_layers": 2, "head_dim": 16, "global_head_dim": 16}
    config |= {"sliding_window": 64, "layer_types": ["sliding_attention", "full_attention"] * 2}
    config |= {"hidden_size_per_layer_input": 0}
    spec = read(config)
    assert layers(spec) == {"sliding": 1, "full": 1, "shared": 2}
    assert spec.kv_bytes_per_token() == 2 * 2 * 16 * 2


def test_layers_that_share_their_weights_are_stored_once() -> None:
    config = {**LLAMA, "model_type": "albert", "embedding_size": 16, "max_position_embeddings": 32}
    twelve, one = read({**config, "num_hidden_layers": 12}), read({**config, "num_hidden_layers": 1})
    assert twelve.params_total == one.params_total
    assert twelve.layer_count == 12


def test_one_indexed_layer_lists() -> None:
    config = {
        **LLAMA,
        "model_type": "kimi_linear",
        "linear_attn_config": {"full_attn_layers": [4], "kda_layers": [1, 2, 3], "num_heads": 4, "head_dim": 16},
        "kv_lora_rank": 32,
        "qk_nope_head_dim": 16,
        "qk_rope_head_dim": 8,
        "v_head_dim": 16,
        "num_experts": None,
    }
    spec = read(config)
    assert layers(spec) == {"linear": 3, "mla": 1}
    assert next(layer for layer in spec.layers if layer.attention.kind == "mla").indices == (3,)


def test_layers_without_attention_or_mlp() -> None:
    blocks = [
        {"attention": {"n_heads_in_group": 2, "no_op": False}, "ffn": {"ffn_mult": 3.0, "no_op": False}},
        {"attention": {"n_heads_in_group": None, "no_op": True}, "ffn": {"ffn_mult": None, "no_op": True}},
    ]
    config = {**LLAMA, "model_type": "nemotron-nas", "block_configs": blocks, "num_key_value_heads": None}
    spec = read({**config, "intermediate_size": None, "num_hidden_layers": 2})
    assert layers(spec) == {"full": 1, "none": 1}
    assert spec.kv_bytes_per_token() == 2 * 2 * 16 * 2


def test_pattern_of_letters_is_the_layer_count() -> None:
    config = {
        "model_type": "nemotron_h",
        "architectures": ["NemotronHForCausalLM"],
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 100,
        "hybrid_override_pattern": "M-M*",
        "mamba_num_heads": 4,
        "mamba_head_dim": 16,
        "ssm_state_size": 8,
        "n_groups": 1,
        "conv_kernel": 4,
    }
    spec = read(config)
    assert spec.layer_count == 4
    assert layers(spec) == {"mamba": 2, "none": 1, "full": 1}
    with pytest.raises(KnowledgeError, match="hybrid_override_pattern"):
        read({key: value for key, value in config.items() if key != "hybrid_override_pattern"})


def test_native_key_names() -> None:
    deepseek = {
        "vocab_size": 100,
        "dim": 64,
        "inter_dim": 128,
        "moe_inter_dim": 32,
        "n_layers": 3,
        "n_dense_layers": 1,
        "n_heads": 4,
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "n_activated_experts": 2,
        "q_lora_rank": 0,
        "kv_lora_rank": 32,
        "qk_nope_head_dim": 16,
        "qk_rope_head_dim": 8,
        "v_head_dim": 16,
        "dtype": "fp8",
    }
    assert read(deepseek).architecture == "moe-llm"
    mistral = {
        "dim": 64,
        "n_layers": 4,
        "n_heads": 4,
        "n_kv_heads": 2,
        "head_dim": 16,
        "hidden_dim": 128,
        "vocab_size": 1000,
    }
    assert read(mistral).params_total == read(LLAMA).params_total


def test_a_nested_part_may_leave_its_dimensions_to_the_class() -> None:
    spec = read({"model_type": "qwen2_vl", "text_config": {"model_type": "qwen2_vl_text"}, "vision_config": {}})
    assert spec.architecture == "vision-language"
    assert any("class default" in warning for warning in spec.warnings)


def test_a_top_level_may_not() -> None:
    with pytest.raises(KnowledgeError) as caught:
        read({"model_type": "llama", "hidden_size": 4096})
    for name in ("num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"):
        assert name in caught.value.what


def test_unknown_types_are_read_only_where_keys_say_enough() -> None:
    odd = {**LLAMA, "model_type": "brand_new", "architectures": ["BrandNewForCausalLM"]}
    spec = read(odd)
    assert spec.params_total == read(LLAMA).params_total
    assert any("brand_new" in warning for warning in spec.warnings)
    for more in ({"mamba_d_state": 16}, {"hidden_size": None}, {"architectures": None}):
        with pytest.raises(KnowledgeError):
            read({**odd, **more})


def test_class_follows_the_head() -> None:
    assert read({**LLAMA, "architectures": ["LlamaModel"]}).architecture == "encoder"
    assert read({**LLAMA, "architectures": ["LlamaModel"]}).kv_bytes_per_token() == 0
    assert read({**LLAMA, "architectures": ["LlamaForSequenceClassification"]}).architecture == "dense-llm"
    assert read(LLAMA, as_encoder=True).architecture == "encoder"
    named = read(LLAMA, name="acme-embedding-8b")
    assert named.architecture == "dense-llm"
    assert any("--as encoder" in warning for warning in named.warnings)


def test_a_silent_dtype_is_said() -> None:
    config = {key: value for key, value in LLAMA.items() if key != "torch_dtype"}
    spec = read(config)
    assert spec.dtype is None
    assert any("dtype" in warning for warning in spec.warnings)
    assert {weight.format for weight, _ in read({**config, "dtype": "float32"}).all_weights()} == {"fp32"}


V4: dict[str, Any] = {
    "model_type": "deepseek_v4",
    "architectures": ["DeepseekV4ForCausalLM"],
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "q_lora_rank": 16,
    "o_lora_rank": 16,
    "o_groups": 2,
    "hc_mult": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "moe_intermediate_size": 32,
    "vocab_size": 1000,
    "sliding_window": 128,
    "compress_ratios": [0, 4, 128, 0],
    "index_n_heads": 2,
    "index_head_dim": 8,
    "index_topk": 16,
    "dtype": "bfloat16",
}


def test_a_compressed_past_grows_by_one_entry_in_so_many_tokens() -> None:
    """One head of 32 is key and value: 32/4 and 32/128 elements a token, and three windows of 128."""
    spec = read(V4)
    assert spec.kv_bytes_per_token() == 2 * (32 / 4 + 32 / 128)
    assert spec.state_bytes_per_sequence() == 2 * 3 * 128 * 32
    assert [layer.attention.compressed_every for layer in spec.layers] == [None, 4, 128]
