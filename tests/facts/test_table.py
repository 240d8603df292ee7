"""The loader: worked tables, every refusal with file and line, and any text at all."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import KnowledgeError
from chipwise.facts import FactTable, Source, facts_of, read_facts, read_rows, read_sources, values_of
from chipwise.facts.table import FACT_COLUMNS, SOURCE_COLUMNS

SOURCES = {"log": Source(key="log", title="A log", locator="somewhere", read_on="2026-11-30")}
HEADER = ",".join(FACT_COLUMNS) + "\n"
GOOD = "chip,memory,79.19,GiB,measured,log,line 3,2026-11-30,newer\n"
RIVAL = "chip,memory,81920,MiB,api,log,GpuInfo,2026-11-30,\n"
WORDS = "chip,native,fp16|bf16,,vendor,log,table,2026-11-30,\n"
FLAG = "chip,sparsity,true,,vendor,log,table,2026-11-30,\n"
VERSION = "chip,compute_capability,9.0,,vendor,log,table,2026-11-30,\n"


def table(folder: Path, text: str) -> FactTable:
    path = folder / "facts.csv"
    path.write_text(text, encoding="utf-8")
    return read_facts(path, SOURCES)


def test_the_first_row_is_chosen_and_the_others_are_its_conflicts(tmp_path: Path) -> None:
    facts = table(tmp_path, HEADER + GOOD + WORDS + RIVAL)
    memory, native = facts_of(facts, "chip")
    assert (memory.value, memory.unit, memory.kind, memory.why) == (79.19, "GiB", "measured", "newer")
    assert [(rival.value, rival.unit, rival.kind, rival.why) for rival in memory.conflicts] == [
        (81920, "MiB", "api", None)
    ]
    assert (native.value, native.unit, native.conflicts) == ("fp16|bf16", None, ())


def test_values_are_the_chosen_ones_in_base_units(tmp_path: Path) -> None:
    facts = table(tmp_path, HEADER + GOOD + RIVAL + FLAG + VERSION)
    assert values_of(facts, "chip") == {
        "memory": 85_029_615_043,
        "sparsity": True,
        "compute_capability": "9.0",
    }


def test_an_unknown_subject_has_nothing(tmp_path: Path) -> None:
    facts = table(tmp_path, HEADER + GOOD)
    assert values_of(facts, "other") == {}
    assert facts_of(facts, "other") == ()


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("subject,key\n", 1, "columns"),
        ("", 1, "columns"),
        (HEADER + "chip,memory,1\n", 2, "3 fields"),
        (HEADER + GOOD + GOOD.replace("79.19", "80 or so"), 3, "finite number"),
        (HEADER + GOOD.replace("79.19", "nan"), 2, "finite number"),
        (HEADER + GOOD.replace("79.19", "inf"), 2, "finite number"),
        (HEADER + GOOD.replace("79.19", "1e300"), 2, "finite number"),
        (HEADER + "chip,cores,2.5,count,api,log,x,2026-11-30,\n", 2, "not whole"),
        (HEADER + GOOD.replace("GiB", "gib"), 2, "unit 'gib'"),
        (HEADER + GOOD.replace("measured", "heard"), 2, "kind 'heard'"),
        (HEADER + GOOD.replace(",log,", ",dream,"), 2, "source 'dream'"),
        (HEADER + GOOD.replace("79.19", ""), 2, "value is empty"),
        (HEADER + GOOD.replace("line 3", ""), 2, "where is empty"),
        (HEADER + GOOD.replace("2026-11-30", ""), 2, "read_on is empty"),
        (HEADER + GOOD.replace("chip", ""), 2, "subject is empty"),
        (HEADER + GOOD.replace("memory", ""), 2, "key is empty"),
        (HEADER + '"chip', 2, "unexpected end"),
    ],
)
def test_a_broken_row_names_file_and_line(tmp_path: Path, text: str, line: int, word: str) -> None:
    with pytest.raises(KnowledgeError) as caught:
        table(tmp_path, text)
    assert caught.value.what.startswith(f"facts.csv:{line}: ")
    assert word in caught.value.what
    assert "facts.csv" in caught.value.fix


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError, match=r"^none\.csv:0: No such file"):
        read_rows(tmp_path / "none.csv", FACT_COLUMNS)


def test_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes(HEADER.encode() + b"caf\xe9")
    with pytest.raises(KnowledgeError, match="not UTF-8"):
        read_facts(path, SOURCES)


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        ("a,Title,there,2026-11-30\na,Again,there,2026-11-30\n", "sources.csv:3: source 'a' stands twice"),
        ("a,,there,2026-11-30\n", "sources.csv:2: an empty field"),
    ],
)
def test_sources_are_whole_and_unique(tmp_path: Path, rows: str, word: str) -> None:
    path = tmp_path / "sources.csv"
    path.write_text(",".join(SOURCE_COLUMNS) + "\n" + rows, encoding="utf-8")
    with pytest.raises(KnowledgeError) as caught:
        read_sources(path)
    assert word in caught.value.what


def test_sources_by_key(tmp_path: Path) -> None:
    path = tmp_path / "sources.csv"
    path.write_text(",".join(SOURCE_COLUMNS) + "\nlog,A log,somewhere,2026-11-30\n", encoding="utf-8")
    assert read_sources(path) == SOURCES


words = st.text(max_size=12)
rows = st.lists(
    st.lists(st.one_of(words, st.sampled_from(["GiB", "api", "log", "1", "true", ""])), min_size=7, max_size=10)
)


def _read(path: Path) -> FactTable | KnowledgeError:
    try:
        return read_facts(path, SOURCES)
    except KnowledgeError as error:
        return error


def _facts_or_refusal(folder: Path, content: bytes) -> None:
    path = folder / "facts.csv"
    path.write_bytes(content)
    facts = _read(path)
    if isinstance(facts, KnowledgeError):
        assert facts.what.startswith("facts.csv:")
        return
    for subject in facts.rows:
        assert len(facts_of(facts, subject)) == len(values_of(facts, subject)) > 0


@given(st.one_of(st.binary(max_size=200), words.map(lambda text: (HEADER + text).encode("utf-8", "replace"))))
def test_any_bytes_are_facts_or_a_clear_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    _facts_or_refusal(tmp_path_factory.mktemp("any"), content)


@given(rows)
def test_any_csv_is_facts_or_a_clear_error(tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]) -> None:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    content = (HEADER + text.getvalue()).encode("utf-8", "replace")
    _facts_or_refusal(tmp_path_factory.mktemp("csv"), content)


@given(st.integers(0, 10**12), st.sampled_from(["GiB", "GB", "MiB", "bytes"]))
def test_a_number_survives_the_table(tmp_path_factory: pytest.TempPathFactory, value: int, unit: str) -> None:
    row = f"chip,memory,{value},{unit},api,log,x,2026-11-30,\n"
    (fact,) = facts_of(table(tmp_path_factory.mktemp("one"), HEADER + row), "chip")
    assert (fact.value, fact.unit) == (value, unit)
