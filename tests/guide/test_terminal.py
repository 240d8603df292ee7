"""The questionnaire in a terminal: keys go in through a pipe, as a person would press them."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from chipwise.guide import plan_flags
from chipwise.interfaces.cli import questionnaire

pytest.importorskip("questionary", reason="the extra `ask` is not installed")

from click import Abort
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

ENTER, DOWN, UP, LEAVE, WIPE = "\r", "\x1b[B", "\x1b[A", "\x03", "\x15"
SERVING = ENTER  # the default of the question after the model


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[PipeInput]:
    """A terminal whose keys the test presses."""
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        yield pipe


def test_enter_takes_the_defaults_to_the_end(keys: PipeInput) -> None:
    keys.send_text(ENTER * 20)
    answers = questionnaire.answers_of_terminal(None)
    assert plan_flags(answers) == {
        "for": "chat",
        "goal": "latency,cost",
        "team": "none",
        "timeline": "12w",
        "purchase": "any",
    }
    assert (answers["model"], answers["8.3"]) == ("llama-3.3-70b", "large")


def test_arrow_keys_choose_and_one_can_go_back(keys: PipeInput) -> None:
    keys.send_text(ENTER + SERVING + DOWN + ENTER)  # a service over documents
    keys.send_text(DOWN * 4 + ENTER)  # back, from the goal to the service
    keys.send_text(DOWN * 2 + ENTER)  # an editor
    keys.send_text(DOWN * 3 + ENTER)  # cost first
    keys.send_text(ENTER + "1s" + ENTER + "<" + ENTER + "2s" + ENTER + ENTER * 20)
    flags = plan_flags(questionnaire.answers_of_terminal(None))
    assert (flags["for"], flags["goal"], flags["ttft-p99"]) == ("code", "cost", "2s")


def test_a_wrong_text_is_not_taken(keys: PipeInput) -> None:
    keys.send_text("no-such-model-at-all" + ENTER + WIPE + "qwen3-8b" + ENTER + ENTER * 20)
    answers = questionnaire.answers_of_terminal(None)
    assert (answers["model"], answers["8.3"]) == ("qwen3-8b", "small")
    assert answers["7-tenants"] == "no"


def test_one_can_leave(keys: PipeInput) -> None:
    keys.send_text(ENTER + LEAVE)
    with pytest.raises(Abort):
        questionnaire.answers_of_terminal(None)
