"""`chipwise why`: where one size stands for a question, and what would turn it."""

from __future__ import annotations

from typing import Any

from chipwise.interfaces.cli.answering import Argument
from chipwise.interfaces.cli.answering import command as make
from chipwise.interfaces.cli.commands.plan import ALL, OPTIONAL_MODEL, asked
from chipwise.interfaces.cli.completion import sizes
from chipwise.interfaces.cli.output import Output

FEASIBLE = ("options", "also_feasible")


def run(fields: dict[str, Any], output: Output) -> int:
    """Ask `why`."""
    from chipwise.advisor.reasons import why

    instance = fields.pop("instance")
    answer = why(instance, asked(fields))

    output.emit(answer, "why")
    return 0 if answer["stands_in"] in FEASIBLE else 1


command = make(
    "why",
    run,
    argument=(Argument(field="instance", names=sizes), OPTIONAL_MODEL),
    groups=ALL,
    about="Where INSTANCE stands in the answer of `chipwise plan MODEL` with the same flags, with its reasons in full; "
    "and, where it will not do, the smallest change of each kind that would make it do, and what it then costs. "
    "Exit status 0 where it would do, 1 where it would not.",
)
