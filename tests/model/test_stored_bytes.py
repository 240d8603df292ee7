"""Bytes of every quantised form, computed by hand for one small Llama (and one mixture), modules left out with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chipwise.errors import KnowledgeError
from chipwise.model import load_model
from chipwise.model.read import Source, read_source
from chipwise.model.spec import ModelSpec
from chipwise.precision.checkpoint import stored_bytes

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
    "dtype": "bfloat16",
}
# One layer: q and o 256 x 256, k and v 128 x 256, gate and up 512 x 256, down 256 x 512.
ELEMENTS = 2 * (2 * 65_536 + 2 * 32_768 + 3 * 131_072)
ROWS = 2 * (256 + 128 + 128 + 256 + 512 + 512 + 256)
MATRICES = 2 * 7
BLOCKS_128 = 2 * (4 + 2 + 2 + 4 + 8 + 8 + 8)
DOWN = 2 * 131_072
# The embedding and the head, 1000 x 256 each, and five norms, at two bytes.
TABLES, NORMS = 2 * 256_000, 5 * 256
REST_BYTES = 2 * (TABLES + NORMS)


def read(stored: dict[str, Any] | None, *, name: str = "made-up", **more: Any) -> ModelSpec:
    config = LLAMA if stored is None else {**LLAMA, "quantization_config": stored}
    return read_source(Source(config={**config, **more}, name=name))


def linear_bytes(spec: ModelSpec) -> int:
    return stored_bytes(spec).total_bytes - REST_BYTES


def group(**weights: Any) -> dict[str, Any]:
    inputs = weights.pop("acts", None)
    return {"targets": ["Linear"], "weights": weights, "input_activations": inputs}


def compressed(packing: str, *groups: dict[str, Any], **more: Any) -> dict[str, Any]:
    listed = {f"group_{index}": item for index, item in enumerate(groups)}
    return {"quant_method": "compressed-tensors", "format": packing, "config_groups": listed, **more}


def bits(by_weight: float, *, each: int = 0, of: int = 1) -> float:
    """Bytes of all linear elements at so many bits, with a scale of `each` bits every `of`."""
    return ELEMENTS * by_weight / 8 + ELEMENTS / of * each / 8


GPTQ4 = {"quant_method": "gptq", "bits": 4}
SPARSE = {"format": "sparse-24-bitmask", "sparsity_structure": "2:4", "ignore": ["lm_head"], "targets": ["Linear"]}
FP8_ROW = group(num_bits=8, type="float", strategy="channel", acts={"num_bits": 8, "type": "float"})
HQQ = {"weight_quant_params": {"nbits": 4, "group_size": 64, "axis": 1}, "scale_quant_params": None}
AO4 = {"default": {"_type": "Int4WeightOnlyConfig", "_version": 1, "_data": {"group_size": 32}}}

FORMS: list[tuple[str, dict[str, Any], float]] = [
    # FP8
    ("fp8 by tensor", {"quant_method": "fp8", "activation_scheme": "static"}, ELEMENTS + 4 * MATRICES),
    ("fp8 by block", {"quant_method": "fp8", "weight_block_size": [128, 128]}, ELEMENTS + 4 * BLOCKS_128),
    ("fp8 by small block", {"quant_method": "fp8", "weight_block_size": [64, 64]}, ELEMENTS + 4 * 4 * 72),
    ("mxfp8", {"quant_method": "mxfp8"}, bits(8, each=8, of=32)),
    ("fbgemm", {"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0}, ELEMENTS + 4 * ROWS),
    ("mistral's own", {"qformat_weight": "fp8_e4m3", "qscheme_act": "TENSOR"}, ELEMENTS + 4 * MATRICES),
    # compressed-tensors
    ("W8A8 fp8 rows", compressed("float-quantized", FP8_ROW), ELEMENTS + 4 * ROWS),
    (
        "fp8 blocks",
        compressed("float-quantized", group(num_bits=8, type="float", strategy="block", block_structure=[128, 128])),
        ELEMENTS + 4 * BLOCKS_128,
    ),
    (
        "W8A8 int8",
        compressed("int-quantized", group(num_bits=8, type="int", strategy="channel", acts={"num_bits": 8})),
        ELEMENTS + 4 * ROWS,
    ),
    (
        "W8A16",
        compressed("pack-quantized", group(num_bits=8, type="int", strategy="channel")),
        ELEMENTS + 2 * ROWS,
    ),
    (
        "W8A16 by group",
        compressed("pack-quantized", group(num_bits=8, type="int", strategy="group", group_size=128)),
        bits(8, each=16, of=128),
    ),
    (
        "W4A16",
        compressed("pack-quantized", group(num_bits=4, type="int", strategy="group", group_size=128)),
        bits(4, each=16, of=128),
    ),
    (
        "W4A16 with zero points",
        compressed("pack-quantized", group(num_bits=4, type="int", strategy="group", group_size=128, symmetric=False)),
        bits(4, each=20, of=128),
    ),
    (
        "W4A16 by row",
        compressed("pack-quantized", group(num_bits=4, type="int", strategy="channel")),
        ELEMENTS / 2 + 2 * ROWS,
    ),
    (
        "a preset",
        {"quant_method": "compressed-tensors", "config_groups": {"W4A16": ["Linear"]}},
        bits(4, each=16, of=128),
    ),
    (
        "NVFP4",
        compressed("nvfp4-pack-quantized", group(num_bits=4, type="float", strategy="tensor_group", group_size=16)),
        bits(4, each=8, of=16),
    ),
    (
        "MXFP4",
        compressed("mxfp4-pack-quantized", group(num_bits=4, type="float", strategy="group", group_size=32)),
        bits(4, each=8, of=32),
    ),
    ("2:4 of 16 bits", compressed("dense", sparsity_config=SPARSE), ELEMENTS / 2 * 2 + ELEMENTS / 8),
    (
        "2:4 of fp8",
        compressed("float-quantized", FP8_ROW, sparsity_config=SPARSE, ignore=["lm_head"]),
        ELEMENTS / 2 + ELEMENTS / 8 + 4 * ROWS,
    ),
    (
        "2:4 of W4A16",
        compressed("marlin-24", group(num_bits=4, type="int", strategy="group", group_size=128)),
        bits(2 + 1, each=16, of=128),
    ),
    # ModelOpt
    ("modelopt fp8", {"quant_method": "modelopt", "quant_algo": "FP8"}, ELEMENTS + 4 * MATRICES),
    ("modelopt blocks", {"quant_method": "modelopt", "quant_algo": "FP8_PB_WO"}, ELEMENTS + 4 * BLOCKS_128),
    ("modelopt nvfp4", {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16}, bits(4, each=8, of=16)),
    (
        "modelopt awq",
        {"quantization": {"quant_algo": "W4A16_AWQ", "group_size": 128, "has_zero_point": False}},
        bits(4, each=16, of=128),
    ),
    ("modelopt mxfp8", {"quant_method": "modelopt", "quant_algo": "MXFP8"}, bits(8, each=8, of=32)),
    # integers
    ("awq", {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}, bits(4, each=16 + 4, of=128)),
    ("gptq", {**GPTQ4, "group_size": 32, "desc_act": True}, bits(4, each=16 + 4, of=32)),
    ("gptq by row", {**GPTQ4, "group_size": -1}, ELEMENTS / 2 + 2 * ROWS),
    ("gptq of 8 bits", {**GPTQ4, "bits": 8, "group_size": 128}, bits(8, each=16 + 8, of=128)),
    ("gptq of 3 bits", {**GPTQ4, "bits": 3, "group_size": 128}, bits(3, each=16 + 3, of=128)),
    ("auto-round", {"quant_method": "auto-round", "bits": 2, "group_size": 64}, bits(2, each=16 + 2, of=64)),
    (
        "auto-round mx",
        {"quant_method": "auto-round", "bits": 4, "group_size": 32, "data_type": "mx_fp"},
        bits(4, each=8, of=32),
    ),
    (
        "nf4",
        {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
        bits(4, each=32, of=64),
    ),
    (
        "nf4, scales quantised again",
        {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True},
        bits(4) + ELEMENTS / 64 * 1 + ELEMENTS / 64 / 256 * 4,
    ),
    ("llm.int8()", {"quant_method": "bitsandbytes", "load_in_8bit": True}, ELEMENTS + 4 * ROWS),
    ("hqq", {"quant_method": "hqq", "quant_config": HQQ, "skip_modules": ["lm_head"]}, bits(4, each=16 + 16, of=64)),
    ("quanto", {"quant_method": "quanto", "weights": "int8"}, ELEMENTS + 2 * ROWS),
    ("torchao", {"quant_method": "torchao", "quant_type": AO4}, bits(4, each=16 + 16, of=32)),
    (
        "torchao by its older name",
        {"quant_method": "torchao", "quant_type": "int8_weight_only"},
        ELEMENTS + 2 * ROWS,
    ),
    (
        "aqlm",
        {"quant_method": "aqlm", "nbits_per_codebook": 8, "num_codebooks": 2},
        bits(2) + MATRICES * 2 * 256 * 8 * 2,
    ),
    ("exl2", {"quant_method": "exl2", "bits": 4.25}, bits(4.25)),
    ("bitnet", {"quant_method": "bitnet"}, bits(2) + 2 * MATRICES),
    ("eetq", {"quant_method": "eetq"}, ELEMENTS + 2 * ROWS),
    ("quark", {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4"}}}, bits(4, each=8, of=32)),
]


@pytest.mark.parametrize(("config", "expected"), [form[1:] for form in FORMS], ids=[form[0] for form in FORMS])
def test_linear_layers_take_the_bytes_of_their_form(config: dict[str, Any], expected: float) -> None:
    spec = read(config)
    assert linear_bytes(spec) == round(expected)
    assert spec.params_total == ELEMENTS + TABLES + NORMS


@pytest.mark.parametrize(
    ("config", "by_weight"),
    [
        ({"bits": 4, "group_size": 64}, 4 + 32 / 64),
        ({"bits": 8, "group_size": 64}, 8 + 32 / 64),
        ({"bits": 3, "group_size": 32}, 3 + 32 / 32),
        ({"bits": 6, "group_size": 128, "mode": "affine"}, 6 + 32 / 128),
        ({"bits": 4, "group_size": 32, "mode": "mxfp4"}, 4 + 8 / 32),
        ({"bits": 4, "group_size": 16, "mode": "nvfp4"}, 4 + 8 / 16),
    ],
)
def test_mlx_takes_the_embedding_and_the_head_too(config: dict[str, Any], by_weight: float) -> None:
    spec = read(None, quantization=config)
    assert stored_bytes(spec).total_bytes == round((ELEMENTS + TABLES) * by_weight / 8) + 2 * NORMS


FOUR = ELEMENTS / 2 + ELEMENTS / 128 * 20 / 8
DOWN_4 = DOWN / 2 + DOWN / 128 * 20 / 8
DOWN_8 = DOWN + DOWN / 128 * 24 / 8


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"modules_to_not_convert": ["down_proj"]}, FOUR - DOWN_4 + 2 * DOWN),
        ({"quant_method": "gptq", "dynamic": {r"-:.*\.down_proj": {}}}, FOUR - DOWN_4 + 2 * DOWN),
        ({"quant_method": "gptq", "dynamic": {r"+:.*down_proj": {"bits": 8}}}, FOUR - DOWN_4 + DOWN_8),
        (
            {"quant_method": "gptq", "modules_in_block_to_quantize": [["mlp.down_proj"]]},
            DOWN_4 + 2 * (ELEMENTS - DOWN),
        ),
        (
            {"quant_method": "auto-round", "extra_config": {"model.layers.0.mlp.down_proj": {"bits": 16}}},
            FOUR - DOWN_4 / 2 + DOWN,
        ),
        (
            {"quant_method": "auto-round", "extra_config": {".*down_proj.*": {"bits": 8}}},
            FOUR - DOWN_4 + DOWN_8,
        ),
    ],
)
def test_modules_set_apart(config: dict[str, Any], expected: float) -> None:
    assert linear_bytes(read({"quant_method": "awq", "bits": 4, "group_size": 128, **config})) == round(expected)


def test_mlx_modules_set_apart() -> None:
    own = {"model.layers.1.mlp.down_proj": {"bits": 8, "group_size": 64}, "lm_head": False}
    spec = read(None, quantization={"bits": 4, "group_size": 64, **own})
    four, eight, kept = ELEMENTS + TABLES // 2 - DOWN // 2, DOWN // 2, TABLES // 2
    assert stored_bytes(spec).total_bytes == four * 4.5 / 8 + eight * 8.5 / 8 + 2 * (kept + NORMS)


def test_torchao_by_module() -> None:
    by_module = {
        "_default": {"_type": "Int8WeightOnlyConfig"},
        "model.layers.0.mlp.down_proj": {"_type": "Int4WeightOnlyConfig", "_data": {"group_size": 128}},
    }
    chosen = {"default": {"_type": "ModuleFqnToConfig", "_data": {"module_fqn_to_config": by_module}}}
    half = DOWN // 2
    expected = half / 2 + half / 128 * 4 + (ELEMENTS - half) + 2 * (ROWS - 256)
    assert linear_bytes(read({"quant_method": "torchao", "quant_type": chosen})) == expected


def test_the_head_by_its_own_bits() -> None:
    spec = read({"quant_method": "exl2", "bits": 4.0, "head_bits": 6})
    assert stored_bytes(spec).total_bytes == ELEMENTS / 2 + 256_000 * 6 / 8 + 2 * (256_000 + NORMS)


def test_mixtures_keep_their_router_and_mxfp4_takes_experts_alone() -> None:
    config = {
        **LLAMA,
        "model_type": "qwen3_moe",
        "architectures": ["Qwen3MoeForCausalLM"],
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 64,
        "head_dim": 64,
    }
    plain = stored_bytes(read_source(Source(config=config, name="made-up"))).total_bytes
    experts = 2 * 8 * 3 * 64 * 256
    stored = {**config, "quantization_config": {"quant_method": "mxfp4"}}
    assert stored_bytes(read_source(Source(config=stored, name="made-up"))).total_bytes == (
        plain - 2 * experts + experts * 4.25 / 8
    )
    bytes_by_row = {**config, "quantization_config": {"quant_method": "experts_int8"}}
    rows = 2 * 8 * (64 + 64 + 256)
    assert stored_bytes(read_source(Source(config=bytes_by_row, name="made-up"))).total_bytes == (
        plain - 2 * experts + experts + 2 * rows
    )


def test_deepseeks_own_format_says_fp8_as_dtype() -> None:
    spec = read(None, dtype="fp8")
    assert spec.quantisation is not None
    assert spec.quantisation.weight_format == "fp8-block"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("org/Some-7B-AWQ", "int4-g128"),
        ("Some-7B-FP8", "fp8"),
        ("Some-7B-FP8-dynamic", "fp8-channel"),
        ("Some-7B-GPTQ-Int8", "int8-g128"),
        ("Some-7B-quantized.w8a8", "int8"),
        ("Some-7B-NVFP4", "nvfp4"),
        ("Some-7B-bnb-4bit", "nf4"),
        ("mlx-community/Some-7B-4bit", "mlx-int4-g64"),
        ("Some-7B-MLX-8bit", "mlx-int8-g64"),
    ],
)
def test_a_name_alone_is_an_inference(name: str, expected: str) -> None:
    spec = read(None, name=name)
    assert spec.quantisation is not None
    assert spec.quantisation.weight_format == expected
    assert spec.quantisation.inferred_from == f"name {name!r}"


@pytest.mark.parametrize("name", ["Some-7B", "Alfp8-7B", "Some-fp16", "awqward-7B", "Some-4bits-of-truth"])
def test_other_names_infer_nothing(name: str) -> None:
    assert read(None, name=name).quantisation is None


def test_a_config_goes_before_the_name() -> None:
    spec = read({"quant_method": "awq", "bits": 4, "group_size": 64}, name="Some-FP8")
    assert spec.quantisation is not None
    assert (spec.quantisation.weight_format, spec.quantisation.inferred_from) == ("int4-g64", None)


def test_a_sidecar_goes_before_the_config(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    algorithm = {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(algorithm))
    spec = load_model(str(tmp_path))
    assert linear_bytes(spec) == round(bits(4, each=8, of=16))
    assert spec.quantisation is not None
    assert spec.quantisation.kv_format == "fp8"


def test_an_unknown_method_is_told() -> None:
    spec = read({"quant_method": "qzip"})
    assert spec.quantisation is None
    assert any("'qzip' is not known" in warning for warning in spec.warnings)
    by_bits = read({"quant_method": "qzip", "bits": 4, "group_size": 64})
    assert by_bits.quantisation is not None
    assert any("read as 4-bit integers (int4-g64)" in warning for warning in by_bits.warnings)
    algorithm = read({"quant_method": "modelopt", "quant_algo": "W1A1_MAGIC"})
    assert any("'W1A1_MAGIC' is not known" in warning for warning in algorithm.warnings)


def test_a_rule_of_unknown_width_is_refused() -> None:
    with pytest.raises(KnowledgeError, match="int4-g7"):
        read({"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": {"+:.*q_proj": {"group_size": 7}}})
