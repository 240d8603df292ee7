"""Where a model may come from: names, notation, folders, look-up tables, headers, the local hub cache."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from chipwise.errors import InputError, KnowledgeError
from chipwise.model import load_model
from chipwise.model.safetensors import read_header

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 100,
    "torch_dtype": "float16",
}
PARAMS = 2 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64) + 2 * 100 * 64 + 64


def write(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_a_json_file_of_any_name(tmp_path: Path) -> None:
    spec = load_model(str(write(tmp_path / "anything.txt", LLAMA)))
    assert spec.params_total == PARAMS
    assert spec.params_source == "config"


def test_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "config.json", LLAMA)
    write(tmp_path / "hf_quant_config.json", {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}})
    spec = load_model(str(tmp_path))
    assert spec.name == tmp_path.name
    assert spec.quantisation is not None
    assert (spec.quantisation.weight_format, spec.quantisation.kv_format) == ("fp8", "fp8")


def test_yaml(tmp_path: Path) -> None:
    path = tmp_path / "yolov8s.yaml"
    path.write_text(
        "nc: 80\nscales:\n  n: [0.33, 0.25, 1024]\n  s: [0.33, 0.50, 1024]\n"
        "backbone:\n  - [-1, 1, Conv, [64, 3, 2]]\n  - [-1, 1, Conv, [128, 3, 2]]\n"
        "head:\n  - [[1], 1, Detect, [nc]]\n",
        encoding="utf-8",
    )
    spec = load_model(str(path))
    assert spec.architecture == "cnn"
    # stem 3 -> 32 and 32 -> 64, each with its norm
    first = sum(weight.params for weight in spec.outer[:6])
    assert first == 3 * 32 * 9 + 64 + 32 * 64 * 9 + 128


def test_look_up_folder_comes_first(tmp_path: Path) -> None:
    write(tmp_path / "acme__small.json", LLAMA)
    assert load_model("acme/small", models=tmp_path).params_total == PARAMS
    assert load_model("llama-3.1-8b", models=tmp_path).params_total == 8_030_261_248
    with pytest.raises(InputError, match="neither"):
        load_model("acme/small", models=tmp_path / "nowhere")


def test_look_up_table(tmp_path: Path) -> None:
    write(tmp_path / "a" / "base.json", LLAMA)
    table = tmp_path / "models.csv"
    rows = ["model,file,variant", "acme/fp8,a/base.json,fp8 checkpoint of base", "acme/none,,"]
    table.write_text(
        "\n".join([*rows, 'acme/odd,a/base.json,"quantised checkpoint, kind not stated"']), encoding="utf-8"
    )
    quantised = load_model("acme/fp8", models=table)
    assert quantised.quantisation is not None
    assert quantised.quantisation.weight_format == "fp8"
    for name in ("acme/none", "acme/odd"):
        with pytest.raises(KnowledgeError):
            load_model(name, models=table)
    with pytest.raises(KnowledgeError):
        load_model("acme/unlisted", models=table)


def test_local_hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    repo = tmp_path / "hub" / "models--acme--cached"
    write(repo / "snapshots" / "abc" / "config.json", LLAMA)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text("abc", encoding="utf-8")
    assert load_model("acme/cached").params_total == PARAMS


def test_an_unknown_name_says_how(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    with pytest.raises(KnowledgeError) as caught:
        load_model("llama-3.3-70")
    assert "llama-3.3-70b" in caught.value.fix
    assert "params:" in caught.value.fix


@pytest.mark.parametrize(
    ("text", "total"),
    [
        ("params:70b", 70e9),
        ("params:7b,layers=32,hidden=4096,heads=32", 7e9),
        ("params:1.5t,active=40b", 1.5e12),
        ("params:500m", 5e8),
    ],
)
def test_notation_holds_the_total(text: str, total: float) -> None:
    spec = load_model(text)
    assert spec.params_total == total
    assert spec.params_source == "user"
    assert any("assumed" in warning for warning in spec.warnings)


def test_notation_holds_the_active_total() -> None:
    spec = load_model("params:1t,active=32b,layers=61,hidden=7168,heads=56,experts=384,per_token=8")
    assert spec.architecture == "moe-llm"
    assert spec.params_active == pytest.approx(32e9, rel=0.02)


@pytest.mark.parametrize(
    "text", ["params:", "params:70x", "params:70b,size=3", "params:1b,layers=200,hidden=8192", "params:0"]
)
def test_notation_refuses(text: str) -> None:
    with pytest.raises(InputError):
        load_model(text)


def safetensors(path: Path, tensors: dict[str, tuple[int, ...]], dtype: str = "BF16") -> Path:
    header = {name: {"dtype": dtype, "shape": list(shape), "data_offsets": [0, 0]} for name, shape in tensors.items()}
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)
    return path


TENSORS: dict[str, tuple[int, ...]] = {
    "model.embed_tokens.weight": (100, 64),
    "model.layers.0.self_attn.q_proj.weight": (64, 64),
    "model.layers.1.self_attn.q_proj.weight": (64, 64),
    "lm_head.weight": (100, 64),
}


def test_safetensors_header_decides(tmp_path: Path) -> None:
    spec = load_model(str(safetensors(tmp_path / "model.safetensors", TENSORS)))
    assert spec.params_total == 2 * 100 * 64 + 2 * 64 * 64
    assert (spec.architecture, spec.params_source, spec.layer_count) == ("dense-llm", "safetensors", 2)


def test_weights_beside_a_config_are_compared(tmp_path: Path) -> None:
    write(tmp_path / "config.json", LLAMA)
    safetensors(tmp_path / "model.safetensors", TENSORS)
    spec = load_model(str(tmp_path))
    assert spec.params_total == 2 * 100 * 64 + 2 * 64 * 64
    assert any(str(PARAMS) in warning for warning in spec.warnings)


def test_safetensors_index(tmp_path: Path) -> None:
    index = {"metadata": {"total_size": 2000}, "weight_map": {"encoder.block.0.layer.0.q.weight": "a"}}
    spec = load_model(str(write(tmp_path / "x.index.json", index)))
    assert (spec.params_total, spec.architecture) == (1000, "encoder")
    with pytest.raises(KnowledgeError, match="total_size"):
        load_model(str(write(tmp_path / "y.index.json", {"weight_map": {}})))


def test_a_header_longer_than_its_file(tmp_path: Path) -> None:
    path = tmp_path / "broken.safetensors"
    path.write_bytes(struct.pack("<Q", 10**15) + b"{}")
    with pytest.raises(InputError) as caught:
        read_header(path)
    assert "claims" in caught.value.why


def gguf(path: Path, metadata: dict[str, object], tensors: dict[str, tuple[tuple[int, ...], int]]) -> Path:
    def string(text: str) -> bytes:
        return struct.pack("<Q", len(text.encode())) + text.encode()

    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, value in metadata.items():
        out += string(key)
        out += struct.pack("<I", 8) + string(value) if isinstance(value, str) else struct.pack("<IQ", 10, value)
    for name, (shape, kind) in tensors.items():
        out += string(name) + struct.pack("<I", len(shape))
        out += b"".join(struct.pack("<Q", side) for side in shape) + struct.pack("<IQ", kind, 0)
    path.write_bytes(out)
    return path


META: dict[str, object] = {
    "general.architecture": "llama",
    "llama.block_count": 1,
    "llama.embedding_length": 64,
    "llama.feed_forward_length": 128,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.context_length": 256,
}
Q4_K, Q6_K, F32 = 12, 14, 0
GGUF_TENSORS: dict[str, tuple[tuple[int, ...], int]] = {
    "token_embd.weight": ((64, 100), Q4_K),
    "output.weight": ((64, 100), Q6_K),
    "output_norm.weight": ((64,), F32),
    "blk.0.attn_norm.weight": ((64,), F32),
    "blk.0.ffn_norm.weight": ((64,), F32),
    "blk.0.attn_q.weight": ((64, 64), Q4_K),
    "blk.0.attn_k.weight": ((64, 32), Q4_K),
    "blk.0.attn_v.weight": ((64, 32), Q6_K),
    "blk.0.attn_output.weight": ((64, 64), Q4_K),
    "blk.0.ffn_gate.weight": ((64, 128), Q4_K),
    "blk.0.ffn_up.weight": ((64, 128), Q4_K),
    "blk.0.ffn_down.weight": ((128, 64), Q6_K),
}


def test_gguf_types_stand_on_the_weights(tmp_path: Path) -> None:
    spec = load_model(str(gguf(tmp_path / "m.gguf", META, GGUF_TENSORS)))
    total = 2 * 6400 + 3 * 64 + 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128
    assert (spec.params_total, spec.params_source) == (total, "gguf")
    assert spec.kv_bytes_per_token() == 2 * 2 * 16 * 2
    formats = {weight.name: weight.format for weight, _ in spec.all_weights()}
    assert formats["self_attn.q_proj"] == "gguf-q4_k"
    assert formats["self_attn.v_proj"] == formats["lm_head"] == "gguf-q6_k"
    assert formats["model.norm"] == "fp32"
    assert spec.quantisation is not None
    assert 4.5 < spec.quantisation.bits_per_weight < 6.6


def test_gguf_tensors_decide(tmp_path: Path) -> None:
    fewer = {name: value for name, value in GGUF_TENSORS.items() if name != "blk.0.ffn_gate.weight"}
    spec = load_model(str(gguf(tmp_path / "m.gguf", META, fewer)))
    full = load_model(str(gguf(tmp_path / "n.gguf", META, GGUF_TENSORS)))
    assert full.params_total - spec.params_total == 64 * 128
    assert any("the tensors count" in warning for warning in spec.warnings)


def test_gguf_without_enough_metadata_is_counted_by_tensors(tmp_path: Path) -> None:
    spec = load_model(str(gguf(tmp_path / "m.gguf", {"general.architecture": "strange"}, GGUF_TENSORS)))
    assert spec.params_total > 0
    assert any("metadata" in warning for warning in spec.warnings)


def test_pipeline_is_the_sum_of_its_parts(tmp_path: Path) -> None:
    index = {
        "_class_name": "FluxPipeline",
        "text_encoder": ["transformers", "X"],
        "scheduler": ["diffusers", "AScheduler"],
    }
    path = write(tmp_path / "model_index.json", index)
    with pytest.raises(KnowledgeError, match="text_encoder"):
        load_model(str(path))
    write(tmp_path / "text_encoder" / "config.json", LLAMA)
    assert load_model(str(tmp_path)).params_total == PARAMS
    assert load_model(str(tmp_path)).architecture == "diffusion"
