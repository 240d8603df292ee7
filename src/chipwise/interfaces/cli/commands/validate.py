"""`chipwise validate`: replay published measurements and say how far off chipwise is."""

from __future__ import annotations

from functools import partial
from typing import Any

from chipwise.interfaces.cli.answering import Argument
from chipwise.interfaces.cli.answering import command as make
from chipwise.interfaces.cli.flags import Flag, build
from chipwise.interfaces.cli.groups import NearGroup
from chipwise.interfaces.cli.output import Output
from chipwise.interfaces.cli.shared_flags import COUNT

_KINDS = {
    "params": "Parameter counts, caches and classes read off the config files that FILE indexes.",
    "memory": "Weights, activations, graphs, cache pools and OOM as engines printed them at start.",
    "inference": "Latency and throughput of serving runs, one metric a row.",
    "training": "Tokens/s, step time, MFU, memory and OOM of training runs.",
    "decisions": "Which hardware `plan` would pick where several were measured, and what that costs.",
}

GROUPS = {
    "Replaying": (
        Flag(name="--rows", fields=("rows",), parse=str, metavar="OUT.jsonl", help="Write one line for every item."),
        Flag(
            name="--by",
            fields=("by",),
            parse=str,
            metavar="KEY,...",
            many=tuple,
            listed=True,
            help="Group by: source, metric, evidence, chip, family, class or any column.",
        ),
        Flag(name="--sample", fields=("sample",), parse=COUNT, metavar="N", help="Only N items, always the same."),
        Flag(
            name="--incomplete",
            fields=("incomplete",),
            help="Also score what the table does not call complete, as far as it can be predicted.",
        ),
    ),
}


def run(kind: str, fields: dict[str, Any], output: Output) -> int:
    """Replay the table."""
    from chipwise.audit import ValidateRequest, validate

    answer = validate(build(ValidateRequest, {**fields, "kind": kind}))
    output.emit(answer, "validate_decisions" if kind == "decisions" else "validate")
    return 0


command = NearGroup(
    "validate",
    help="Replay published measurements, and say how far off chipwise is.",
    no_args_is_help=False,
    commands=[
        make(kind, partial(run, kind), argument=Argument(field="file"), groups=GROUPS, about=about)
        for kind, about in _KINDS.items()
    ],
)
