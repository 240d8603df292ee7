"""Names of tables mean what chipwise knows, or say by their code why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from chipwise.audit.items import SkipError
from chipwise.audit.names import at_format, cache_format, chip_named, engine_named, format_named, model_named


@pytest.mark.parametrize(
    ("name", "chip"),
    [
        ("H100-80GB SXM (DGX 8-GPU)", "h100-sxm"),
        ("8x NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80"),
        ("p5.48xlarge", "h100-sxm"),
        ("trn1", "trainium1"),
    ],
)
def test_hardware_is_found_under_its_many_names(name: str, chip: str) -> None:
    assert chip_named(name, "hardware").id == chip


@pytest.mark.parametrize(
    ("name", "code"),
    [("", "conditions-missing:gpu"), ("A100", "conditions-missing:gpu"), ("abacus", "chip-unknown")],
)
def test_hardware_that_is_not_settled_says_so(name: str, code: str) -> None:
    with pytest.raises(SkipError) as found:
        chip_named(name, "gpu")
    assert found.value.code == code


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("fp8_block", "fp8-block"),
        ("bfloat16", "bf16"),
        ("int4-gptq", "int4-g128"),
        ("gptq-marlin (int4)", "int4-g128"),
        ("mxfp4 (fp8 column)", "mxfp4"),
        ("awq 4bit", "int4-g128"),
        ("bf16/fp8 (see README)", "bf16"),
        ("none given on the command line", None),
        ("compressed-tensors", None),
    ],
)
def test_words_for_a_format(words: str, name: str | None) -> None:
    assert format_named(words) == name


def test_a_cache_format_is_one_that_caches_are_kept_in() -> None:
    assert cache_format("fp8_e5m2") == "fp8-e5m2"
    assert cache_format("awq") is None


@pytest.mark.parametrize(
    ("name", "version", "engine", "known"),
    [
        ("vllm (Splitwise fork)", "", "vllm", None),
        ("tensorrt-llm (triton backend)", "0.17", "tensorrt-llm", "0.17"),
        ("nim (tensorrt-llm)", "NIM 1.8.0", "tensorrt-llm", None),
        ("vllm", "2025-10-16", "vllm", None),
        ("vllm", "vLLM 0.10.0, RHEL 9.6", "vllm", "vLLM 0.10.0, RHEL 9.6"),
        ("lmdeploy", "0.6", "lmdeploy", None),
    ],
)
def test_an_engine_and_the_version_that_is_its_own(name: str, version: str, engine: str, known: str | None) -> None:
    found = engine_named(name, version)
    assert (found.name, found.version) == (engine, known)


def test_an_unknown_engine_has_no_profile() -> None:
    assert engine_named("lmdeploy", "").profile is None


def test_a_checkpoint_takes_the_precision_of_the_row() -> None:
    plain, narrow = (at_format("llama-3.1-8b", None, words) for words in ("bf16", "fp8"))
    assert plain.quantisation is None
    assert narrow.quantisation is not None
    assert narrow.quantisation.weight_format == "fp8"


def test_a_model_says_why_it_is_not_there(tmp_path: Path) -> None:
    table = tmp_path / "models.csv"
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    rows = (
        'model,file,variant\nlost,,\nvague,broken.json,"quantised checkpoint, kind not stated"\nbroken,broken.json,\n'
    )
    table.write_text(rows, encoding="utf-8")
    codes = []
    for name in ("", "lost", "vague", "broken", "nobody/knows"):
        with pytest.raises(SkipError) as found:
            model_named(name, table)
        codes.append(found.value.code)
    assert codes == [
        "conditions-missing:model",
        "conditions-missing:model",
        "conditions-missing:quantization",
        "model-unreadable",
        "model-unknown",
    ]
