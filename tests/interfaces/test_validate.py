"""`chipwise validate`: the kinds are commands, flags reach the request, text and JSON say the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chipwise.interfaces.cli.door import cli

HEAD = (
    "run_id,model,hardware,n_devices,tp,engine,weight_precision,isl,osl,concurrency_or_batch,load_kind,"
    "metric,value,unit"
)
ROWS = (
    "r1,llama-3.1-8b,h100-sxm,1,1,vllm,bf16,1024,256,16,fixed-concurrency,tpot_ms_mean,8.1,ms",
    "r1,llama-3.1-8b,h100-sxm,1,1,vllm,bf16,1024,256,16,fixed-concurrency,ttft_ms_mean,90,ms",
    "r2,llama-3.1-8b,abacus,1,1,vllm,bf16,1024,256,16,fixed-concurrency,tpot_ms_mean,8.1,ms",
)


@pytest.fixture
def table(tmp_path: Path) -> str:
    file = tmp_path / "inference.csv"
    file.write_text("\n".join((HEAD, *ROWS)) + "\n", encoding="utf-8")
    return str(file)


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        cli.main(["validate", *words])
    shown = capsys.readouterr()
    return int(left.value.code or 0), shown.out, shown.err


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    status, out, _ = ask(capsys, *words, "--json")
    assert status == 0
    found: dict[str, Any] = json.loads(out)
    return found


def test_json_is_one_document_with_the_counts(capsys: pytest.CaptureFixture[str], table: str) -> None:
    found = answer(capsys, "inference", table)
    assert (found["items"], found["scored"], found["skipped"]) == (3, 2, {"chip-unknown": 1})


def test_rows_by_and_sample_reach_the_request(capsys: pytest.CaptureFixture[str], table: str, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    found = answer(capsys, "inference", table, "--rows", str(out), "--by", "chip,metric", "--sample", "2")
    assert len(out.read_text(encoding="utf-8").splitlines()) == found["items"] == 2
    assert all(set(one["key"]) == {"chip", "metric"} for one in found["groups"])


def test_text_names_metrics_groups_and_what_was_skipped(capsys: pytest.CaptureFixture[str], table: str) -> None:
    status, out, _ = ask(capsys, "inference", table, "--by", "chip")
    assert status == 0
    for words in ("tpot_ms_mean", "h100-sxm", "chip-unknown", "Furthest off"):
        assert words in out


def test_decisions_print_their_page(capsys: pytest.CaptureFixture[str], table: str) -> None:
    status, out, _ = ask(capsys, "decisions", table)
    assert status == 0
    assert "0 questions" in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("infrence", "x.csv"), "did you mean inference"),
        (("inference",), "FILE is missing"),
        (("inference", "nowhere.csv"), "cannot be read"),
        (("inference", "nowhere.csv", "--sample", "0"), "--sample"),
    ],
)
def test_a_wrong_request_is_told_and_leaves_with_2(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], told: str
) -> None:
    status, out, err = ask(capsys, *words)
    assert (status, out) == (2, "")
    assert told in err


def test_a_wrong_request_in_json_is_an_error_object(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = ask(capsys, "memory", "nowhere.csv", "--json")
    assert status == 2
    assert json.loads(out)["error"]["family"] == "input"
