"""The questionnaire: order, conditions, flags, the way back, and from an answers file to a plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import UnknownNameError
from chipwise.guide import answer_from, next_question, plan_flags, way, without_last
from chipwise.guide.ask import questions
from chipwise.interfaces.cli import cli
from chipwise.interfaces.cli.commands.plan import QUESTION

SERVING = "model: llama-3.3-70b\nwork: serving\nservice: chat\ngoal: latency\nsecond: cost\nusers: 64\ncontext: 8k\n"


def run(path: Path, text: str, *flags: str) -> Result:
    path.write_text(text)
    result = CliRunner().invoke(cli, ["guide", "ask", "--answers", str(path), *flags], prog_name="chipwise")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def answered(choices: dict[str, str], scale: str = "large") -> dict[str, str]:
    """The answers of a questionnaire gone through with these choices, defaults elsewhere."""
    answers: dict[str, str] = {}
    while (asked := next_question(answers)) is not None:
        answers[asked.id] = scale if asked.kind == "scale" else answer_from(asked, choices)
    return answers


def test_a_service_is_asked_for_its_goal_at_the_scale_of_the_model() -> None:
    for scale, goal_box in {"small": "8.6", "mid": "8.7", "large": "8.8"}.items():
        answers = answered({"work": "serving"}, scale)
        assert goal_box in answers
        assert "1-training" not in answers
        assert ("7-tenants" in answers) is (scale == "small")


def test_training_is_asked_for_its_stage() -> None:
    assert {"8.4", "tokens"} <= set(answered({"work": "training", "stage": "pretrain"}))
    answers = answered({"work": "training", "stage": "lora", "goal": "training-cost"})
    assert {"8.5", "budget"} <= set(answers)
    assert not {"8.4", "deadline", "users", "8.3"} & set(answers)


def test_answers_become_flags() -> None:
    given_answers = {
        "work": "serving", "service": "rag", "goal": "latency", "second": "cost", "users": "64", "weights": "fp8",
        "team": "cuda", "kernels": "yes", "timeline": "week", "posture": "exploring", "running": "interruptible",
        "region": "us-east-1,eu",
    }  # fmt: skip
    assert plan_flags(answered(given_answers)) == {
        "for": "rag", "goal": "latency,cost", "users": "64", "min-precision": "fp8", "team": "cuda",
        "custom-kernels": "true", "timeline": "1w", "stability": "exploring", "purchase": "spot",
        "region": "us-east-1,eu",
    }  # fmt: skip


def test_a_second_goal_equal_to_the_first_is_said_once() -> None:
    assert plan_flags(answered({"goal": "cost", "second": "cost"}))["goal"] == "cost"


def test_every_flag_that_an_answer_sets_is_one_of_plan() -> None:
    known = {flag.name.removeprefix("--"): flag for flag in QUESTION}
    for asked in questions():
        assert not asked.flag or asked.flag in known
        for choice in asked.choices:
            name, _, value = choice.sets.partition("=")
            if name and name != "second" and known[name].parse is not None:
                known[name].read(value)


@given(st.data())
def test_any_way_ends_and_can_be_walked_back(data: st.DataObject) -> None:
    answers: dict[str, str] = {}
    for _ in range(60):
        asked = next_question(answers)
        if asked is None:
            break
        if answers and data.draw(st.integers(0, 5)) == 0:
            shorter = without_last(answers)
            assert len(shorter) < len(answers)
            answers = shorter
            continue
        keys = [one.key for one in asked.choices]
        answers[asked.id] = data.draw(st.sampled_from(keys)) if keys else asked.default
    assert [one.id for one in way(answers)] == [one.id for one in questions() if answers.get(one.id)]
    assert plan_flags(answers) is not None


def test_the_way_explains_every_choice() -> None:
    steps = way(answered({"work": "serving", "service": "chat"}))
    chosen = [one for one in steps if one.source]
    assert len(chosen) > 5
    assert all(one.source.startswith("guide ") for one in chosen)


def test_every_choice_explains_itself_on_one_line_of_a_terminal() -> None:
    for asked in questions():
        for choice in asked.choices:
            assert choice.explains
            assert len(f"  Description: {choice.explains} ({choice.source})") < 80, choice


def test_an_unknown_answer_proposes_near_ones() -> None:
    asked = next(one for one in questions() if one.id == "8.1")
    with pytest.raises(UnknownNameError) as caught:
        answer_from(asked, {"work": "trainin"})
    assert "training" in caught.value.fix


def test_a_file_of_answers_ends_in_a_plan(tmp_path: Path) -> None:
    result = run(tmp_path / "a.yaml", SERVING + "region: [us-east-1]\n", "--json")
    assert result.exit_code in {0, 1}, result.stderr
    workload = json.loads(result.stdout)["workload"]
    assert workload["users"] == {"value": 64, "from": "user"}
    assert "chipwise plan llama-3.3-70b --for chat --goal latency,cost" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("wrk: serving\n", "unknown question 'wrk'"),
        ("work: learning\n", "unknown answer to work"),
        ("work: training\nstage: lora\nusers: 3\n", "users is not asked here"),
        ("- work\n", "holds no answers"),
        ("work: {a: b}\n", "holds no answers"),
        ("a: b: c", "cannot be read"),
        (SERVING + "ttft-p99: soon\n", "--ttft-p99"),
        ("model: no-such-model-at-all\n", "no-such-model-at-all"),
    ],
)
def test_a_wrong_file_is_answered_with_help(tmp_path: Path, text: str, words: str) -> None:
    result = run(tmp_path / "a.yaml", text)
    assert result.exit_code in {2, 3}
    assert words in result.stderr
    assert "fix:" in result.stderr


def test_without_a_terminal_it_says_what_to_do() -> None:
    result = CliRunner().invoke(cli, ["guide", "ask"], prog_name="chipwise")
    assert result.exit_code == 2
    assert "--answers" in result.stderr
