"""`chipwise plot`: drawings for slides and reports, of the answer to the same question as `plan`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from chipwise.errors import InputError, KnowledgeError
from chipwise.interfaces.cli.answering import Argument
from chipwise.interfaces.cli.answering import command as make
from chipwise.interfaces.cli.commands.plan import ALL, OPTIONAL_MODEL, asked
from chipwise.interfaces.cli.flags import Flag
from chipwise.interfaces.cli.output import Output
from chipwise.interfaces.cli.shared_flags import COUNT

KINDS = {
    "plan": ("pareto_figure", "candidates"),
    "latency": ("latency_figure", "load"),
    "context": ("context_figure", "context"),
    "cost": ("cost_figure", "use"),
    "memory": ("memory_figure", "memory"),
}
"""Kind to the function that draws it, and the part of `curves` that it draws."""
SCALE = 2.0
"""Pixels of a PNG a unit of the drawing: sharp on a slide."""


def kinds() -> list[str]:
    """What can be drawn."""
    return list(KINDS)


_DRAWING = (
    Flag(
        name="--output",
        short="-o",
        fields=("to",),
        parse=str,
        metavar="FILE.svg|FILE.png",
        help="Where the drawing goes; without it the figures are printed that would be drawn.",
    ),
    Flag(name="--option", fields=("place",), parse=COUNT, metavar="N", help="Which option of the plan; 1 if unset."),
)


def run(fields: dict[str, Any], output: Output) -> int:
    """Draw into a file, or print the figures that would be drawn."""
    from chipwise.advisor.curves import curves
    from chipwise.report.json import as_json

    kind, place, to = fields.pop("kind", "plan"), fields.pop("place", 1), fields.pop("to", None)
    if kind not in KINDS:
        raise InputError(
            f"unknown kind {kind!r}", why="nothing of that name is drawn", fix=f"one of {', '.join(KINDS)}"
        )
    found = curves(asked(fields), place=place)
    if to is None:
        output.emit(found, "curves")
        return 0
    _write(Path(to), drawing(kind, as_json(found)))
    click.echo(f"{kind} of {found['model']} written to {to}", err=True)
    return 0


def has(curves: Mapping[str, Any], kind: str) -> bool:
    """Whether there is something to draw: of candidates, one with a price and a latency."""
    found = curves[KINDS[kind][1]]
    return any(one["usd_per_hour"] and one["tpot_p99_s"] for one in found) if kind == "plan" else bool(found)


def drawing(kind: str, curves: Mapping[str, Any]) -> str:
    """The SVG of one kind.

    Raises:
        InputError: this work has no such curve.
    """
    from chipwise.report import drawings

    name, _ = KINDS[kind]
    if not has(curves, kind):
        raise InputError(f"no {kind} to draw", why="this work has no such curve", fix="draw memory")
    drawn: str = getattr(drawings, name)(curves)
    return drawn


def _write(path: Path, svg: str) -> None:
    """The drawing as SVG or PNG, by the name of the file.

    Raises:
        InputError: another ending, or the file cannot be written.
        KnowledgeError: a PNG without the extra `plot`.
    """
    if path.suffix not in {".svg", ".png"}:
        raise InputError(f"{path} is neither SVG nor PNG", why="its ending says what to write", fix="name FILE.svg")
    content = svg.encode() if path.suffix == ".svg" else _png(svg)
    try:
        path.write_bytes(content)
    except OSError as error:
        raise InputError(f"{path} cannot be written", why=str(error.strerror or error), fix="name another") from error


def _png(svg: str) -> bytes:
    try:
        resvg = importlib.import_module("resvg_py")
    except ModuleNotFoundError as error:
        fix = "install chipwise[plot], or write an SVG"
        raise KnowledgeError("a PNG needs resvg_py", why="it is not installed", fix=fix) from error
    return bytes(resvg.svg_to_bytes(svg_string=svg, background="#ffffff", zoom=SCALE))


command = make(
    "plot",
    run,
    argument=(Argument(field="kind", names=kinds), OPTIONAL_MODEL),
    groups={"The drawing": _DRAWING, **ALL},
    about=f"Draw KIND for an option of the answer of `chipwise plan MODEL`: {', '.join(KINDS)}.",
    short="",
)
