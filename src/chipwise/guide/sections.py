"""One section of the guide as plain data: its flow, its tables, and what its claims get wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chipwise.errors import InputError, UnknownNameError
from chipwise.guide.claims import Claim, claims, source_text
from chipwise.guide.flow import Box, boxes
from chipwise.guide.tables import Row, table


def section_list() -> list[dict[str, Any]]:
    """Every section: its name, title, line, and whether it has a flow to draw."""
    names = ("section", "title", "where")
    return [{name: row[name] for name in names} | {"flow": bool(row["root"])} for row in table("sections")]


def section(name: str) -> dict[str, Any]:
    """The content of one section.

    Raises:
        UnknownNameError: no such section; proposes near ones.

    >>> section("8.8")["boxes"][0]["id"]
    '8.8'
    """
    row = _row(name)
    return {
        "section": row["section"],
        "title": row["title"],
        "where": row["where"],
        "boxes": [_box(one) for one in _reached(row["root"].split(), row["section"])],
        "tables": [_table(one) for one in table("shown") if one["section"] == row["section"]],
        "claims": [claim_object(one) for one in claims() if _within(one.where, row["lines"])],
    }


def section_at(where: str) -> str:
    """The smallest section that a line stands in, with its title.

    >>> section_at("A:1087"), section_at("B:21")
    ('8.8 Large model serving', 'B-matrix GPU or Neuron: signals')
    """
    around = [row for row in table("sections") if _within(where, row["lines"])]
    row = min(around, key=lambda row: _length(row["lines"]))
    return f"{row['section']} {row['title']}"


def flow_of(name: str) -> list[dict[str, Any]]:
    """The boxes of a section's flow, to draw.

    Raises:
        UnknownNameError: no such section.
        InputError: the section has no flow.
    """
    found: list[dict[str, Any]] = section(name)["boxes"]
    if not found:
        drawn = ", ".join(row["section"] for row in table("sections") if row["root"])
        raise InputError(f"section {name} has no flow", why="it is tables and text", fix=f"draw one of {drawn}")
    return found


def claim_object(one: Claim) -> dict[str, Any]:
    """A claim as `guide errata` prints it."""
    served = one.served
    return {
        "id": one.id,
        "where": one.where,
        "section": one.section,
        "claim": one.claim,
        "verdict": one.verdict,
        "right_value": one.right_value or None,
        "source": source_text(one.sources),
        "served_by": served.text,
        "topic": one.topic,
    }


def _row(name: str) -> Row:
    known = {row["section"].lower(): row for row in table("sections")}
    found = known.get(name.strip().lower())
    if found is None:
        names = [row["section"] for row in table("sections")]
        raise UnknownNameError("section", name, names, listing=f"the sections are {', '.join(names)}")
    return found


def _within(where: str, lines: str) -> bool:
    document, _, span = lines.partition(":")
    first, _, last = span.partition("-")
    place, _, line = where.partition(":")
    return place == document and int(first) <= int(line) <= int(last)


def _length(lines: str) -> int:
    first, _, last = lines.partition(":")[2].partition("-")
    return int(last) - int(first)


def _reached(roots: list[str], name: str) -> Iterator[Box]:
    """The boxes of a section: those of its flow, and for the whole of section 8 those of every step."""
    flows = {boxes()[root].flow for root in roots}
    for one in boxes().values():
        if one.flow in flows or (roots and name == "8" and one.flow.startswith("8.")):
            yield one


def _box(one: Box) -> dict[str, Any]:
    names = ("id", "kind", "text", "recommends", "precision", "note", "where")
    edges = [{"to": edge.end, "label": edge.label, "explains": edge.explains} for edge in one.edges if edge.end]
    return {name: getattr(one, name) for name in names} | {"edges": edges}


def _table(shown: Row) -> dict[str, Any]:
    column, _, value = shown["filter"].partition("=")
    columns = shown["columns"].split()
    rows = [row for row in table(shown["table"]) if not column or row[column] == value]
    return {"title": shown["title"], "columns": columns, "rows": [_cells(row, columns) for row in rows]}


def _cells(row: Mapping[str, str], columns: list[str]) -> list[str]:
    return [row[name] for name in columns]
