"""`chipwise model`: what a model is; `--list` prints the built-in names."""

from __future__ import annotations

import dataclasses
from typing import Any

from chipwise.errors import InputError
from chipwise.interfaces.cli.answering import command as make
from chipwise.interfaces.cli.flags import Flag
from chipwise.interfaces.cli.output import Output
from chipwise.interfaces.cli.parsers import choice
from chipwise.interfaces.cli.shared_flags import MODEL

LIST = Flag(name="--list", fields=("list",), help="The built-in names.")
AS = Flag(
    name="--as",
    fields=("read_as",),
    parse=choice("encoder"),
    metavar="encoder",
    help="Read it as an embedding model, where only its name says so.",
)


def run(fields: dict[str, Any], output: Output) -> int:
    """Ask `describe_model`, or list the built-in names."""
    if "list" in fields:
        from chipwise.interfaces.lookups import list_models

        output.emit(list_models(), "model_list")
        return 0
    if "model" not in fields:
        raise InputError("MODEL is missing", why="`chipwise model` needs it", fix="name one, or use --list")
    from chipwise.advisor.models import describe_model

    as_encoder = fields.get("read_as") == "encoder"
    output.emit(describe_model(fields["model"], fields.get("models"), as_encoder=as_encoder), "model")
    return 0


command = make(
    "model",
    run,
    argument=dataclasses.replace(MODEL, required=False),
    groups={"Names and reading": (LIST, AS)},
    about="What MODEL is: parameters, layers, attention, cache a token, legal splits and precisions.",
)
