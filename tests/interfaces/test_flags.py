"""Flags are the fields of the requests: none is missing, none leads nowhere, none invents a value."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from chipwise.advisor.request import EstimateRequest, Request, SizeRequest
from chipwise.errors import InputError, UnknownNameError
from chipwise.interfaces.cli.commands import catalog, compare, estimate, memory, model, plan, schema, why
from chipwise.interfaces.cli.flags import Flag, build, given
from chipwise.interfaces.cli.question_file import read_question

# What CONTRACT promises, word for word; more may be added, none may go.
SERVING = "--precision --kv-precision --engine --engine-version --chunk-tokens --max-num-seqs --eager --draft"
TRAINING = "--method --seq-len --micro-batch --recompute --shard"
SPLIT = "--tp --pp --ep --dp --cp"
EVERYWHERE = "--models --format --json"
QUESTION = (
    "--for --goal --ttft-p99 --tpot-p99 --users --think --rate --throughput --isl --osl --context "
    "--lengths --tokens --epochs --global-batch --deadline --budget --region --purchase --price --vendor --only "
    "--exclude --needs --min-precision --isolation --team --timeline --stability --custom-kernels --ha "
    "--availability --workload --strict-guide --simulate"
)
PROMISED = {
    "plan": QUESTION,
    "why": QUESTION,
    "compare": f"{QUESTION} --model",
    "model": "--list",
    "memory": (
        f"--chip --instance --mig {SPLIT} {SERVING} {TRAINING} --context --concurrency --utilization "
        "--lora-adapters --lora-rank --optimizer --table"
    ),
    "estimate": (
        f"--on --chip --instances --replicas {SPLIT} {SERVING} {TRAINING} --prefix-hit --draft-tokens "
        "--acceptance --isl --osl --lengths --concurrency --rate --batch --offline --global-batch "
        "--image-size --steps --frames --audio-seconds"
    ),
    "schema": "",
}
COMMANDS: Mapping[str, click.Command] = {
    "plan": plan.command,
    "model": model.command,
    "memory": memory.command,
    "estimate": estimate.command,
    "why": why.command,
    "compare": compare.command,
    "schema": schema.command,
    **{f"catalog {name}": command for name, command in catalog.command.commands.items()},
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_promised_flag_is_there(name: str) -> None:
    have = {option for param in COMMANDS[name].params for option in param.opts}
    assert set(f"{PROMISED.get(name, '')} {EVERYWHERE}".split()) <= have


def flags_of(groups: Mapping[str, Sequence[Flag]]) -> list[Flag]:
    return [flag for flags in groups.values() for flag in flags]


ASKED: list[tuple[type[Any], list[Flag], set[str]]] = [
    # what a file says of one model alone
    (Request, list(plan.QUESTION), {"per_model"}),
    # what `memory` does not depend on
    (
        SizeRequest,
        flags_of(memory.GROUPS),
        {"engine.acceptance", "engine.prefix_hit_fraction", "training.global_batch"},
    ),
    (EstimateRequest, flags_of(estimate.GROUPS), {"engine.lora_adapters", "engine.lora_rank"}),
]


def paths(request: type[Any]) -> Iterator[str]:
    for field in dataclasses.fields(request):
        inner: Any = field.default_factory
        if isinstance(inner, type) and dataclasses.is_dataclass(inner):
            yield from (f"{field.name}.{path}" for path in paths(inner))
        else:
            yield field.name


@pytest.mark.parametrize(("request_type", "flags", "left_out"), ASKED)
def test_flags_and_fields_match(request_type: type[Any], flags: list[Flag], left_out: set[str]) -> None:
    reached = {path for flag in flags for path in flag.fields} - {"table"}
    assert reached == set(paths(request_type)) - {"model", "models"} - left_out


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_no_flag_has_a_default_of_its_own(command: click.Command) -> None:
    places = sum(isinstance(param, click.Argument) for param in command.params)
    values = command.make_context("chipwise", ["x"] * places).params
    passed = {name: value for name, value in values.items() if value not in (None, (), False)}
    assert set(passed) <= {"model", "name", "instance", "first", "second"}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_every_flag_is_explained(command: click.Command) -> None:
    assert [param.name for param in command.params if isinstance(param, click.Option) and not param.help] == []


def test_only_what_is_given_is_passed_on() -> None:
    flags = flags_of(memory.GROUPS)
    assert given(flags, {flag.key: None for flag in flags}) == {}
    request = build(SizeRequest, {"model": "m", **given(flags, {"tp": 4, "lora_rank": 8, "eager": True})})
    assert request == SizeRequest(
        model="m",
        split=dataclasses.replace(SizeRequest(model="m").split, tp=4),
        engine=dataclasses.replace(SizeRequest(model="m").engine, eager=True, lora_rank=8),
        training=dataclasses.replace(SizeRequest(model="m").training, lora_rank=8),
    )


def test_repeated_and_listed_values_are_collected() -> None:
    values = {
        "region": (("us-east-1", "us-east-2"), ("us-west-2",)),
        "price": (("g6.xlarge", 0.5), ("p5.48xlarge", 50.0)),
    }
    assert given(plan.QUESTION, values) == {
        "regions": ("us-east-1", "us-east-2", "us-west-2"),
        "prices_usd_per_hour": {"g6.xlarge": 0.5, "p5.48xlarge": 50.0},
    }


def test_a_training_run_in_a_file_becomes_its_question_and_flags_win(tmp_path: Path) -> None:
    path = tmp_path / "lora.yaml"
    path.write_text("for: lora\ntokens: 100M\nepochs: 2\ndeadline: 3d\nbudget: $500\n")
    wanted = Request(
        model="m", purpose="lora", tokens=100e6, epochs=2.0, deadline_s=86400.0, budget_usd=500.0, vendor="nvidia"
    )
    flags = {"model": "m", "workload": str(path), "deadline_s": 86400.0, "vendor": "nvidia"}
    assert plan.asked(flags) == wanted


def test_a_question_in_a_file_reads_like_its_flags(tmp_path: Path) -> None:
    path = tmp_path / "question.yaml"
    path.write_text(
        "for: chat\nusers: 64\ncontext: 8k\nttft-p99: 1s\ntpot_p99: 40ms\nregion: [us-east-1, us-west-2]\n"
        "price:\n  g6.xlarge: 0.5\nstrict-guide: true\nsimulate: false\ngoal: latency,cost\n"
    )
    assert read_question(str(path), plan.QUESTION) == {
        "purpose": "chat",
        "users": 64,
        "context_tokens": 8192,
        "ttft_p99_s": 1.0,
        "tpot_p99_s": 0.04,
        "regions": ("us-east-1", "us-west-2"),
        "prices_usd_per_hour": {"g6.xlarge": 0.5},
        "strict_guide": True,
        "goal": "latency,cost",
    }


@pytest.mark.parametrize(
    "content",
    [
        "users: many",
        "users: [1, 2]",
        "strict-guide: 3",
        "- a",
        "a: b: c",
        "\x00",
        "region: 3\nprice: x",
        "for: {}",
    ],
)
def test_a_wrong_file_is_an_input_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "question.yaml"
    path.write_text(content)
    with pytest.raises(InputError):
        read_question(str(path), plan.QUESTION)


def test_an_unknown_key_proposes_near_ones(tmp_path: Path) -> None:
    path = tmp_path / "question.yaml"
    path.write_text("user: 64")
    with pytest.raises(UnknownNameError) as caught:
        read_question(str(path), plan.QUESTION)
    assert "users" in caught.value.fix


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_question(str(tmp_path / "none.yaml"), plan.QUESTION)
