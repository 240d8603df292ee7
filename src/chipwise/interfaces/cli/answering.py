"""The frame of every answering command: its argument, its flags, `--models`, how to print, and what runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from chipwise.errors import InputError
from chipwise.interfaces.cli import output
from chipwise.interfaces.cli.completion import Names, completing
from chipwise.interfaces.cli.flags import Flag, given
from chipwise.interfaces.cli.progress import waiting

Run = Callable[[dict[str, Any], output.Output], int]
"""Takes field path to value, and how to print; gives the exit status."""

Groups = Mapping[str, Sequence[Flag]]
"""Heading in `--help` to the flags under it."""

MODELS = Flag(
    name="--models",
    fields=("models",),
    parse=str,
    metavar="DIR|FILE",
    help="Look names up here first: a folder of <org>__<name>.json, or a csv model,file,variant.",
)
_GENERAL = "General"
PROMPTS = frozenset({"ask"})
"""Commands that ask a person questions: nothing else is drawn on the terminal meanwhile."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """A positional argument: the field it sets, whether it may be left out, what a shell completes it with."""

    field: str
    required: bool = True
    names: Names | None = None
    files: bool = False

    def parameter(self) -> click.Argument:
        """This argument as click's."""
        shown = completing(self.names, files=self.files)
        return click.Argument([self.field], metavar=self.field.upper(), required=self.required, shell_complete=shown)

    def read(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """What was given for it, if anything.

        Raises:
            InputError: an empty text, which a script gives by mistake.
        """
        value = values[self.field]
        if value is not None and not str(value).strip():
            name = self.field.upper()
            raise InputError(f"{name} is empty", why="an empty text names nothing", fix=f"write a {name}")
        return {} if value is None else {self.field: value}


class AnsweringCommand(click.Command):
    """A command whose `--help` lists its flags under headings.

    `places`, `flags` and `run` are what it is made of: every other door reads them here.
    """

    headings: Mapping[str, Sequence[str]] = {}
    places: tuple[Argument, ...] = ()
    flags: tuple[Flag, ...] = ()
    run: Run

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The flags, heading by heading; what stands under none is general."""
        placed = {key: heading for heading, keys in self.headings.items() for key in keys}
        rows: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (*self.headings, _GENERAL)}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                rows[placed.get(param.name or "", _GENERAL)].append(record)
        for heading, records in rows.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def command(
    name: str,
    run: Run,
    *,
    argument: Argument | Sequence[Argument] | None,
    groups: Groups,
    about: str,
    short: str = "-o",
) -> AnsweringCommand:
    """The click command that parses the flags of `groups` and calls `run`; `about` is its help.

    `short` is the short form of `--format`: none where a flag of the command is called `-o`.
    """
    table = (*(flag for flags in groups.values() for flag in flags), MODELS)
    places = (argument,) if isinstance(argument, Argument) else tuple(argument or ())

    def callback(**values: Any) -> int:
        how = output.take(values)
        fields = given(table, values)
        for place in places:
            fields |= place.read(values)
        with waiting(click.get_current_context().command_path, silent=name in PROMPTS) as line:
            return run(fields, dataclasses.replace(how, before=line.clear, say=line.say))

    params = [
        *(place.parameter() for place in places),
        *(flag.option() for flag in table),
        *output.options(short=short),
    ]
    made = AnsweringCommand(name, callback=callback, params=params, help=about)
    made.places, made.flags, made.run = places, table, run
    made.headings = {heading: [flag.key for flag in flags] for heading, flags in groups.items()}
    return made
