"""The frame of every answering command: its argument, its flags, `--models`, how to print, and what runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from chipwise.interfaces.cli import output
from chipwise.interfaces.cli.flags import Flag, given

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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """A positional argument: the field it sets, and whether it may be left out."""

    field: str
    required: bool = True

    def parameter(self) -> click.Argument:
        """This argument as click's."""
        return click.Argument([self.field], metavar=self.field.upper(), required=self.required)


class _Command(click.Command):
    """A command whose `--help` lists its flags under headings."""

    headings: Mapping[str, Sequence[str]] = {}

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


def command(name: str, run: Run, *, argument: Argument | None, groups: Groups, about: str) -> click.Command:
    """The click command that parses the flags of `groups` and calls `run`; `about` is its help."""
    table = (*(flag for flags in groups.values() for flag in flags), MODELS)
    places = [argument] if argument else []

    def callback(**values: Any) -> int:
        how = output.take(values)
        fields = given(table, values)
        fields |= {place.field: values[place.field] for place in places if values[place.field] is not None}
        return run(fields, how)

    params = [*(place.parameter() for place in places), *(flag.option() for flag in table), *output.options()]
    made = _Command(name, callback=callback, params=params, help=about)
    made.headings = {heading: [flag.key for flag in flags] for heading, flags in groups.items()}
    return made
