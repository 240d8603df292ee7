"""`chipwise catalog`: what is known of chips and sizes, each fact with its source; whether it is whole."""

from __future__ import annotations

from typing import Any

from chipwise.interfaces.cli.answering import Argument
from chipwise.interfaces.cli.answering import command as make
from chipwise.interfaces.cli.completion import things
from chipwise.interfaces.cli.groups import NearGroup
from chipwise.interfaces.cli.output import Output


def run_list(fields: dict[str, Any], output: Output) -> int:
    """All chips, sizes and regions."""
    from chipwise.interfaces.lookups import list_catalog

    del fields
    output.emit(list_catalog(), "catalog_list")
    return 0


def run_show(fields: dict[str, Any], output: Output) -> int:
    """One size or chip."""
    from chipwise.interfaces.lookups import show_name

    output.emit(show_name(fields["name"]), "catalog_show")
    return 0


def run_check(fields: dict[str, Any], output: Output) -> int:
    """The proof, or what is wrong."""
    from chipwise.interfaces.lookups import check

    del fields
    answer = check()
    output.emit(answer, "catalog_check")
    return 0 if answer["ok"] else 1


command = NearGroup(
    "catalog",
    help="The chips, instances, prices and regions known, each fact with its source.",
    no_args_is_help=False,
    commands=[
        make("list", run_list, argument=None, groups={}, about="Every chip, instance size and region."),
        make(
            "show",
            run_show,
            argument=Argument(field="name", names=things),
            groups={},
            about="Every fact of NAME (a size or a chip) with kind, source, place and date.",
        ),
        make(
            "check",
            run_check,
            argument=None,
            groups={},
            about="Prove that the catalog is whole and plausible.",
        ),
    ],
)
