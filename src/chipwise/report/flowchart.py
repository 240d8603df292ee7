"""A flow of the guide drawn: as Mermaid text, or as an SVG of its own in layers from left to right."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

BoxData = Mapping[str, Any]

_SHAPES = {"question": ("{", "}"), "end": ("([", "])"), "action": ("[", "]"), "note": ("[", "]")}
_FILLS = {"question": "#fde68a", "end": "#bbf7d0", "action": "#e5e7eb", "note": "#e0e7ff"}
_WIDTH, _GAP_X, _GAP_Y, _LINE, _PAD, _COLUMNS = 236, 190, 22, 16, 10, 34
_UNLIT, _LIT = 'stroke="#6b7280"', 'stroke="#0b57a4" stroke-width="4"'
_DROP = 80
_BEND = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a box stands: its left upper corner and height, with its lines of text."""

    x: int
    y: int
    height: int
    lines: tuple[str, ...]


def mermaid(boxes: Sequence[BoxData]) -> str:
    """The flow as a Mermaid flowchart.

    >>> one = {"id": "2", "kind": "question", "text": "MoE?", "recommends": [], "edges": []}
    >>> print(mermaid([one]))
    flowchart LR
        b2{"MoE?"}
    """
    known = {box["id"] for box in boxes}
    rows = ["flowchart LR"]
    for box in boxes:
        opening, closing = _SHAPES[box["kind"]]
        label = "<br/>".join(_quoted(part) for part in _words(box))
        rows.append(f'    {_name(box["id"])}{opening}"{label}"{closing}')
    for box in boxes:
        for edge in box["edges"]:
            if edge["to"] in known:
                arrow = f'-->|"{_quoted(edge["label"])}"|' if edge["label"] else "-->"
                rows.append(f"    {_name(box['id'])} {arrow} {_name(edge['to'])}")
    return "\n".join(rows)


def _name(box: str) -> str:
    return "b" + box.replace(".", "_").replace("-", "_")


def _quoted(text: str) -> str:
    return text.replace('"', "#quot;")


def _words(box: BoxData) -> list[str]:
    sizes = ", ".join(box["recommends"])
    return [box["text"], *([sizes] if sizes else [])]


def svg(
    boxes: Sequence[BoxData], title: str, *, lit: Collection[str] = (), links: Mapping[str, str] | None = None
) -> str:
    """The flow as an SVG document: one column a step, arrows with their answers.

    `lit` are the boxes of a way taken: they stand out, and each box says on hover what its note says. `links` are
    addresses that boxes lead to.
    """
    places = _layout(boxes)
    width = max(place.x for place in places.values()) + _WIDTH + _PAD
    height = max(place.y + place.height for place in places.values()) + _PAD
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="12" role="{"group" if links else "img"}" '
        f'aria-label="{escape(title)}">'
    )
    marker = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#6b7280"/></marker></defs>'
    )
    arrows = [part for box in boxes for part in _arrows(box, places)]
    drawn = [
        _linked(_drawn(box, places[box["id"]], lit=box["id"] in lit), (links or {}).get(box["id"])) for box in boxes
    ]
    paper = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", marker, paper, *arrows, *drawn, "</svg>"])


def _layout(boxes: Sequence[BoxData]) -> dict[str, _Place]:
    """Columns by depth, each centred on the tallest; a column of actions stands lower, so that `no` passes over it."""
    depths = _depths(boxes)
    lines = {box["id"]: [row for part in _words(box) for row in textwrap.wrap(part, _COLUMNS)] for box in boxes}
    columns: dict[int, list[BoxData]] = {}
    for box in boxes:
        columns.setdefault(depths[box["id"]], []).append(box)
    tallest = max(_column_height(column, lines) for column in columns.values())
    places = {}
    for depth, column in columns.items():
        y = _PAD + (tallest - _column_height(column, lines)) // 2
        y += _DROP if all(box["kind"] == "action" for box in column) else 0
        for box in column:
            size = _box_height(lines[box["id"]])
            x = _PAD + depth * (_WIDTH + _GAP_X)
            places[box["id"]] = _Place(x=x, y=y, height=size, lines=tuple(lines[box["id"]]))
            y += size + _GAP_Y
    return places


def _box_height(lines: Sequence[str]) -> int:
    return len(lines) * _LINE + 2 * _PAD


def _column_height(column: Sequence[BoxData], lines: Mapping[str, Sequence[str]]) -> int:
    return sum(_box_height(lines[box["id"]]) + _GAP_Y for box in column) - _GAP_Y


def _depths(boxes: Sequence[BoxData]) -> dict[str, int]:
    """The longest way to each box: an arrow always points to a later column. The flows have no circles."""
    depths = dict.fromkeys((box["id"] for box in boxes), 0)
    for _ in boxes:
        for box in boxes:
            for edge in box["edges"]:
                if edge["to"] in depths:
                    depths[edge["to"]] = max(depths[edge["to"]], depths[box["id"]] + 1)
    return depths


def _arrows(box: BoxData, places: Mapping[str, _Place]) -> list[str]:
    start = places[box["id"]]
    return [_arrow(start, places[edge["to"]], edge["label"]) for edge in box["edges"] if edge["to"] in places]


def _arrow(start: _Place, end: _Place, label: str) -> str:
    """An arrow; its answer stands at its end, or at its start where it passes over a column."""
    x0, y0 = start.x + _WIDTH, start.y + start.height // 2
    x1, y1 = end.x, end.y + end.height // 2
    bend = x0 + _BEND // 2
    shape = f"M{x0} {y0} C{bend} {y0} {bend} {y1} {x0 + _BEND} {y1} H{x1}"
    path = f'<path d="{shape}" fill="none" stroke="#6b7280" marker-end="url(#tip)"/>'
    if not label:
        return path
    short = escape(textwrap.shorten(label, 24, placeholder="…"))
    if x1 - x0 > _GAP_X:
        return f'{path}<text x="{x0 + 8}" y="{y0 - 5}" fill="#374151">{short}</text>'
    return f'{path}<text x="{x1 - 10}" y="{y1 - 5}" text-anchor="end" fill="#374151">{short}</text>'


def _linked(drawn: str, address: str | None) -> str:
    return drawn if address is None else f'<a href="{escape(address)}">{drawn}</a>'


def _drawn(box: BoxData, place: _Place, *, lit: bool) -> str:
    radius = 6 if box["kind"] in {"action", "note"} else 16
    outline = (
        f'<rect x="{place.x}" y="{place.y}" width="{_WIDTH}" height="{place.height}" rx="{radius}" '
        f'fill="{_FILLS[box["kind"]]}" {_LIT if lit else _UNLIT}/>'
    )
    middle = place.x + _WIDTH // 2
    rows = [
        f'<text x="{middle}" y="{place.y + _PAD + _LINE * (number + 1) - 4}" text-anchor="middle">{escape(line)}</text>'
        for number, line in enumerate(place.lines)
    ]
    told = " ".join(filter(None, [box["text"], box.get("note", "")]))
    return "".join([f'<g id="box-{escape(box["id"])}"><title>{escape(told)}</title>', outline, *rows, "</g>"])
