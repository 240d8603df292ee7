from __future__ import annotations

import csv
from pathlib import Path

import pytest

from chipwise.engines import (
    SupportQuestion,
    command_arguments,
    engine_flags,
    engine_names,
    load_engine,
    neuron_sdk,
    neuron_support,
    parse_version,
    supports,
)
from chipwise.engines.flags import engine_flags_of
from chipwise.engines.neuron import _rows
from chipwise.engines.support import _rules
from chipwise.errors import InputError, UnknownNameError
from chipwise.precision import canonical, format_facts, format_names


def ask(
    family: str = "bf16",
    cc: str | None = "9.0",
    *,
    architecture: str = "dense-llm",
    model_type: str = "llama",
    vendor: str = "nvidia",
) -> SupportQuestion:
    return SupportQuestion(
        model_type=model_type,
        architecture=architecture,
        vendor=vendor,
        chip_architecture="any",
        compute_capability=cc,
        format_family=family,
    )


@pytest.mark.parametrize(
    ("engine", "version", "question", "status"),
    [
        ("vllm", None, ask("fp8"), "ok"),
        ("vllm", None, ask("int8", "8.0"), "ok"),
        ("vllm", None, ask("int8", "10.0"), "unsupported"),
        ("vllm", None, ask("int8", "12.0"), "unsupported"),
        ("vllm", None, ask("int8", "7.0"), "unsupported"),
        ("vllm", None, ask("fp8", "7.5"), "ok"),
        ("vllm", "0.11.0", ask("fp8", "7.5"), "unsupported"),
        ("vllm", None, ask("fp8", "7.0"), "unsupported"),
        ("vllm", None, ask("nvfp4", "8.0"), "ok"),
        ("vllm", "0.8.4", ask("nvfp4", "10.0"), "unsupported"),
        ("vllm", None, ask("mlx"), "unsupported"),
        ("vllm", None, ask(architecture="moe-llm"), "ok"),
        ("vllm", None, ask(architecture="encoder"), "ok"),
        ("vllm", None, ask(architecture="audio", model_type="whisper"), "ok"),
        ("vllm", None, ask(architecture="audio", model_type="bark"), "unknown"),
        ("vllm", None, ask(architecture="diffusion"), "unsupported"),
        ("vllm", None, ask(architecture="cnn"), "unsupported"),
        ("vllm", None, ask(vendor="aws", cc=None), "unsupported"),
        ("tensorrt-llm", None, ask("fp8", "8.0"), "unsupported"),
        ("tensorrt-llm", None, ask("nvfp4", "9.0"), "unsupported"),
        ("tensorrt-llm", None, ask("nvfp4", "10.0"), "ok"),
        ("tensorrt-llm", None, ask("bf16", "7.5"), "unsupported"),
        ("sglang", None, ask("fp8"), "ok"),
        ("vllm-neuron", None, ask(vendor="aws", cc=None), "unknown"),
        ("transformers", None, ask(architecture="diffusion"), "ok"),
        ("transformers", None, ask("fp8", architecture="diffusion"), "unknown"),
        ("megatron", None, ask("mxfp8", "10.0"), "ok"),
    ],
)  # fmt: skip
def test_supports(engine: str, version: str | None, question: SupportQuestion, status: str) -> None:
    verdict = supports(load_engine(engine, version), question)
    assert verdict.status == status
    assert verdict.why
    assert verdict.source


def test_every_engine_has_a_launcher_and_names_its_settings() -> None:
    for name in ("vllm", "sglang", "tensorrt-llm", "tgi", "vllm-neuron", "nxd-inference"):
        flags = engine_flags(load_engine(name))
        assert flags.launcher
        assert {"model", "tp", "context", "max_num_seqs"} <= set(flags.by_setting)


def test_the_command_of_an_engine() -> None:
    settings: dict[str, str | int | float | bool] = {"tp": 8, "context": 8192, "eager": True, "utilization": 0.9}
    assert command_arguments(engine_flags_of("vllm"), {"model": "org/name", **settings}) == [
        "org/name", "--tensor-parallel-size", "8", "--max-model-len", "8192", "--gpu-memory-utilization", "0.9",
        "--enforce-eager",
    ]  # fmt: skip
    assert command_arguments(engine_flags_of("sglang"), settings) == [
        "--tp-size", "8", "--context-length", "8192", "--mem-fraction-static", "0.9", "--disable-cuda-graph",
    ]  # fmt: skip


def test_a_switch_that_is_off_is_not_printed() -> None:
    assert command_arguments(engine_flags_of("vllm"), {"eager": False, "ep": False}) == []


def test_settings_of_a_file_make_no_argument() -> None:
    assert command_arguments(engine_flags_of("tensorrt-llm"), {"tp": 2, "kv": "fp8"}) == ["--tp_size", "2"]
    assert engine_flags_of("tensorrt-llm").by_setting["kv"].flag == "kv_cache_config.dtype"


def test_a_setting_an_engine_lacks_is_refused() -> None:
    with pytest.raises(InputError, match="has no setting 'warp'") as caught:
        command_arguments(engine_flags_of("vllm"), {"warp": 9})
    assert "tp" in caught.value.fix
    with pytest.raises(UnknownNameError):
        engine_flags_of("no-such-engine")


@pytest.mark.parametrize(
    ("model_type", "task", "chip", "status", "level", "pin"),
    [
        ("llama", "serve", "trainium2", "ok", "recipe", None),
        ("llama", "serve", "trainium3", "ok", "recipe", None),
        ("llama", "serve", "inferentia2", "ok", "supported", "2.28"),
        ("llama", "serve", "trainium1", "ok", "supported", "2.28"),
        ("gpt_oss", "serve", "trainium2", "ok", "recipe", None),
        ("qwen3", "serve", "trainium2", "ok", "supported", "2.31.0"),
        ("qwen3_moe", "serve", "trainium2", "beta", "contrib", "2.31.0"),
        ("qwen3", "embed", "trainium2", "ok", "recipe", None),
        ("mixtral", "serve", "trainium2", "ok", "supported", "2.28"),
        ("deepseek_v3", "serve", "trainium2", "beta", "contrib", "2.28"),
        ("phi3", "serve", "inferentia2", "ok", "supported", "2.26.1"),
        ("bert", "embed", "inferentia2", "ok", "supported", None),
        ("whisper", "audio", "inferentia2", "ok", "supported", "2.26.1"),
        ("resnet", "vision", "trainium1", "ok", "supported", None),
        ("FluxTransformer2DModel", "diffusion", "trainium1", "ok", "supported", "2.26.1"),
        ("llama", "train", "trainium1", "ok", "supported", "2.26.1"),
        ("qwen2", "train", "trainium2", "beta", "contrib", None),
        ("some_new_model", "serve", "trainium2", "unknown", "contrib", None),
        ("some_new_model", "serve", "inferentia2", "unsupported", "not-supported", None),
        ("deepseek_v3", "serve", "trainium1", "unsupported", "not-supported", None),
        ("llama", "serve", "inferentia1", "unsupported", "not-supported", None),
        ("resnet", "vision", "trainium3", "unsupported", "not-supported", None),
    ],
)
def test_the_best_way_on_neuron(
    model_type: str, task: str, chip: str, status: str, level: str, *, pin: str | None
) -> None:
    found = neuron_support(model_type, task, chip)
    assert (found.status, found.level, found.sdk_pin) == (status, level, pin)
    assert found.why
    assert found.source


def test_gpt_oss_is_bf16_on_trainium2_and_mxfp4_on_trainium3() -> None:
    assert neuron_support("gpt_oss", "serve", "trainium2").formats == ("bf16",)
    assert "mxfp4" in neuron_support("gpt_oss", "serve", "trainium3").formats


def test_limits_of_a_recipe_come_along() -> None:
    llama = neuron_support("llama", "serve", "trainium2")
    assert (llama.max_model_len, llama.max_num_seqs, llama.pipeline_parallel) == (16384, 8, False)
    assert neuron_support("llama", "serve", "inferentia2").tp == (1, 2, 4, 8, 24)
    assert neuron_support("qwen3", "embed", "trainium2").tp == (2, 4, 8, 16, 32)


def test_a_pinned_sdk_says_so_in_words() -> None:
    assert "2.28" in neuron_support("llama", "serve", "inferentia2").why
    assert "Neuron SDK" not in neuron_support("llama", "serve", "trainium2").why


def test_rows_of_the_neuron_table_are_whole() -> None:
    for row in _rows():
        assert row.patterns
        assert row.chips
        assert row.cells["constraints"]
        assert row.cells["source"]
        assert row.cells["where"]
        assert row.level in {"recipe", "supported", "contrib", "end-of-support", "not-supported"}
        assert all(canonical(name) == name for name in row.cells["formats"].split())
        assert row.engine in {"", *engine_names()}


def test_families_of_the_rules_are_families_of_formats() -> None:
    families = {format_facts(name).family for name in format_names()} | {"*"}
    assert {word for rule in _rules() for word in rule["families"].split()} <= families
    assert {rule["engine"] for rule in _rules()} <= set(engine_names())


def test_the_tables_describe_one_sdk() -> None:
    assert parse_version(neuron_sdk()) == (2, 32, 0)


def test_the_published_rows_find_an_answer(shared: Path) -> None:
    """Every row that a page calls a recipe or supported is answered at least as well for its chips and task."""
    chips = {"trn1": "trainium1", "trn2": "trainium2", "trn3": "trainium3", "inf2": "inferentia2"}
    with (shared / "truth" / "neuron_models.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["status"] in {"recipe", "supported"} and row["chips"]]
    worse = []
    for row in rows:
        model_type = row["architecture"].split(" ")[0].split("/")[0].lower().replace("-", "_")
        for chip in row["chips"].split(","):
            found = neuron_support(model_type, row["task"], chips[chip])
            if found.status not in {"ok", "beta"}:
                worse.append((row["row_id"], model_type, row["task"], chip, found.status))
    assert worse == []
