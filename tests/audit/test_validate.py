"""The whole of a validation: CONTRACT's keys, a line for every item, samples that repeat, and no crash on any cell."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chipwise.audit import KINDS, ValidateRequest, validate
from chipwise.errors import InputError, UnknownNameError

CODES = re.compile(
    r"conditions-missing:\w+|chip-unknown|model-unknown|model-unreadable|engine-unknown|load-kind-not-covered"
    r"|saturated|metric-not-covered|flagged"
)
KEYS = {"items", "scored", "skipped", "metrics", "by_source", "classification", "groups", "worst", "overall", "rows"}
METRIC_KEYS = {"n", "mdape", "median_abs_log", "p90_ape", "bias_log", "coverage80"}
TRAINED = {
    "run_id": "t1",
    "quality": "A",
    "model": "llama-3.1-8b",
    "method": "pretrain",
    "hardware": "h100-sxm",
    "n_devices": 8,
    "n_nodes": 1,
    "tp": 1,
    "pp": 1,
    "cp": 1,
    "fsdp_or_zero": "FSDP",
    "seq_len": 8192,
    "micro_batch": 1,
    "global_batch": 128,
    "precision": "bf16",
    "framework": "Megatron-LM",
    "tokens_s_per_device": 9000,
    "step_s": 14.5,
    "peak_mem_gb": 60,
    "source": "lab/train@1",
}
KINDS_REPLAYED = ("inference", "memory", "training")
Rows = dict[str, dict[str, Any]]
Write = Callable[[Sequence[dict[str, Any]]], str]


@pytest.fixture
def example(served: dict[str, Any], started: dict[str, Any]) -> Rows:
    """A row of each kind of table."""
    return {"inference": served, "memory": started, "training": TRAINED}


def replayed(kind: str, file: str, tmp_path: Path, **more: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    out = tmp_path / "out.jsonl"
    answer = validate(ValidateRequest(kind=kind, file=file, rows=str(out), **more))
    return answer, [json.loads(text) for text in out.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("kind", KINDS_REPLAYED)
def test_the_answer_has_contracts_keys(kind: str, write: Write, tmp_path: Path, example: Rows) -> None:
    answer, lines = replayed(kind, write([example[kind]]), tmp_path)
    assert set(answer) >= KEYS
    assert answer["items"] == len(lines) == answer["scored"] + sum(answer["skipped"].values())
    assert all(set(one) >= METRIC_KEYS for one in answer["metrics"].values())
    assert set(answer["overall"]) == {"mdape", "p90_ape", "bias", "coverage80"}
    assert answer["rows"] == 1
    assert answer["skipped"] == {}
    json.dumps(answer, allow_nan=False)


@pytest.mark.parametrize("kind", KINDS_REPLAYED)
def test_a_line_has_contracts_keys(kind: str, write: Write, tmp_path: Path, example: Rows) -> None:
    _, lines = replayed(kind, write([example[kind]]), tmp_path)
    for line in lines:
        assert list(line) == ["run_id", "metric", "status", "reason", "low", "mid", "high", "evidence", "terms"]
        assert (line["status"], line["reason"]) == ("predicted", None)
        assert line["low"] <= line["mid"] <= line["high"]
        assert line["evidence"] in {"measured", "calibrated", "transferred", "physics"}


def test_params_stand_beside_their_table(tmp_path: Path) -> None:
    config = {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
        "torch_dtype": "bfloat16", "tie_word_embeddings": False, "max_position_embeddings": 131072,
    }  # fmt: skip
    (tmp_path / "a.json").write_text(json.dumps(config), encoding="utf-8")
    table = tmp_path / "index.csv"
    head = "file,arch_class,params_total,params_active,kv_bytes_per_token_bf16,source\n"
    table.write_text(
        head + "a.json,dense LLM,8030261248,8030261248,131072,x/y@1\nlost.json,CNN,5,,,x/y@1\n", encoding="utf-8"
    )
    answer, lines = replayed("params", str(table), tmp_path)
    assert [line["mid"] for line in lines[:4]] == [8030261248, 8030261248, 131072, "dense-llm"]
    assert {line["reason"] for line in lines[4:]} == {"model-unreadable"}
    assert answer["metrics"]["architecture"]["accuracy"] == 1.0
    assert answer["metrics"]["params_total"]["mdape"] == 0.0


def test_training_speaks_in_the_tables_units(write: Write, tmp_path: Path) -> None:
    _, lines = replayed("training", write([TRAINED]), tmp_path)
    by_metric = {line["metric"]: line["mid"] for line in lines}
    assert set(by_metric) == {"tokens_s", "step_s", "peak_mem_gib", "fits"}
    assert by_metric["tokens_s"] * 8 * by_metric["step_s"] == pytest.approx(128 * 8192, rel=1e-4)
    assert by_metric["fits"] is True
    whole = TRAINED | {"tokens_s_per_device": "", "tokens_s_total": 72000}
    _, lines = replayed("training", write([whole]), tmp_path)
    assert lines[0]["mid"] == pytest.approx(8 * by_metric["tokens_s"], rel=1e-4)


def test_speed_of_a_partly_stated_run_is_not_scored(write: Write, tmp_path: Path) -> None:
    _, lines = replayed("training", write([TRAINED | {"quality": "B"}]), tmp_path)
    reasons = {line["metric"]: line["reason"] for line in lines}
    assert reasons["tokens_s"] == reasons["step_s"] == "conditions-missing:quality"
    assert reasons["peak_mem_gib"] is None


def test_a_run_out_of_memory_is_told_from_one_that_ran(write: Write, tmp_path: Path) -> None:
    large = TRAINED | {
        "run_id": "t2",
        "model": "llama-3.3-70b",
        "n_devices": 1,
        "fsdp_or_zero": "",
        "oom": 1,
        "global_batch": 8,
    }
    answer, lines = replayed("training", write([TRAINED, large]), tmp_path)
    assert [line["mid"] for line in lines if line["metric"] == "fits"] == [True, False]
    assert answer["classification"]["balanced_accuracy"] == 1.0


def test_samples_repeat_and_keep_runs_together(write: Write, tmp_path: Path, served: dict[str, Any]) -> None:
    rows = [
        served | {"run_id": f"r{n}", "metric": metric} for n in range(20) for metric in ("ttft_ms_mean", "tpot_ms_mean")
    ]
    file = write(rows)
    answer, first = replayed("inference", file, tmp_path, sample=6)
    _, second = replayed("inference", file, tmp_path, sample=6)
    assert first == second
    assert answer["items"] == len(first) == 6
    assert answer["rows"] == 40
    assert len({line["run_id"] for line in first}) == 3


def test_groups_are_what_was_asked(write: Write, served: dict[str, Any]) -> None:
    rows = [served | {"run_id": "a"}, served | {"run_id": "b", "hardware": "l4"}]
    answer = validate(ValidateRequest(kind="inference", file=write(rows), by=("chip", "engine")))
    assert sorted(one["key"]["chip"] for one in answer["groups"]) == ["h100-sxm", "l4"]


def test_one_bad_run_spoils_no_other(write: Write, tmp_path: Path, served: dict[str, Any]) -> None:
    rows = [served, served | {"run_id": "r2", "tp": 1e-9}, served | {"run_id": "r3", "osl": 1e300}]
    _, lines = replayed("inference", write(rows), tmp_path)
    assert lines[0]["status"] == "predicted"
    assert len(lines) == 3


def test_refusals(write: Write, tmp_path: Path, served: dict[str, Any]) -> None:
    file = write([served])
    with pytest.raises(UnknownNameError, match="inferense"):
        validate(ValidateRequest(kind="inferense", file=file))
    with pytest.raises(InputError, match="cannot be read"):
        validate(ValidateRequest(kind="memory", file=str(tmp_path / "none.csv")))
    with pytest.raises(InputError, match="no measurement"):
        validate(ValidateRequest(kind="memory", file=file))
    with pytest.raises(InputError, match="--models"):
        validate(ValidateRequest(kind="inference", file=file, models=str(tmp_path / "none")))
    with pytest.raises(InputError, match="cannot be written"):
        validate(ValidateRequest(kind="inference", file=file, rows=str(tmp_path / "no" / "out.jsonl")))


CELLS = st.sampled_from(
    [
        "",
        "0",
        "-1",
        "1e9",
        "inf",
        "nan",
        "abc",
        "8",
        "16",
        "2",
        "yes",
        "True",
        "fp8",
        "awq",
        "mxfp4 (native)",
        "0.5",
        "1,024",
        "\x00",
    ]
)


@pytest.mark.parametrize("kind", KINDS_REPLAYED)
def test_no_cell_crashes(kind: str, write: Write, tmp_path: Path, example: Rows) -> None:
    known = [name for name in example[kind] if name not in {"run_id", "model", "metric"}]

    @settings(max_examples=40, suppress_health_check=list(HealthCheck))
    @given(st.dictionaries(st.sampled_from(known), CELLS, max_size=4))
    def odd(cells: dict[str, str]) -> None:
        rows = [example[kind], example[kind] | cells | {"run_id": "odd"}]  # a table without any figure is refused
        answer, lines = replayed(kind, write(rows), tmp_path)
        assert answer["items"] == len(lines)
        assert all(line["reason"] is None or CODES.fullmatch(line["reason"]) for line in lines)
        json.dumps(answer, allow_nan=False)

    odd()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_published_tables_are_replayed(kind: str, shared: Path, tmp_path: Path) -> None:
    """No eligible item is skipped for a chip, model or engine that the tables name."""
    truth = shared / "truth"
    file = truth / "configs" / "index.csv" if kind == "params" else truth / f"{kind}.csv"
    answer, lines = replayed(kind, str(file), tmp_path, models=str(truth / "models.csv"))
    assert answer["items"] == len(lines)
    allowed = ("conditions-missing", "saturated", "flagged")
    others = sum(count for code, count in answer["skipped"].items() if not code.startswith(allowed))
    assert others <= (0 if kind == "inference" else 0.02 * answer["items"])
