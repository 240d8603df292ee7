"""Cells are read for what they say, and a bad one is no crash."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.audit.table import Row, number, read_table
from chipwise.errors import InputError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,024", 1024.0),
        ("~300", 300.0),
        ("8k", 8000.0),
        ("1500±150", 1500.0),
        ("0.95", 0.95),
        ("n/a", None),
        ("nan", None),
    ],
)
def test_a_number_is_read_however_it_is_spelled(text: str, value: float | None) -> None:
    assert number(text) == value


def test_infinite_is_a_number_but_no_positive_one() -> None:
    row = Row(number=1, cells={"rate": "inf", "isl": "0"})
    assert row.value("rate") == math.inf
    assert row.positive("rate") is None
    assert row.positive("isl") is None


@given(st.text(max_size=20))
def test_any_text_gives_a_number_or_none(text: str) -> None:
    value = number(text)
    assert value is None or isinstance(value, float)


@pytest.mark.parametrize(
    ("cells", "source"),
    [
        ({"source_key": "aic", "source": "x/y@1"}, "aic"),
        ({"source": "lab/bench@12:dir/file.csv#L4"}, "lab/bench"),
        ({"source": "lab/bench#16570 comment"}, "lab/bench"),
        ({"source": ""}, "unknown"),
    ],
)
def test_the_source_is_who_measured(cells: dict[str, str], source: str) -> None:
    assert Row(number=1, cells=cells).source == source


def test_a_row_without_a_name_is_named_by_its_line(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("metric,value\ntpot_ms_mean,3\n", encoding="utf-8")
    assert read_table(file, ("metric",))[0].run_id == "line 2"


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n"])
def test_a_table_of_another_kind_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "t.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="metric"):
        read_table(file, ("metric", "value"))


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(InputError, match="cannot be read"):
        read_table(file, ())
