"""`chipwise guide`: the guide's sections and flows, where it is wrong, the presets, and its questionnaire."""

from __future__ import annotations

from typing import Any

import click

from chipwise.errors import InputError
from chipwise.interfaces.cli.answering import AnsweringCommand, Argument
from chipwise.interfaces.cli.answering import command as make
from chipwise.interfaces.cli.flags import Flag, build
from chipwise.interfaces.cli.groups import NearGroup
from chipwise.interfaces.cli.output import FORMATS, Output, options, take, write

DRAWINGS = ("mermaid", "svg")


def show(**values: Any) -> int:
    """One section as text, Markdown, JSON or a drawing of its flow."""
    name = values.pop("section")
    if values["output_format"] in DRAWINGS and values["as_json"]:
        what = f"--json and --format {values['output_format']}"
        raise InputError(what, why="they contradict", fix="keep one of the two")
    if values["output_format"] in DRAWINGS:
        write(_drawing(name or "8", values["output_format"]))
        return 0
    return run_show({"section": name} if name else {}, take(values))


def run_show(fields: dict[str, Any], output: Output) -> int:
    """One section, or the list of them."""
    from chipwise.interfaces.guide_answers import show_section

    output.emit(show_section(fields.get("section")), "guide_show")
    return 0


def _drawing(section: str, form: str) -> str:
    from chipwise.guide import flow_of
    from chipwise.report.flowchart import mermaid, svg

    boxes = flow_of(section)
    return mermaid(boxes) if form == "mermaid" else svg(boxes, f"Section {section} of the guide")


def run_errata(fields: dict[str, Any], output: Output) -> int:
    """Every claim with its verdict."""
    from chipwise.interfaces.guide_answers import errata

    del fields
    output.emit(errata(), "guide_errata")
    return 0


def run_presets(fields: dict[str, Any], output: Output) -> int:
    """Every preset and goal."""
    from chipwise.interfaces.guide_answers import list_presets

    del fields
    output.emit(list_presets(), "guide_presets")
    return 0


def run_check(fields: dict[str, Any], output: Output) -> int:
    """Every cell put to `plan`; status 1 where one differs without a reason."""
    from chipwise.audit.guide_check import GuideCheckRequest, check_guide

    answer = check_guide(
        build(GuideCheckRequest, {name: value for name, value in fields.items() if name == "only"}),
        progress=lambda done, of: output.say(f"guide check, {done} of {of} cells"),
    )
    output.emit(answer, "guide_check")
    return 1 if answer["unexplained"] else 0


def run_ask(fields: dict[str, Any], output: Output) -> int:
    """The questionnaire, in a terminal or from a file; it ends in a plan."""
    from chipwise.interfaces.cli.questionnaire import answers_of_file, answers_of_terminal, plan_of

    path = fields.get("answers")
    models = fields.get("models")
    answers = answers_of_file(path, models) if path else answers_of_terminal(models)
    return plan_of(answers, models, output)


def _show_command() -> AnsweringCommand:
    """`--format` of `show` knows two more forms than that of the other commands."""
    about = "One section of the guide: 1 to 9, 8.1 to 8.9, B-matrix, …; without SECTION, the list of them."
    how = [one for one in options() if one.name != "output_format"]
    form = click.Option(
        ["-o", "--format", "output_format"],
        metavar="|".join((*FORMATS, *DRAWINGS)),
        help="How to print; mermaid and svg draw the section's flow.",
    )
    section = Argument(field="section", required=False)
    made = AnsweringCommand("show", callback=show, params=[section.parameter(), form, *how], help=about)
    made.places, made.run = (section,), run_show
    return made


command = NearGroup(
    "guide",
    help="The guide's rules, flows and tables, and where it is wrong.",
    no_args_is_help=False,
    commands=[
        _show_command(),
        make(
            "ask",
            run_ask,
            argument=None,
            groups={
                "Answers": (
                    Flag(
                        name="--answers",
                        fields=("answers",),
                        parse=str,
                        metavar="FILE.yaml",
                        help="Answers by name instead of asking; what it leaves out takes its default.",
                    ),
                )
            },
            about="The guide's flows as questions; at the end, the plan they lead to.",
        ),
        make(
            "check",
            run_check,
            argument=None,
            groups={
                "Cells": (
                    Flag(
                        name="--only",
                        fields=("only",),
                        parse=str,
                        many=tuple,
                        listed=True,
                        metavar="ID",
                        help="Only these cells; 8.8* means all that begin so. Repeatable.",
                    ),
                )
            },
            about="Every cell of the guide's tables and every box of its flows as a question to `plan`.",
        ),
        make("presets", run_presets, argument=None, groups={}, about="Every --for preset with its values and goals."),
        make("errata", run_errata, argument=None, groups={}, about="Every claim of the guide, and what is right."),
    ],
)
