"""Hostile input: always an answer or a clear error, in bounded time and memory."""

from __future__ import annotations

import contextlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import ChipwiseError, InputError, KnowledgeError
from chipwise.model import ModelSpec, all_known, load_model
from chipwise.model.files import read_mapping
from chipwise.model.read import Source, read_source

LLAMA: dict[str, Any] = dict(next(known for known in all_known() if known.name == "llama-3.1-8b").config)
CONFIGS = [dict(known.config) for known in all_known()]
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.text(max_size=8),
    st.lists(st.integers(-5, 5), max_size=4),
    st.dictionaries(st.text(max_size=4), st.integers(-5, 5), max_size=2),
)


def answer(ask: Callable[[], ModelSpec]) -> ModelSpec | None:
    """What is answered, or None where it is refused by one of our own errors; anything else fails the test."""
    with contextlib.suppress(ChipwiseError):
        return ask()
    return None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_hidden_layers", 10**18),
        ("num_hidden_layers", -1),
        ("hidden_size", float("nan")),
        ("hidden_size", float("inf")),
        ("hidden_size", "4096"),
        ("hidden_size", True),
        ("hidden_size", 2**41),
        ("num_attention_heads", 0),
        ("vocab_size", [1, 2]),
        ("tie_word_embeddings", "yes"),
    ],
)
def test_wrong_values_are_named(key: str, value: object) -> None:
    with pytest.raises((InputError, KnowledgeError)) as caught:
        read_source(Source(config={**LLAMA, key: value}, name="bad"))
    assert key in caught.value.what


UNET: dict[str, Any] = {
    "_class_name": "UNet2DConditionModel",
    "block_out_channels": [32, 64],
    "down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D"],
    "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D"],
    "in_channels": 4,
    "cross_attention_dim": 32,
}


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"model_type": "resnet", "hidden_sizes": [64], "depths": [10**9]}, "depths"),
        ({**UNET, "layers_per_block": 10**9}, "layers_per_block"),
        ({**UNET, "transformer_layers_per_block": 10**9}, "transformer_layers_per_block"),
        ({**UNET, "_class_name": "AutoencoderKL", "latent_channels": 4, "layers_per_block": 10**9}, "layers_per_block"),
        ({**LLAMA, "model_type": "gpt_neo", "attention_types": [[["global"], 10**9]]}, "attention_types"),
        ({"model_type": "ijepa", "architectures": ["IJepaModel"], "hidden_size": -5}, "hidden_size"),
        ({**LLAMA, "model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 9}, "9 of 8 experts"),
        ({**LLAMA, "model_type": "x" * 5000, "architectures": None}, "xxx"),
    ],
)
def test_far_too_much_is_named_at_once(config: dict[str, Any], named: str) -> None:
    with pytest.raises(ChipwiseError, match=named):
        read_source(Source(config=config, name="bad"))


def test_a_pipeline_reads_only_its_own_folder(tmp_path: Path) -> None:
    inside = tmp_path / "pipeline"
    inside.mkdir()
    (tmp_path / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    index = {"_class_name": "FluxPipeline", "..": ["transformers", "X"], "y" * 5000: ["transformers", "X"]}
    (inside / "model_index.json").write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(ChipwiseError):
        load_model(str(inside))


def test_ten_to_the_eighteen_layers_state_the_limit() -> None:
    with pytest.raises(InputError, match="num_hidden_layers") as caught:
        read_source(Source(config={**LLAMA, "num_hidden_layers": 10**9}, name="bad"))
    assert "100000" in caught.value.why


def test_many_equal_layers_are_run_length_coded() -> None:
    spec = read_source(Source(config={**LLAMA, "num_hidden_layers": 100_000}, name="tall"))
    assert len(spec.layers) == 1
    assert spec.layer_count == 100_000


@given(st.sampled_from(CONFIGS), st.data())
def test_mutated_configs_answer_or_refuse(config: dict[str, Any], data: st.DataObject) -> None:
    mutated = dict(config)
    for _ in range(data.draw(st.integers(1, 4))):
        key = data.draw(st.sampled_from(sorted(mutated) or ["x"]))
        if data.draw(st.booleans()):
            mutated.pop(key, None)
        else:
            mutated[key] = data.draw(VALUES)
    spec = answer(lambda: read_source(Source(config=mutated, name="mutated")))
    if spec is not None:
        assert 0 <= spec.params_active <= spec.params_total


@given(st.recursive(VALUES, lambda inner: st.dictionaries(st.text(max_size=5), inner, max_size=4), max_leaves=12))
def test_any_object_answers_or_refuses(value: object) -> None:
    config = value if isinstance(value, dict) else {"model_type": value}
    answer(lambda: read_source(Source(config=config, name="any")))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[" * 100_000,
        '{"a": ' * 50_000,
        "null",
        "[]",
        "not: [valid",
        "9" * 5000,
        '{"model_type": "llama", "hidden_size": 1e400}',
    ],
)
def test_broken_files_are_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ChipwiseError):
        load_model(str(path))


def test_binary_and_missing_files(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(InputError):
        read_mapping(path)
    with pytest.raises(InputError):
        load_model(str(tmp_path / "x.json"))


@given(st.binary(max_size=200))
def test_any_bytes_as_gguf(tmp_path_factory: pytest.TempPathFactory, noise: bytes) -> None:
    path = tmp_path_factory.mktemp("gguf") / "x.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<I", 3) + noise)
    with pytest.raises(ChipwiseError):
        load_model(str(path))


@given(st.dictionaries(st.text(max_size=6), VALUES, max_size=4), st.integers(0, 2**63))
def test_any_safetensors_header(tmp_path_factory: pytest.TempPathFactory, header: dict[str, Any], length: int) -> None:
    path = tmp_path_factory.mktemp("st") / "x.safetensors"
    text = json.dumps(header).encode()
    for claimed in (length, len(text)):
        path.write_bytes(struct.pack("<Q", claimed) + text)
        answer(lambda: load_model(str(path)))
