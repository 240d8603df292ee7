"""Asks the guide's questions in a terminal, or takes the answers from a file, and puts the question to `advise`."""

from __future__ import annotations

import importlib
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from chipwise.errors import ChipwiseError, InputError
from chipwise.guide import Asked, answer_from, check_names, model_scale, next_question, plan_flags, way, without_last
from chipwise.interfaces.cli.commands.plan import QUESTION
from chipwise.interfaces.cli.flags import build, given
from chipwise.interfaces.cli.output import Output, colored, width

_BACK = "\0back"
_BACK_SIGN = "<"
_HINT = f"Arrow keys and enter choose; {_BACK_SIGN} in a text goes back, as does `back` in a list; ctrl-c leaves."


def answers_of_file(path: str, models: str | None) -> dict[str, str]:
    """The answers of a YAML file, by the names of the questions; what it leaves out takes its default.

    Raises:
        InputError: the file cannot be read, or holds a name or an answer that is none.
    """
    said = _mapping(path)
    answers: dict[str, str] = {}
    while (asked := next_question(answers)) is not None:
        answers[asked.id] = _scale(answers, models) if asked.kind == "scale" else answer_from(asked, said)
    check_names(said, answers)
    return answers


def _mapping(path: str) -> dict[str, str]:
    import yaml

    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} cannot be read", why=reason, fix="give a YAML file of answers") from error
    if not isinstance(content, dict) or any(isinstance(value, dict | None) for value in content.values()):
        raise InputError(
            f"{path} holds no answers", why="it is no mapping of names to texts", fix="write work: serving"
        )
    return {str(name): _text(value) for name, value in content.items()}


def _text(value: Any) -> str:
    """YAML reads yes and no as booleans, and a list of regions as a list."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _scale(answers: Mapping[str, str], models: str | None) -> str:
    """The scale of the model named before, read from it."""
    from chipwise.model import load_model

    model = load_model(answers["model"], models=Path(models) if models else None)
    return model_scale(float(model.params_total))


def answers_of_terminal(models: str | None) -> dict[str, str]:
    """The answers of a person at a terminal: arrow keys choose, every answer explains itself, and one can go back.

    Raises:
        InputError: there is no terminal, or the extra `ask` is not installed.
        click.Abort: the person leaves.
    """
    prompts = _prompts()
    click.echo(_HINT, err=True)
    answers: dict[str, str] = {}
    while (asked := next_question(answers)) is not None:
        if asked.kind == "scale":
            answers[asked.id] = _scale(answers, models)
            read = asked.choice(answers[asked.id])
            click.echo(f"  {asked.text} {read.label} ({asked.help}): {read.explains}", err=True)
            continue
        said = _ask(prompts, asked, models, first=not answers)
        if said == _BACK:
            answers = without_last(answers)
        else:
            answers[asked.id] = said
    return answers


def _prompts() -> Any:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InputError(
            "guide ask needs a terminal",
            why="its questions are answered with arrow keys",
            fix="give --answers FILE.yaml",
        )
    try:
        return importlib.import_module("questionary")
    except ModuleNotFoundError as error:
        fix = "install chipwise[ask], or give --answers FILE.yaml"
        raise InputError("guide ask needs questionary", why="it is not installed", fix=fix) from error


def _ask(prompts: Any, asked: Asked, models: str | None, *, first: bool) -> str:
    try:
        prompt = _text_prompt(prompts, asked, models) if asked.kind == "text" else _choice(prompts, asked, first=first)
        said = str(prompt.unsafe_ask()) or asked.default
    except (KeyboardInterrupt, EOFError):
        raise click.Abort from None
    return _BACK if said.strip() == _BACK_SIGN and not first else said


def _choice(prompts: Any, asked: Asked, *, first: bool) -> Any:
    """A list to choose from; what is pointed at explains itself below."""
    choices = [
        prompts.Choice(title=one.label, value=one.key, description=f"{one.explains} ({one.source})".strip())
        for one in asked.choices
    ]
    if not first:
        choices.append(prompts.Choice(title="back", value=_BACK, description="to the question before"))
    return prompts.select(asked.text, choices=choices, default=asked.default or None, instruction="(arrow keys)")


def _text_prompt(prompts: Any, asked: Asked, models: str | None) -> Any:
    """A line to type; what an empty one takes is shown pale in its place."""

    def check(text: str) -> bool | str:
        return text.strip() == _BACK_SIGN or _problem(asked, text or asked.default, models) or True

    return prompts.text(asked.text, instruction=f"({asked.help}) ", validate=check, placeholder=asked.default)


def _problem(asked: Asked, text: str, models: str | None) -> str:
    """What is wrong with a text, as one line; empty where nothing is."""
    try:
        if asked.id == "model":
            _scale({"model": text}, models)
        elif text.strip():
            next(flag for flag in QUESTION if flag.name == f"--{asked.flag}").read(text.strip())
    except ChipwiseError as error:
        return f"{error.what}: {error.fix}"
    return ""


def plan_of(answers: Mapping[str, str], models: str | None, output: Output) -> int:
    """Show the way taken, ask `advise`, print the plan."""
    from chipwise.advisor.plans import advise
    from chipwise.advisor.request import Request

    flags = plan_flags(answers)
    fields = {"model": answers["model"], **_fields(flags), **({"models": models} if models else {})}
    request = build(Request, fields)
    output.tell(_summary(answers, flags, output))
    advice = advise(request)
    output.emit(advice, "plan")
    return 0 if advice.options else 1


def _fields(flags: Mapping[str, str]) -> dict[str, Any]:
    """Field path to value, of flags as text."""
    by_name = {flag.name.removeprefix("--"): flag for flag in QUESTION}
    values: dict[str, Any] = {}
    for name, text in flags.items():
        flag = by_name[name]
        read = True if flag.parse is None else flag.read(text)
        values[flag.key] = (read,) if flag.many is not None else read
    return given(QUESTION, values)


def _summary(answers: Mapping[str, str], flags: Mapping[str, str], output: Output) -> str:
    from chipwise.report.guide import guide_way_page
    from chipwise.report.text import text

    words = [f"--{name}" if value == "true" else f"--{name} {shlex.quote(value)}" for name, value in flags.items()]
    command = " ".join(["chipwise plan", shlex.quote(answers["model"]), *words])
    steps = [{"question": one.question, "answer": one.answer, "explains": one.explains, "source": one.source}
             for one in way(answers)]  # fmt: skip
    page = guide_way_page({"steps": steps, "command": command})
    return text(page, width=width(), color=colored(asked=output.color) and sys.stderr.isatty())
