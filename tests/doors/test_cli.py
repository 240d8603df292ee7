"""The command line, end to end: exit statuses, JSON alone on stdout, errors that help, never a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from chipwise.interfaces.cli import cli
from chipwise.report.schema import schema

MODEL = "llama-3.3-70b"
CHAT = ["--for", "chat", "--users", "64", "--context", "8k", "--ttft-p99", "1s", "--tpot-p99", "40ms"]
LORA = ["--for", "lora", "--tokens", "100M", "--epochs", "1", "--deadline", "3d"]
H100 = ["--chip", "h100-sxm", "--tp", "4"]
ANSWERS = {
    "model": ["model", MODEL],
    "model_list": ["model", "--list"],
    "memory": ["memory", MODEL, *H100, "--context", "8k", "--concurrency", "16"],
    "memory table": ["memory", MODEL, *H100, "--table", "8k,32kx1,16"],
    "estimate": [
        "estimate",
        MODEL,
        "--on",
        "p5.48xlarge",
        "--tp",
        "4",
        "--isl",
        "1k",
        "--osl",
        "256",
        "--concurrency",
        "16",
    ],
    "plan": ["plan", MODEL, *CHAT, "--goal", "latency,cost"],
    "plan of a run": ["plan", "llama-3.1-8b", *LORA],
    "estimate of a run": ["estimate", "llama-3.1-8b", "--chip", "h100-sxm", "--method", "lora"],
    "memory of a run": ["memory", "llama-3.1-8b", "--chip", "h100-sxm", "--method", "lora"],
    "why": ["why", "p5.48xlarge", MODEL, *CHAT],
    "why of a run": ["why", "g6e.xlarge", "llama-3.1-8b", *LORA],
    "compare": ["compare", "p5.48xlarge", "trn2.48xlarge"],
    "compare for a model": ["compare", "p5.48xlarge", "g6.xlarge", "--model", MODEL, *CHAT],
    "catalog list": ["catalog", "list"],
    "catalog show": ["catalog", "show", "p5en.48xlarge"],
    "catalog show chip": ["catalog", "show", "l40s"],
    "catalog check": ["catalog", "check"],
}


@pytest.fixture(autouse=True, scope="module")
def _elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Files that a drawn flag asks for are written into a folder of the test's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("folder"))
        yield


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, list(arguments), prog_name="chipwise")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_one_valid_json_document(name: str) -> None:
    result = run(*ANSWERS[name], "--json")
    assert result.exit_code == 0, result.stderr
    Draft202012Validator(schema(name.split(maxsplit=1)[0])).validate(json.loads(result.stdout))
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("form", ["text", "md"])
def test_an_answer_is_a_page(name: str, form: str) -> None:
    result = run(*ANSWERS[name], "-o", form)
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) > 0
    assert "\x1b[" not in result.stdout


def test_format_json_is_json() -> None:
    assert run("model", MODEL, "-o", "json").stdout == run("model", MODEL, "--json").stdout


WRONG = {
    "unknown command": ["memry", MODEL],
    "unknown flag": ["memory", MODEL, "--conext", "8k"],
    "missing model": ["memory"],
    "unknown chip": ["memory", MODEL, "--chip", "h1000"],
    "unknown instance": ["estimate", MODEL, "--on", "p5en.48xlarg", "--concurrency", "1", "--isl", "9", "--osl", "9"],
    "unknown preset": ["plan", MODEL, "--for", "chta"],
    "tp that does not divide": ["memory", MODEL, "--chip", "h100-sxm", "--tp", "7"],
    "negative users": ["plan", MODEL, "--users", "-5"],
    "users that are no number": ["plan", MODEL, "--users", "many"],
    "no such unit": ["plan", MODEL, "--ttft-p99", "3 parsecs"],
    "unknown format": ["model", MODEL, "-o", "pdf"],
    "unknown goal": ["plan", MODEL, "--goal", "beauty"],
    "unknown region": ["plan", MODEL, "--region", "us-east-99"],
    "no such file": ["plan", MODEL, "--workload", "none.yaml"],
    "unknown schema": ["schema", "plans"],
    "no sub-command": ["catalog"],
    "unknown size": ["catalog", "show", "p5en.48xlarg"],
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_answered_with_what_why_fix(name: str) -> None:
    result = run(*WRONG[name])
    assert result.exit_code == 2, (result.stdout, result.stderr)
    assert result.stdout == ""
    assert [row.split(":")[0].strip() for row in result.stderr.splitlines()][:3] == ["error", "why", "fix"]


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_json_too(name: str) -> None:
    result = run(*WRONG[name], "--json")
    assert result.exit_code == 2
    answer = json.loads(result.stdout)
    Draft202012Validator(schema("error")).validate(answer)
    assert answer["error"]["family"] == "input"
    assert answer["error"]["what"] in result.stderr


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("unknown command", "memory"),
        ("unknown flag", "--context"),
        ("unknown instance", "p5en.48xlarge"),
        ("unknown preset", "chat"),
        ("unknown schema", "plan"),
        ("unknown size", "p5en.48xlarge"),
    ],
)
def test_a_typing_error_is_met_with_near_names(name: str, near: str) -> None:
    assert f"did you mean {near}" in run(*WRONG[name]).stderr


def test_contradictory_formats_are_wrong_input() -> None:
    result = run("model", MODEL, "--json", "-o", "md")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"]["fix"] == "keep one of the two"


def test_an_unknown_model_is_knowledge_we_lack() -> None:
    result = run("plan", "llama-3.3-71b", "--json")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["error"]["family"]) == (3, "knowledge")
    assert "llama-3.3-70b" in answer["error"]["fix"]


def test_what_does_not_fit_is_an_answer() -> None:
    result = run("memory", MODEL, "--chip", "l4", "--json")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["fits"]) == (1, False)
    assert answer["shortfall_bytes"] > 0


def test_nothing_feasible_is_an_answer() -> None:
    result = run("plan", MODEL, "--only", "g6.xlarge", "--json")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["options"]) == (1, [])
    assert "g6.xlarge" in {row["instance"] for row in answer["rejected"]}


def test_a_question_in_a_file_is_the_same_question(tmp_path: Path) -> None:
    path = tmp_path / "chat.yaml"
    path.write_text("for: chat\nusers: 64\ncontext: 8k\nttft-p99: 1s\ntpot-p99: 40ms\n")
    assert run("plan", MODEL, "--workload", str(path), "--json").stdout == run("plan", MODEL, *CHAT, "--json").stdout


def test_flags_win_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "chat.yaml"
    path.write_text("for: chat\nusers: 64\n")
    answer = json.loads(run("plan", MODEL, "--workload", str(path), "--users", "8", "--json").stdout)
    assert answer["workload"]["users"] == {"value": 8, "from": "user"}


def test_a_training_run_in_a_file_is_the_same_question(tmp_path: Path) -> None:
    path = tmp_path / "lora.yaml"
    path.write_text("for: lora\ntokens: 100M\nepochs: 1\ndeadline: 3d\n")
    asked = run("plan", "llama-3.1-8b", "--workload", str(path), "--json")
    assert asked.exit_code == 0
    assert asked.stdout == run("plan", "llama-3.1-8b", *LORA, "--json").stdout


def test_why_agrees_with_plan_and_says_what_would_turn_it() -> None:
    plan = json.loads(run("plan", MODEL, *CHAT, "--region", "us-east-1", "--json").stdout)
    first, behind, out = plan["options"][0], plan["also_feasible"][0], plan["rejected"]
    for row, place in ((first, "options"), (behind, "also_feasible")):
        result = run("why", row["instance"], MODEL, *CHAT, "--region", "us-east-1", "--json")
        answer = json.loads(result.stdout)
        assert (result.exit_code, answer["stands_in"], answer["detail"]) == (0, place, row)
        assert answer["best"] == first["instance"]
    elsewhere = next(row["instance"] for row in out if row["rule"] == "region" and row["instance"] == "p5e.48xlarge")
    result = run("why", elsewhere, MODEL, *CHAT, "--region", "us-east-1", "--json")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["stands_in"]) == (1, "rejected")
    assert "region" in {one["kind"] for one in answer["would_change_it"]}


def test_compare_puts_the_same_facts_side_by_side() -> None:
    answer = json.loads(run("compare", "p5.48xlarge", "p5.4xlarge", "--json").stdout)
    facts = {row["fact"]: (row["first"], row["second"]) for row in answer["facts"]}
    assert facts["chip"] == ("h100-sxm", "h100-sxm")
    assert facts["chips"] == (8, 1)
    assert answer["answers"] is None


def test_compare_takes_the_model_that_a_file_of_flags_names(tmp_path: Path) -> None:
    path = tmp_path / "chat.yaml"
    path.write_text(f"model: {MODEL}\nfor: chat\nusers: 64\n", encoding="utf-8")
    sizes = ["compare", "p5.48xlarge", "p5e.48xlarge"]
    by_file = run(*sizes, "--workload", str(path), "--json")
    by_flags = run(*sizes, "--model", MODEL, "--for", "chat", "--users", "64", "--json")
    assert json.loads(by_file.stdout)["answers"]
    assert by_file.stdout == by_flags.stdout
    path.write_text("users: 64\n", encoding="utf-8")
    nameless = run(*sizes, "--workload", str(path))
    assert (nameless.exit_code, "MODEL is missing" in nameless.stderr) == (2, True)


def leaves(answer: Any, path: str = "") -> list[tuple[str, Any]]:
    if isinstance(answer, dict):
        if set(answer) == {"low", "mid", "high"}:
            return [(path, answer)]
        return [one for key, part in answer.items() for one in leaves(part, f"{path}.{key}")]
    if isinstance(answer, list):
        return [one for part in answer for one in leaves(part, path)]
    return [(path, answer)]


def test_no_cost_is_a_bare_number() -> None:
    answer = json.loads(run("plan", MODEL, *CHAT, "--json").stdout)
    costs = [(path, value) for path, value in leaves(answer) if "usd" in path and ".workload" not in path]
    assert costs
    assert [(path, value) for path, value in costs if value is not None and not isinstance(value, dict)] == []


def test_memory_terms_add_up() -> None:
    answer = json.loads(run("memory", MODEL, *H100, "--table", "8k,128kx1,64", "--json").stdout)
    for cell in (answer, *answer["table"]):
        per_chip = dict(cell["per_chip"])
        capacity_bytes = per_chip.pop("capacity_bytes")
        assert sum(per_chip.values()) == pytest.approx(capacity_bytes + cell["shortfall_bytes"], rel=1e-9)
        assert not (per_chip["free_bytes"] > 0 and cell["shortfall_bytes"] > 0)


def test_every_size_stands_exactly_once() -> None:
    answer = json.loads(run("plan", MODEL, *CHAT, "--json").stdout)
    sizes = [size["name"] for size in json.loads(run("catalog", "list", "--json").stdout)["instances"]]
    lists = ("also_feasible", "rejected", "not_judged", "excluded")
    named = [row["instance"] for key in lists for row in answer[key]]
    named += sorted({option["instance"] for option in answer["options"]})
    assert sorted(named) == sorted(sizes)


@pytest.mark.parametrize(
    "arguments", [[], ["--help"], ["-h"], ["plan", "--help"], ["catalog", "--help"], ["--version"]]
)
def test_help_and_version_need_no_answer(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 0
    assert "chipwise" in result.stdout


def test_help_lists_every_command_with_what_it_does() -> None:
    page = run("--help").stdout
    for name in ("plan", "model", "memory", "estimate", "why", "compare", "validate", "catalog", "schema"):
        assert f"\n  {name} " in page


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["model", MODEL, "--json"], 0),
        (["memory", MODEL, "--chip", "l4", "--json"], 1),
        (["model", MODEL, "--tp", "--json"], 2),
        (["model", "no-such-model-anywhere", "--json"], 3),
    ],
)
def test_a_process_exits_as_promised(arguments: list[str], status: int) -> None:
    command = [sys.executable, "-m", "chipwise", *arguments]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert result.returncode == status
    json.loads(result.stdout)
    assert "Traceback" not in result.stderr


FLAGS = sorted(
    {
        option
        for name in ("plan", "model", "memory", "estimate", "why", "compare", "catalog", "schema")
        for param in (cli.get_command(None, name) or cli).params  # type: ignore[arg-type] # the context is not used
        for option in param.opts
    }
)
words = st.one_of(
    st.sampled_from(
        ["plan", "model", "memory", "estimate", "why", "compare", "catalog", "schema", "list", "show", "check"]
    ),
    st.sampled_from(FLAGS),
    st.sampled_from(
        [MODEL, "h100-sxm", "p5.48xlarge", "g6.xlarge", "chat", "8k", "1", "0", "-1", "1e9", "fp8", "json"]
    ),
    st.text(max_size=12),
)


@settings(max_examples=150)
@given(st.lists(words, max_size=8))
def test_any_argument_list_ends_as_promised(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code in {0, 1, 2, 3}
    if "--json" in arguments and not {"-h", "--help", "--version", "--"} & set(arguments) and result.exit_code > 1:
        assert "error" in json.loads(result.stdout)


MODELS = ["llama-3.1-8b", MODEL, "deepseek-v3", "gemma-3-27b", "params:7b", "params:0", "qwen3-30b-a3b"]
PLACES = [["--chip", "h100-sxm"], ["--chip", "l4"], ["--instance", "g6e.48xlarge"], ["--on", "trn2.48xlarge"], []]
VALUES = [
    "1",
    "2",
    "3",
    "8",
    "64",
    "100000",
    "8k",
    "1s",
    "5ms",
    "3d",
    "0.5",
    "1e12",
    "fp8",
    "int4",
    "bf16",
    "chat",
    "us-east-1",
]


def questions(name: str) -> st.SearchStrategy[list[str]]:
    """Flags of one command, each with a value that may or may not suit it."""
    command = cli.get_command(None, name)  # type: ignore[arg-type] # the context is not used
    assert command is not None
    options = [param for param in command.params if isinstance(param, click.Option) and param.name != "models"]
    switches = [[option.opts[-1]] for option in options if option.is_flag]
    valued = [
        st.tuples(st.just(option.opts[-1]), st.sampled_from([*VALUES, *str(option.metavar).split("|")])).map(list)
        for option in options
        if not option.is_flag
    ]
    flags = st.lists(st.one_of(st.sampled_from(switches), *valued), max_size=5)
    return st.builds(
        lambda model, place, flags: [name, model, *place, *(word for flag in flags for word in flag)],
        st.sampled_from(MODELS),
        st.sampled_from(PLACES) if name != "plan" else st.just([]),
        flags,
    )


@example(["plan", "llama-3.1-8b", "--rate", "100000"])  # more than any number of small sizes carries
@settings(max_examples=120)
@given(st.sampled_from(["plan", "memory", "estimate"]).flatmap(questions))
def test_any_question_ends_as_promised(arguments: list[str]) -> None:
    result = run(*arguments, "--json")
    assert result.exit_code in {0, 1, 2, 3}
    if "--help" not in arguments and "-h" not in arguments:
        assert isinstance(json.loads(result.stdout), dict)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full to write to")
def test_a_full_disk_is_told_and_not_traced() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "chipwise", "model", MODEL],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert "the answer could not be written" in done.stderr
    assert "Traceback" not in done.stderr
