from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import InputError
from chipwise.workload import ModelHints, ServingWorkload, WorkloadRequest, as_json, read_lengths, resolve_workload

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,110
"""
MOONCAKE = """{"timestamp": 0, "input_length": 374, "output_length": 44}
{"timestamp": 4314.579, "input_length": 396, "output_length": 110}
"""


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", AZURE),
        ("b.csv", "arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,374,44\n4.314579,396,110\n"),
        ("c.jsonl", MOONCAKE),
        ("d.json", '[{"isl": 374, "osl": 44, "arrival_s": 1}, {"isl": 396, "osl": 110, "arrival_s": 5.314579}]'),
    ],
)  # fmt: skip
def test_the_dialects_of_traces(tmp_path: Path, name: str, text: str) -> None:
    table = read_lengths(write(tmp_path, name, text))
    assert (table.isl, table.osl) == ((374, 396), (44, 110))
    assert (table.mean_isl, table.mean_osl, table.longest, table.requests) == (385, 77, 506, 2)
    assert table.arrival_s is not None
    assert table.arrival_s == pytest.approx((0.0, 4.314579), abs=1e-5)


def test_without_times_there_are_none(tmp_path: Path) -> None:
    assert read_lengths(write(tmp_path, "a.csv", "isl,osl\n10,5\n")).arrival_s is None
    assert read_lengths(write(tmp_path, "b.csv", "isl,osl,time\n10,5,noon\n")).arrival_s is None


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("a.csv", "", "no request"),
        ("b.csv", "isl,osl\n", "no request"),
        ("c.csv", "prompt,answer\n1,2\n", "no column of prompt lengths"),
        ("d.csv", "isl,answer\n1,2\n", "no column of answer lengths"),
        ("e.csv", "isl,osl\n1,two\n", "'two' is no length"),
        ("f.csv", "isl,osl\n1,-2\n", "is no length"),
        ("g.csv", "isl,osl\n1,nan\n", "is no length"),
        ("h.csv", "isl,osl\n1.5,2\n", "is no length"),
        ("i.jsonl", "{broken\n", "is not JSON"),
        ("j.jsonl", "[1, 2]\n", "must be an object"),
        ("k.jsonl", '{"isl": 1}\n', "no column of answer lengths"),
    ],
)
def test_broken_files_are_refused(tmp_path: Path, name: str, text: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        read_lengths(write(tmp_path, name, text))
    assert what in f"{caught.value.what} {caught.value.why}"
    assert caught.value.fix


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        read_lengths(tmp_path / "none.csv")


@given(pairs=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=30))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[int, int]]) -> None:
    folder = tmp_path_factory.mktemp("lengths")
    lines = [json.dumps({"isl": isl, "osl": osl}) for isl, osl in pairs]
    table = read_lengths(write(folder, "x.jsonl", "\n".join(lines)))
    assert list(zip(table.isl, table.osl, strict=True)) == pairs
    assert table.longest == max(isl + osl for isl, osl in pairs)


def resolved(path: Path, *, limit: int | None = None, context: int | None = None) -> ServingWorkload:
    hints = ModelHints(architecture="dense-llm", max_context_tokens=limit)
    found = resolve_workload(WorkloadRequest(lengths=path, context=context), hints)
    assert isinstance(found, ServingWorkload)
    return found


def test_a_file_gives_the_means_and_the_context(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "isl,osl\n100,50\n300,150\n")
    found = resolved(path)
    assert (found.isl.value, found.osl.value, found.context.value) == (200, 100, 450)
    assert found.isl.origin == found.osl.origin == found.context.origin == "user"
    assert as_json(found)["lengths"] == {"value": str(path), "from": "user"}


def test_requests_longer_than_the_model_are_told(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "isl,osl\n100,50\n3000,150\n")
    found = resolved(path, limit=1024)
    assert (found.context.value, found.context.origin) == (1024, "model")
    assert found.isl.value + found.osl.value <= 1024
    assert "1 of 2 requests" in found.warnings[0]


def test_lengths_twice_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "isl,osl\n100,50\n")
    with pytest.raises(InputError, match="state the lengths twice"):
        resolve_workload(WorkloadRequest(lengths=path, isl=10), ModelHints(architecture="dense-llm"))
