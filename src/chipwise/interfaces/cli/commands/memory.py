"""`chipwise memory`: does it fit, term by term, and what would make it fit."""

from __future__ import annotations

import dataclasses
from typing import Any

from chipwise.interfaces.cli import completion
from chipwise.interfaces.cli.answering import command as make
from chipwise.interfaces.cli.flags import Flag, build
from chipwise.interfaces.cli.output import Output
from chipwise.interfaces.cli.parsers import grid
from chipwise.interfaces.cli.shared_flags import ADAPTERS, CONTEXT, COUNT, DRAFT_TOKENS, MODEL, SERVING, SPLIT, TRAINING

TABLE = Flag(
    name="--table",
    fields=("table",),
    parse=grid,
    metavar="CONTEXTSxCONCURRENCIES",
    help="Answer a grid, such as 8k,32kx1,16,64.",
)

_PLACE = (
    Flag(
        name="--chip",
        fields=("chip",),
        parse=str,
        metavar="CHIP",
        names=completion.chips,
        help="Chip, such as l40s or h100-sxm.",
    ),
    Flag(
        name="--instance",
        fields=("instance",),
        parse=str,
        metavar="TYPE",
        names=completion.sizes,
        help="Instance size.",
    ),
    Flag(
        name="--mig",
        fields=("mig",),
        parse=str,
        metavar="PROFILE",
        names=completion.slices,
        help="MIG profile, such as 1g.10gb.",
    ),
)

CONCURRENCY = Flag(name="--concurrency", fields=("concurrency",), parse=COUNT, metavar="N", help="Requests in flight.")

GROUPS = {
    "Where": _PLACE,
    "Split": SPLIT,
    "Load": (CONTEXT, CONCURRENCY, TABLE),
    "Engine": (*SERVING, DRAFT_TOKENS, *ADAPTERS),
    "Training instead of serving": TRAINING,
}


def run(fields: dict[str, Any], output: Output) -> int:
    """Ask `size`, once or for every cell of the table."""
    from chipwise.advisor.request import SizeRequest
    from chipwise.advisor.sizes import size

    table = fields.pop("table", None)
    request = build(SizeRequest, fields)
    answer = dict(size(request))
    if table is not None:
        answer["table"] = [
            {
                **size(dataclasses.replace(request, context_tokens=context, concurrency=concurrency)),
                "context": context,
                "concurrency": concurrency,
            }
            for context in table[0]
            for concurrency in table[1]
        ]

    output.emit(answer, "memory")
    return 0 if answer["fits"] else 1


command = make(
    "memory",
    run,
    argument=MODEL,
    groups=GROUPS,
    about="Whether MODEL fits on a chip, an instance or a MIG slice: every term, and what would help.",
)
