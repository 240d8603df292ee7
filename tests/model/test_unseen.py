"""Configs of families that no one here has seen: read with a note of what was taken for granted, or refused by key."""

from __future__ import annotations

from typing import Any

import pytest

from chipwise.errors import KnowledgeError
from chipwise.model import load_model
from chipwise.model.read import Source, read_source
from chipwise.model.spec import ModelSpec

TEXT: dict[str, Any] = {
    "hidden_size": 2048,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "intermediate_size": 5632,
    "vocab_size": 50304,
}
# Q and O of 2048, K and V of 512 rows, three matrices of 5632, two norms; two tables and a norm.
LAYER = 2 * 2048 * 2048 + 2 * 512 * 2048 + 3 * 5632 * 2048 + 2 * 2048
DENSE = 24 * LAYER + 2 * 50304 * 2048 + 2048


def _read(model_type: str, head: str, **config: Any) -> ModelSpec:
    return read_source(Source(config={"model_type": model_type, "architectures": [head], **config}, name="x"))


def test_a_dense_decoder_with_other_key_names() -> None:
    spec = _read(
        "zephyrine",
        "ZephyrineForCausalLM",
        n_embd=2048,
        n_layer=24,
        n_head=16,
        n_kv_heads=4,
        ffn_hidden_size=5632,
        padded_vocab_size=50304,
        seq_length=4096,
        top_k=50,
    )
    assert spec.params_total == DENSE
    assert spec.kv_bytes_per_token() == 24 * 2 * 512 * 2
    assert any("'zephyrine' is not known: read as a plain decoder with a gated MLP" in note for note in spec.warnings)


def test_a_dense_decoder_whose_key_names_say_nothing() -> None:
    with pytest.raises(KnowledgeError) as caught:
        _read("zephyrine", "ZephyrineForCausalLM", width=2048, blocks=24, q_heads=16, vocab_size=50304)
    for name in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"):
        assert name in caught.value.what
    assert "vocab_size" not in caught.value.what


def test_an_mlp_whose_activation_takes_no_gate() -> None:
    spec = _read("zephyrine", "ZephyrineForCausalLM", **TEXT, hidden_act="relu2", layer_norm_eps=1e-5)
    assert spec.params_total == DENSE - 24 * 5632 * 2048 + (24 * 2 + 1) * 2048


def test_experts_under_the_usual_keys() -> None:
    more = {"num_experts": 64, "num_experts_per_tok": 6, "moe_intermediate_size": 1408, "first_k_dense_replace": 1}
    spec = _read("brontes", "BrontesForCausalLM", **TEXT, **more)
    expert = 3 * 1408 * 2048
    assert spec.params_total == DENSE + 23 * (64 * expert + 64 * 2048 - 3 * 5632 * 2048)
    assert spec.params_active == spec.params_total - 23 * 58 * expert
    assert not any("add to a layer" in note for note in spec.warnings)


def test_experts_under_unknown_keys_are_named() -> None:
    with pytest.raises(KnowledgeError, match="expert_count, expert_hidden, experts_active"):
        _read("brontes", "BrontesForCausalLM", **TEXT, expert_count=64, experts_active=6, expert_hidden=1408, top_k=50)


def test_a_generation_key_is_no_number_of_experts() -> None:
    with pytest.raises(KnowledgeError, match="does not say num_experts_per_tok"):
        _read("brontes", "BrontesForCausalLM", **TEXT, num_experts=64, moe_intermediate_size=1408, top_k=50)


def test_unknown_parts_that_say_enough() -> None:
    seen = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
    spec = _read(
        "argus_vl",
        "ArgusForConditionalGeneration",
        text_config={"model_type": "argus_text", **TEXT},
        vision_config={"model_type": "argus_vision", **seen, "patch_size": 14, "image_size": 336},
    )
    vit = 24 * (4 * 1024 * 1024 + 2 * 4096 * 1024 + 4 * 1024 + 4096 + 1024 + 4 * 1024)
    vit += 1024 * 3 * 14 * 14 + 1024 + (24 * 24 + 1 + 1) * 1024 + 2 * 1024
    between = 1024 * 2048 + 2048 + 2048 * 2048 + 2048
    assert spec.params_total == DENSE + vit + between
    assert spec.architecture == "vision-language"
    assert spec.kv_bytes_per_token() == 24 * 2 * 512 * 2
    for name in ("argus_vl", "argus_text", "argus_vision"):
        assert any(f"{name!r} is not known" in note for note in spec.warnings)


@pytest.mark.parametrize(
    ("parts", "missing"),
    [
        ({"text_config": {**TEXT, "vocab_size": None}}, "text_config.vocab_size"),
        ({"text_config": TEXT, "vision_config": {"patch_size": 14, "hidden_size": 64}}, "vision_config.num_hidden"),
        ({"text_config": {**TEXT, "mamba_d_state": 16}}, "text_config.mamba_d_state"),
        ({"text_config": TEXT, "audio_config": {"model_type": "argus_ear", "d_model": 512}}, "argus_ear"),
        ({"text_config": TEXT, "talker_config": {"num_hidden_layers": 4}}, "talker_config"),
        ({"text_config": TEXT, "latent_attention_config": {"model_type": "latent"}}, "latent_attention_config"),
        ({"text_config": TEXT, "tokenizer_config": {"backbone_config": {"depth": 12}}}, "tokenizer_config"),
    ],
)
def test_unknown_parts_that_do_not(parts: dict[str, Any], missing: str) -> None:
    with pytest.raises(KnowledgeError, match=missing):
        _read("argus_vl", "ArgusForConditionalGeneration", **parts)


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"recurrent_state_dim": 128, "layers_block_type": ["recurrent", "attention"] * 12}, "recurrent_state_dim"),
        ({"layer_types": ["gated_memory", "full_attention"] * 12}, "layer_types"),
        ({"kv_reuse_groups": 4}, "kv_reuse_groups"),
        ({"moe_layers": [1, 3, 5]}, "moe_layers"),
        ({"attn_type_list": [0, 1] * 12}, "attn_type_list"),
        ({"full_attention_interval": 4}, "full_attention_interval"),
        ({"attn_layer_period": 8, "attn_layer_offset": 4}, "attn_layer_period"),
        ({"global_attn_every_n_layers": 3}, "global_attn_every_n_layers"),
        ({"layer_pattern": "SSSG" * 6}, "layer_pattern"),
        ({"full_attn_idxs": [0, 8, 16]}, "full_attn_idxs"),
        ({"attention_type": "linear"}, "attention_type"),
        ({"use_linear_attention": True}, "use_linear_attention"),
        ({"sparse_attention_config": {"block": 64}}, "sparse_attention_config"),
        ({"cross_attention_layers": [3, 8, 13]}, "cross_attention_layers"),
        ({"head_dims": [64, 128]}, "head_dims"),
        ({"ffn_mult": [2.0, 4.0] * 12}, "ffn_mult"),
        ({"output_gates": ["per_head", "none"] * 12}, "output_gates"),
        ({"num_loops": 3}, "num_loops"),
        ({"engram_tables": {"rows": 1000}}, "engram_tables"),
        ({"hyper_connections": 4}, "hyper_connections"),
        ({"multi_query": True}, "multi_query"),
        ({"indexer_types": ["full", "shared"] * 12}, "indexer_types"),
    ],
)
def test_layers_of_an_unknown_kind_are_named(more: dict[str, Any], named: str) -> None:
    with pytest.raises(KnowledgeError, match=f"'tidal' is not one we can read: .*{named}"):
        _read("tidal", "TidalForCausalLM", **TEXT, **more)


def test_a_mechanism_that_is_off_is_no_mechanism() -> None:
    off = {
        "use_linear_attention": False,
        "num_loops": 1,
        "full_attention_interval": 1,
        "attn_layer_offset": 0,
        "attention_type": "full",
        "cross_attention_layers": [],
        "sparse_attention_config": None,
        "hyper_connections": {},
    }
    spec = _read("tidal", "TidalForCausalLM", **TEXT, **off)
    assert spec.params_total == DENSE
    assert not any("add to a layer" in note for note in spec.warnings)


def test_an_order_that_layer_types_tell_in_full() -> None:
    kinds = ["sliding_attention", "sliding_attention", "full_attention"] * 8
    more = {"layer_types": kinds, "global_attn_every_n_layers": 3, "sliding_window": 1024}
    spec = _read("tidal", "TidalForCausalLM", **TEXT, **more)
    assert sum(layer.count for layer in spec.layers if layer.attention.kind == "full") == 8


def test_a_model_of_states_is_refused_by_its_states() -> None:
    sizes = {"hidden_size": 2048, "num_hidden_layers": 24, "vocab_size": 50304}
    with pytest.raises(KnowledgeError, match="what conv_kernel, expand, state_size add") as caught:
        _read("tidal", "TidalForCausalLM", **sizes, state_size=128, conv_kernel=4, expand=2)
    assert "num_attention_heads" not in f"{caught.value.what} {caught.value.fix}"


def test_keys_that_may_add_something_are_named() -> None:
    more = {"attn_output_gate": True, "adapters": {"rank": 8}, "skips": [1, 2], "share_q_dim": 2048, "near_window": 128}
    spec = _read("tidal", "TidalForCausalLM", **TEXT, **more)
    named = "not known what adapters, attn_output_gate, near_window, share_q_dim, skips add to a layer: read as nothing"
    assert spec.params_total == DENSE
    assert named in spec.warnings


def test_plain_settings_are_not_named() -> None:
    settings: dict[str, Any] = {
        "auto_map": {"AutoConfig": "configuration_tidal.TidalConfig"},
        "eos_token_id": [1, 2],
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0},
        "mrope_section": [16, 24, 24],
        "no_rope_layers": [1, 1, 1, 0] * 6,
        "id2label": {"0": "no", "1": "yes"},
        "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128},
        "task_specific_params": {"text-generation": {"do_sample": True}},
        "attention_softmax_in_fp32": True,
        "use_cache": True,
        "return_dict": True,
        "use_flash_attn": True,
        "keys_to_ignore_at_inference": ["past_key_values"],
        "base_model_tp_plan": {"layers.*.self_attn.q_proj": "colwise"},
        "transformers.js_config": {"dtype": "q4"},
        "use_bfloat16": True,
        "tie_word_embeddings": False,
    }
    spec = _read("tidal", "TidalForCausalLM", **TEXT, **settings)
    assert spec.params_total == DENSE
    assert not any("add to a layer" in note for note in spec.warnings)


def test_every_so_many_layers_sparse_as_qwen_says_it() -> None:
    mix = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 1408, "norm_topk_prob": True}
    spec = _read("brontes", "BrontesForCausalLM", **TEXT, **mix, decoder_sparse_step=2, mlp_only_layers=[])
    assert sum(layer.count for layer in spec.layers if layer.experts) == 12


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("RandomForestClassifier", "sklearn:RandomForestClassifier,trees=100,depth=12"),
        ("ridge,features=20", "sklearn:Ridge,features=300"),
        ("xgboost", "path of the saved model"),
        ("LGBMClassifier", "path of the saved model"),
        ("no-such-model", "params:70b"),
    ],
)
def test_an_estimator_without_its_notation(name: str, fix: str) -> None:
    with pytest.raises(KnowledgeError) as caught:
        load_model(name)
    assert fix in caught.value.fix


def test_a_vision_transformer() -> None:
    sizes = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
    head = "IrisNetForImageClassification"
    spec = _read("irisnet", head, **sizes, image_size=224, patch_size=16, num_labels=1000)
    known = _read("vit", "ViTForImageClassification", **sizes, image_size=224, patch_size=16, num_labels=1000)
    assert spec.params_total == known.params_total == 86_567_656
    assert spec.architecture == "vision"
    assert any("'irisnet' is not known: read as ViT" in note for note in spec.warnings)
    with pytest.raises(KnowledgeError, match="image_size"):
        _read("irisnet", head, **sizes, patch_size=16)


def test_a_stack_of_convolutions_is_no_vision_transformer() -> None:
    with pytest.raises(KnowledgeError, match="irisnet"):
        _read("irisnet", "IrisNetModel", embed_dims=[64, 128, 320, 512], depths=[3, 4, 6, 3])


def test_a_part_of_another_house_is_told_and_says_its_own_sizes() -> None:
    vision = {"model_type": "clip_vision_model"}
    head = "LlavaForConditionalGeneration"
    spec = _read("llava", head, text_config={"model_type": "argus", **TEXT}, vision_config=vision)
    assert "text_config.model_type 'argus' is not known: read as llama" in spec.warnings
    with pytest.raises(KnowledgeError, match=r"text_config\.hidden_size"):
        _read("llava", head, text_config={"model_type": "argus"}, vision_config=vision)
