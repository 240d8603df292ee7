"""How checkpoints are stored: every dialect's format, and what each leaves alone."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

import chipwise.model
import chipwise.precision
from chipwise.errors import KnowledgeError
from chipwise.model import load_model
from chipwise.model.dialects import scheme_of
from chipwise.model.lookup import variant_scheme
from chipwise.model.read import Source, read_source
from chipwise.model.spec import ModelSpec
from chipwise.model.stored import bits_per_weight
from chipwise.precision import stored_bytes

MOE: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "architectures": ["Qwen3MoeForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "dtype": "bfloat16",
}


def formats(spec: ModelSpec) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for weight, _ in spec.all_weights():
        found.setdefault(weight.part, set()).add(weight.format)
    return found


def read(quantization: dict[str, Any], **more: Any) -> ModelSpec:
    config = {**MOE, "quantization_config": quantization}
    return read_source(Source(config=config, name="made-up", **more))


INT4 = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}
FP8 = {"num_bits": 8, "type": "float", "strategy": "channel"}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8-block"),
        ({"quant_method": "fp8", "weight_block_size": None}, "fp8"),
        ({"quant_method": "fbgemm_fp8"}, "fp8-channel"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "int4-g128"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 32}, "int4-g32"),
        ({"quant_method": "gptq", "bits": 4, "group_size": -1}, "int4-channel"),
        ({"quant_method": "gptq", "bits": 8, "group_size": 128}, "int8-g128"),
        ({"quant_method": "auto-round", "bits": 4, "group_size": 64}, "int4-g64"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "nf4"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True}, "nf4-dq"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "bnb-int8"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": INT4}}}, "int4-g32-sym"),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {**INT4, "symmetric": False}}}},
            "int4-g32",
        ),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": FP8}}}, "fp8-channel"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}, "fp8"),
        ({"bits": 4, "group_size": 64}, "mlx-int4-g64"),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3"}}}, "fp8"),
        (
            {"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}}},
            "hqq-int4-g64",
        ),
    ],
)
def test_dialects(config: dict[str, Any], expected: str) -> None:
    scheme = scheme_of(config)
    assert scheme is not None
    assert scheme.main_format == expected
    bits = bits_per_weight(expected)
    assert bits is not None
    assert 2 < bits < 9


def test_scales_are_counted() -> None:
    assert bits_per_weight("nvfp4") == 4.5
    assert bits_per_weight("mxfp4") == 4.25
    assert bits_per_weight("int4-g128") == 4 + 20 / 128
    assert bits_per_weight("no-such-format") is None


def test_head_embedding_norms_and_routers_stay_at_the_dtype() -> None:
    spec = read({"quant_method": "fp8", "weight_block_size": [128, 128]})
    found = formats(spec)
    assert found["attention"] | found["expert"] == {"fp8-block"}
    for part in ("head", "embedding", "norm", "router"):
        assert found[part] == {"bf16"}


def test_mxfp4_takes_experts_only() -> None:
    found = formats(load_model("gpt-oss-20b"))
    assert found["attention"] == {"bf16"}
    assert found["expert"] == {"mxfp4", "bf16"}  # biases stay


def test_ignored_modules_split_a_run_of_layers() -> None:
    spec = read({"quant_method": "fbgemm_fp8", "modules_to_not_convert": ["model.layers.0.self_attn.q_proj"]})
    assert sorted(layer.count for layer in spec.layers) == [1, 3]
    first = next(layer for layer in spec.layers if layer.indices == (0,))
    kept = {weight.name for weight in first.weights if weight.part == "attention" and weight.format == "bf16"}
    assert kept == {"self_attn.q_proj"}


def test_meta_s_fp8_leaves_attention_and_the_first_and_last_mlp() -> None:
    """405B: 126 x 570 M of attention, 2 of 126 MLPs of 2.617 B and the ends in 16 bits: 56.77 GiB on each of 8."""
    spec = load_model("llama-3.1-405b-fp8")
    attention, mlp = 126 * (2 * 16384 * 16384 + 2 * 1024 * 16384), 3 * 16384 * 53248
    ends = 2 * 128256 * 16384
    by_hand = 2 * (attention + 2 * mlp + ends) + 124 * mlp
    assert stored_bytes(spec).main_bytes == pytest.approx(by_hand, rel=1e-3)
    assert by_hand / 8 / 2**30 == pytest.approx(56.77, rel=2e-3)


LATENT = {
    "model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "hidden_size": 64, "num_hidden_layers": 4,
    "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 128, "vocab_size": 256,
    "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "n_shared_experts": 1,
    "first_k_dense_replace": 1, "moe_layer_freq": 1, "q_lora_rank": 32, "kv_lora_rank": 16, "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8, "v_head_dim": 16, "torch_dtype": "bfloat16",
}  # fmt: skip


@pytest.mark.parametrize("words", ["nvfp4", "mxfp4"])
def test_four_bit_floats_that_a_name_alone_says_leave_latent_attention(words: str) -> None:
    """As the published FP4 of DeepSeek-R1: experts and MLPs in 4 bits, MLA in 16; other attention is taken."""
    latent, grouped = (formats(read_source(Source(config=one, name=f"made-up-{words}"))) for one in (LATENT, MOE))
    assert latent["attention"] == {"bf16"}
    assert latent["mlp"] == latent["expert"] == grouped["expert"] == grouped["attention"] == {words}
    wide = formats(read_source(Source(config=LATENT, name="made-up-fp8")))
    assert wide["attention"] == {"fp8"}
    told = {"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": INT4, "targets": ["Linear"]}}}
    assert "bf16" not in formats(read_source(Source(config={**LATENT, "quantization_config": told}, name="x")))["mlp"]


def test_expressions_and_wildcards() -> None:
    spec = read(
        {"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": INT4, "targets": ["Linear"]}}}
    )
    assert formats(spec)["attention"] == {"int4-g32-sym"}
    groups = {"g": {"weights": INT4, "targets": ["Linear"]}}
    ignored = {"quant_method": "compressed-tensors", "config_groups": groups, "ignore": ["lm_head", "re:.*self_attn.*"]}
    assert formats(read(ignored))["attention"] == {"bf16"}
    wild = {"quant_method": "modelopt", "quant_algo": "NVFP4", "exclude_modules": ["model.layers.1*", "lm_head"]}
    assert sorted(layer.count for layer in read(wild).layers) == [1, 3]


def test_mixed_precision_by_module() -> None:
    listed = {
        **{f"model.layers.{index}.self_attn.q_proj": {"quant_algo": "FP8"} for index in range(4)},
        **{f"model.layers.{index}.mlp.experts.0.gate_proj": {"quant_algo": "NVFP4"} for index in range(4)},
    }
    spec = read({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": listed})
    names = {weight.name: weight.format for weight, _ in spec.all_weights()}
    assert names["self_attn.q_proj"] == "fp8"
    assert names["mlp.experts.gate_proj"] == "nvfp4"
    assert names["self_attn.k_proj"] == "bf16"


@pytest.mark.parametrize(
    "target",
    [
        "re:.*ffn.*(gate|up|down)_proj$",
        "re:.*experts.*(w1|w2|w3)$",
        "re:.*block_sparse_moe.*(gate_up|down)_proj$",
        "model.layers.*.mlp.experts.*",
    ],
)
def test_experts_go_by_many_names(target: str) -> None:
    group = {"targets": [target], "format": "nvfp4-pack-quantized", "weights": {"num_bits": 4, "type": "float"}}
    spec = read({"quant_method": "compressed-tensors", "config_groups": {"group_0": group}})
    assert formats(spec)["expert"] == {"nvfp4"}
    assert formats(spec)["attention"] == {"bf16"}


def test_experts_may_have_a_format_of_their_own() -> None:
    stored = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    config = {**MOE, "quantization_config": stored, "expert_dtype": "fp4"}
    spec = read_source(Source(config=config, name="made-up"))
    assert formats(spec)["expert"] == {"mxfp4"}
    assert "fp8-block" in formats(spec)["attention"]
    assert spec.quantisation is not None
    assert spec.quantisation.weight_format == "mxfp4"


def test_hostile_expressions_match_nothing() -> None:
    spec = read({"quant_method": "fp8", "modules_to_not_convert": ["re:(a+)+$", "re:([", "re:" + "a" * 5000, 3, None]})
    assert formats(spec)["attention"] == {"fp8"}


def test_quantisation_can_be_ignored_or_given() -> None:
    config = {"quant_method": "fp8"}
    assert read(config, ignore_quantisation=True).quantisation is None
    given = read(config, ignore_quantisation=True, scheme=variant_scheme("awq 4-bit checkpoint of base"))
    assert given.quantisation is not None
    assert given.quantisation.weight_format == "int4-g128"
    assert given.quantisation.inferred_from == "variant 'awq 4-bit checkpoint of base'"


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(KnowledgeError, match="int4-g7"):
        read({"quant_method": "gptq", "bits": 4, "group_size": 7})


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("fp8 checkpoint of base", "fp8"),
        ("nvfp4 checkpoint of base: ignore quantization_config", "nvfp4"),
        ("gguf q8_0 checkpoint of base", "gguf-q8_0"),
        ("int8 (w8a8) checkpoint of base", "int8"),
        ("int8 weights (w8a16) checkpoint of base", "int8-weight-only"),
        ("int4 AutoRound checkpoint of base", "int4-g128"),
        ("bitsandbytes 4-bit checkpoint of base", "nf4"),
        ("4-bit checkpoint of base", "int4-g128"),
    ],
)
def test_variants_are_read_by_their_words(words: str, expected: str) -> None:
    scheme = variant_scheme(words)
    assert scheme is not None
    assert scheme.main_format == expected


def test_a_variant_without_a_format_changes_nothing() -> None:
    assert variant_scheme("tokendrop") is None


def test_both_rooms_count_the_same_bits() -> None:
    """What `model` stores and what `precision` plans with are one number: scales by group agree."""
    with (Path(chipwise.precision.__file__).parent / "data" / "formats.csv").open(encoding="utf-8") as handle:
        rows = {row["name"]: row for row in csv.DictReader(handle)}
    with (Path(chipwise.model.__file__).parent / "data" / "storage.csv").open(encoding="utf-8") as handle:
        stored = {row["format"]: row for row in csv.DictReader(handle)}
    assert set(stored) <= set(rows)
    for name, row in stored.items():
        planned = rows[name]
        assert float(row["element_bits"]) == float(planned["bits"]), name
        if planned["scale_per"].isdigit():
            assert float(row["scale_bits"]) / float(row["group"]) == pytest.approx(
                float(planned["scale_bits"]) / float(planned["scale_per"])
            ), name
