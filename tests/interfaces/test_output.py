"""How an answer leaves: colour only where it is wanted, JSON alone, a width that reads well."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from chipwise.errors import InputError
from chipwise.interfaces.cli import output


class _Stream(io.TextIOWrapper):
    """stdout with a known encoding, which is a terminal or not."""

    def __init__(self, *, encoding: str = "utf-8", terminal: bool = False) -> None:
        super().__init__(io.BytesIO(), encoding=encoding)
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    def written(self) -> str:
        self.flush()
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode(self.encoding)


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("asked", "environment", "terminal", "colored"),
    [
        (None, {}, True, True),
        (None, {}, False, False),
        (None, {"TERM": "dumb"}, True, False),
        (None, {"NO_COLOR": "1"}, True, False),
        (None, {"NO_COLOR": ""}, True, True),
        (None, {"FORCE_COLOR": "1"}, False, True),
        (None, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        (True, {"NO_COLOR": "1"}, False, True),
        (False, {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_colour(
    monkeypatch: pytest.MonkeyPatch,
    *,
    asked: bool | None,
    environment: dict[str, str],
    terminal: bool,
    colored: bool,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", _Stream(terminal=terminal))
    assert output.colored(asked=asked) is colored


@pytest.mark.parametrize(("columns", "width"), [("20", 60), ("80", 80), ("120", 120), ("300", 120)])
def test_width(monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert output.width() == width


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_json_stays_json_whatever_stdout_can_write(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    answer = {"what": "2 \u00d7 p5 \u2264 1 s \u2713", "odd": "\udcff"}
    stream = _Stream(encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    output.write(output.json_text(answer))
    assert json.loads(stream.written()) == answer


def test_text_that_stdout_cannot_write_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = _Stream(encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    output.write("2 \u00d7 p5\n")
    assert stream.written() == "2 x p5\n"


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({"output_format": None, "as_json": False}, "text"),
        ({"output_format": "md", "as_json": False}, "md"),
        ({"output_format": None, "as_json": True}, "json"),
        ({"output_format": "json", "as_json": True}, "json"),
    ],
)
def test_formats(values: dict[str, Any], wanted: str) -> None:
    assert output.take({**values, "color": None}).format == wanted


@pytest.mark.parametrize(
    "values", [{"output_format": "md", "as_json": True}, {"output_format": "pdf", "as_json": False}]
)
def test_contradictions_and_unknown_formats_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        output.take({**values, "color": None})


def test_a_reader_who_leaves_is_met_in_silence() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "chipwise", "catalog", "list"]
    result = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (result.returncode, result.stderr) == (0, b"")
