"""The waiting line: on a terminal only, only after a while, and gone before the answer."""

from __future__ import annotations

import io
from contextlib import redirect_stderr

import pytest

from chipwise.interfaces.cli import output
from chipwise.interfaces.cli.progress import NoLine, WaitingLine, waiting

WIPE = "\r\x1b[K"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.delenv("TERM", raising=False)
    return Terminal()


def drawn(line: WaitingLine | NoLine) -> bool:
    """Whether the line is there, once it is."""
    return isinstance(line, WaitingLine) and line.drawn.wait(timeout=60)


def test_a_long_wait_is_told_and_then_wiped(terminal: Terminal) -> None:
    with redirect_stderr(terminal), waiting("plan", after_s=0.0) as line:
        assert drawn(line)
        shown = terminal.getvalue()
    assert shown.startswith(f"{WIPE}| plan, 0 s")
    assert terminal.getvalue().endswith(WIPE)


def test_a_short_one_leaves_no_trace(terminal: Terminal) -> None:
    with redirect_stderr(terminal), waiting("plan", after_s=3600.0):
        pass
    assert terminal.getvalue() == ""


def fail_after_drawing() -> None:
    with waiting("plan", after_s=0.0) as line:
        raise ValueError("drawn" if drawn(line) else "not drawn")


def test_it_is_wiped_when_the_answer_fails(terminal: Terminal) -> None:
    with redirect_stderr(terminal), pytest.raises(ValueError, match=r"^drawn$"):
        fail_after_drawing()
    assert terminal.getvalue().endswith(WIPE)


def test_clearing_twice_wipes_once(terminal: Terminal) -> None:
    line = WaitingLine("plan", terminal, after_s=0.0)
    assert line.drawn.wait(timeout=60)
    line.clear()
    written = terminal.getvalue()
    line.clear()
    assert terminal.getvalue() == written


def test_no_terminal_no_line() -> None:
    with redirect_stderr(io.StringIO()), waiting("plan", after_s=0.0) as line:
        assert isinstance(line, NoLine)


def test_a_terminal_that_cannot_wipe_gets_none(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with redirect_stderr(terminal), waiting("plan", after_s=0.0) as line:
        assert isinstance(line, NoLine)


def test_a_command_that_asks_draws_none(terminal: Terminal) -> None:
    with redirect_stderr(terminal), waiting("ask", silent=True, after_s=0.0) as line:
        assert isinstance(line, NoLine)


def test_it_is_cleared_before_anything_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[str] = []
    how = output.Output(format="json", color=None, before=lambda: seen.append(capsys.readouterr().out))
    how.emit({"a": 1}, "memory")
    assert seen == [""]
    assert capsys.readouterr().out == '{\n  "a": 1\n}\n'
