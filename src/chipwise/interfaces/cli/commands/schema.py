"""`chipwise schema`: the JSON Schema of what a command prints with --json."""

from __future__ import annotations

from typing import Any

from chipwise.interfaces.cli.answering import Argument
from chipwise.interfaces.cli.answering import command as make
from chipwise.interfaces.cli.completion import schemas
from chipwise.interfaces.cli.output import Output


def run(fields: dict[str, Any], output: Output) -> int:
    """Print one schema, always as JSON; without a name, the names."""
    from chipwise.report.schema import PUBLISHED, schema

    content: Any = schema(fields["name"]) if "name" in fields else {"schemas": list(PUBLISHED)}
    output.emit_data(content)
    return 0


command = make(
    "schema",
    run,
    argument=Argument(field="name", required=False, names=schemas),
    groups={},
    about="The JSON Schema (2020-12) of what the command NAME prints with --json; without NAME, the names.",
)
