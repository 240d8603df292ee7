"""Errors on the way out: click's own become ours, and all are printed as what, why, fix."""

from __future__ import annotations

from collections.abc import Sequence

import click

from chipwise.errors import ChipwiseError, InputError, UnknownNameError
from chipwise.interfaces.cli.output import json_text, write


def asks_json(args: Sequence[str]) -> bool:
    """Whether the argument list asks for JSON, even where the rest of it cannot be parsed.

    >>> asks_json(["plan", "--json"]), asks_json(["plan", "-o", "json"]), asks_json(["plan"])
    (True, True, False)
    """
    before = list(args)[: list(args).index("--")] if "--" in args else list(args)
    pairs = zip(before, [*before[1:], ""], strict=True)
    return any(
        one in {"--json", "--format=json", "-ojson"} or (one in {"-o", "--format"} and two == "json")
        for one, two in pairs
    )


def from_click(error: click.ClickException) -> ChipwiseError:
    """A usage error of click as one of ours."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "chipwise"
    help_fix = f"see `{path} --help`"
    if isinstance(error, click.NoSuchOption):
        known = [name for param in context.command.params for name in param.opts] if context else []
        return UnknownNameError("flag", error.option_name, known, listing=help_fix)
    if isinstance(error, click.MissingParameter) and error.param is not None:
        name = error.param.human_readable_name
        fix = f"write {context.get_usage().removeprefix('Usage: ')}" if context else help_fix
        return InputError(f"{name} is missing", why=f"`{path}` needs it", fix=fix)
    return InputError(_sentence(error.format_message()), why=f"`{path}` cannot be read so", fix=help_fix)


def _sentence(text: str) -> str:
    """Click's message without its full stop and capital."""
    flat = " ".join(text.split()).rstrip(".")
    return flat[:1].lower() + flat[1:]


def show(error: ChipwiseError, *, as_json: bool) -> None:
    """What, why and fix on stderr; with `as_json` the error object on stdout as well."""
    for label, text in (("error", error.what), ("why", error.why), ("fix", error.fix)):
        click.echo(f"{label:>5}: {text}", err=True)
    if as_json:
        write(json_text(error.as_json()))
