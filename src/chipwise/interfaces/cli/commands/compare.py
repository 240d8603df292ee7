"""`chipwise compare`: two sizes side by side, and with a model what each would do for a question."""

from __future__ import annotations

from typing import Any

from chipwise.errors import InputError
from chipwise.interfaces.cli.answering import Argument
from chipwise.interfaces.cli.answering import command as make
from chipwise.interfaces.cli.commands.plan import ALL, asked
from chipwise.interfaces.cli.completion import models, sizes
from chipwise.interfaces.cli.flags import Flag
from chipwise.interfaces.cli.output import Output

OF_WHAT = Flag(
    name="--model",
    fields=("model",),
    parse=str,
    metavar="MODEL",
    names=models,
    help="Also compare what each does for this model; the flags below put the question.",
)
NOT_A_QUESTION = frozenset({"models"})


def run(fields: dict[str, Any], output: Output) -> int:
    """Ask `compare`; a file of flags may name the model instead of `--model`."""
    from chipwise.advisor.comparison import compare

    first, second = fields.pop("first"), fields.pop("second")
    put = {"model", "workload"} & set(fields)
    if not put and set(fields) - NOT_A_QUESTION:
        raise InputError(
            "a question without a model",
            why="flags of `chipwise plan` ask what each size does for one",
            fix="add --model MODEL, write model: in a --workload FILE, or leave the other flags out",
        )
    answer = compare(first, second, asked(fields) if put else None)

    output.emit(answer, "compare")
    return 0


command = make(
    "compare",
    run,
    argument=(Argument(field="first", names=sizes), Argument(field="second", names=sizes)),
    groups={"For a model": (OF_WHAT,), **ALL},
    about="Two sizes, FIRST and SECOND, fact by fact: chips, memory, bandwidth, links, price, Regions. With --model "
    "also how each would answer `chipwise plan` with the same flags.",
)
