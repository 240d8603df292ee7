"""Which engine a start-up row ran: the release it states, the one its source dates it to, and vLLM's first engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chipwise.audit import memory
from chipwise.audit.dating import release_meant
from chipwise.audit.items import Context, Line
from chipwise.audit.table import Row

CONTEXT = Context(file=Path("memory.csv"))


@pytest.fixture
def row(started: dict[str, Any]) -> Callable[..., Row]:
    def build(**cells: Any) -> Row:
        merged = started | cells
        return Row(number=2, cells={name: str(value) for name, value in merged.items() if value is not None})

    return build


@pytest.fixture
def version(row: Callable[..., Row]) -> Callable[..., str | None]:
    def found(**cells: Any) -> str | None:
        one = row(**cells)
        return memory.engine_of(one, memory.device_of(one)).version

    return found


@pytest.fixture
def lines(row: Callable[..., Row]) -> Callable[..., dict[str, Line]]:
    def replayed(**cells: Any) -> dict[str, Line]:
        items = memory.items_of([row(**cells)], CONTEXT)
        return {line.item.metric: line for line in memory.predict(items, CONTEXT)}

    return replayed


@pytest.mark.parametrize(
    ("version", "source", "release"),
    [
        ("main of 2024-12-13", "", "0.6.4"),
        ("built 2023-12-16", "", "0.2.5"),
        ("", "vllm-project/vllm#16570", "0.8.4"),
        ("", "vllm-project/vllm#2200", "0.2.6"),  # between two dated threads
        ("", "vllm-project/vllm#100", "0.2.1"),  # before the first: as old as the first
        ("", "vllm-project/vllm#99999", "0.26.0"),
        ("", "another/project#16570", None),
        ("", "a page", None),
        ("2023-02-31", "", None),
        ("2020-01-01", "", None),  # before the first release
    ],
)
def test_a_day_or_a_thread_dates_a_release(version: str, source: str, release: str | None) -> None:
    assert release_meant("vllm", version, source) == release


def test_another_engine_s_threads_date_nothing() -> None:
    assert release_meant("sglang", "", "vllm-project/vllm#16570") is None
    assert release_meant("sglang", "", "sgl-project/sglang#11309") is None  # no releases are listed


def test_a_stated_release_stands(version: Callable[..., str | None]) -> None:
    assert version(engine_version="0.19.0", source="vllm-project/vllm#2382") == "0.19.0"


def test_a_row_without_release_takes_that_of_its_thread(version: Callable[..., str | None]) -> None:
    assert version(engine_version="", source="vllm-project/vllm#21348") == "0.9.2"
    assert version(engine_version="commit bfde49e28", source="vllm-project/vllm#9630") == "0.6.3"
    assert version(engine_version="", source="a page") is None


@pytest.mark.parametrize(
    ("cells", "first"),
    [
        ({"engine_version": "0.8.3", "note": "V0 engine, driver worker"}, True),
        ({"engine_version": "0.8.5", "gpu_blocks": 1017}, True),
        ({"engine_version": "0.8.5", "gpu": "Tesla T4"}, True),
        ({"engine_version": "0.10.2", "gpu": "Tesla T4"}, True),
        ({"engine_version": "", "gpu_blocks": 1017}, True),
        ({"engine_version": "0.8.5"}, False),
        ({"engine_version": "0.10.2", "gpu_blocks": 7162}, False),
        ({"engine_version": "0.19.0", "gpu": "Tesla T4", "gpu_blocks": 7891}, False),
        ({"engine_version": "0.6.4", "gpu_blocks": 1017}, False),
        ({"engine_version": ""}, False),
    ],
)
def test_the_first_engine_is_told_by_note_blocks_or_old_chip(
    version: Callable[..., str | None], cells: dict[str, Any], *, first: bool
) -> None:
    assert (version(**cells) == "0.7.3") is first


def test_the_first_engine_profiles_whole_prompts(lines: Callable[..., dict[str, Line]]) -> None:
    def activation(**cells: Any) -> float:
        found = lines(activation_gib=1.0, engine_version="0.8.5", gpu_blocks=99, **cells)["activation_gib"].prediction
        assert found is not None
        return float(found.mid)

    assert activation(max_model_len=32768) > activation(max_model_len=8192)
    assert activation(max_model_len=65536) == activation(max_model_len=40000)  # chunked by itself beyond 32K


def test_words_that_say_default_state_the_utilization(lines: Callable[..., dict[str, Line]]) -> None:
    unsaid = {"gpu_memory_utilization_or_mem_fraction": ""}
    assert lines(**unsaid)["kv_tokens"].code is not None
    for note in ("default gpu_memory_utilization", "default utilization; refused", "started with default arguments"):
        assert lines(**unsaid, note=note)["kv_tokens"].code is None


def test_a_pool_below_nothing_is_told_as_it_is(lines: Callable[..., dict[str, Line]]) -> None:
    found = lines(model="llama-3.3-70b", kv_mem_gib_per_gpu=-60)["kv_mem_gib"].prediction
    assert found is not None
    assert found.low < found.mid < -55
    assert found.mid < found.high < 0


def test_a_32_bit_model_caches_in_32_bits(lines: Callable[..., dict[str, Line]]) -> None:
    def tokens(**cells: Any) -> float:
        found = lines(**cells)["kv_tokens"].prediction
        assert found is not None
        return float(found.mid)

    assert tokens(dtype="float32") < 0.5 * tokens()
    assert tokens(dtype="float32", kv_cache_dtype="fp8") > 3.5 * tokens(dtype="float32")


def test_quantising_while_loading_takes_towers_too(lines: Callable[..., dict[str, Line]]) -> None:
    def weights(words: str) -> float:
        found = lines(model="qwen2.5-vl-7b", quantization=words)["weights_gib"].prediction
        assert found is not None
        return float(found.mid)

    assert 0.4 < weights("fp8") - weights("fp8 (online)") < 0.8  # 0.68e9 parameters, one byte each less


def test_graphs_that_find_no_room_stop_the_start(lines: Callable[..., dict[str, Line]]) -> None:
    def starts(share: float) -> Any:
        found = lines(gpu_memory_utilization_or_mem_fraction=share)["fits"].prediction
        assert found is not None
        return found.mid

    assert starts(0.95) is True
    assert starts(0.99) is False


def test_a_file_format_holds_its_embeddings_too(row: Callable[..., Row], tmp_path: Path) -> None:
    """Q8_0 is 34 bytes for 32 weights, of the embedding as of the layers."""
    shape = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
        "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
        "vocab_size": 128256, "tie_word_embeddings": True, "max_position_embeddings": 8192,
    }  # fmt: skip
    (tmp_path / "small.json").write_text(json.dumps(shape), encoding="utf-8")
    table = tmp_path / "models.csv"
    table.write_text("model,file,variant\nsmall,small.json,gguf q8_0 checkpoint of base\n", encoding="utf-8")
    context = Context(file=Path("memory.csv"), models=table)
    items = memory.items_of([row(model="small", quantization="gguf Q8_0")], context)
    found = {line.item.metric: line for line in memory.predict(items, context)}["weights_gib"].prediction
    assert found is not None
    parameters = 128256 * 2048 + 16 * (2048 * 2048 * 2 + 2 * 512 * 2048 + 3 * 2048 * 8192)
    assert found.mid * 2**30 == pytest.approx(parameters * 34 / 32, rel=0.002)
