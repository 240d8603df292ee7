"""A document as Markdown (GitHub's flavour): tables, lists, and the memory bar as a line of code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import assert_never

from chipwise.report.document import (
    Bar,
    Block,
    Bullets,
    Commands,
    Document,
    Heading,
    Line,
    Pairs,
    Table,
    Text,
)

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#])")


def markdown(document: Document) -> str:
    """The document as Markdown, blocks parted by blank lines."""
    return "\n\n".join(filter(None, (_drawn(block) for block in document.blocks))) + "\n"


def _drawn(block: Block) -> str:
    drawn: str
    match block:
        case Heading(line=content, level=level):
            drawn = f"{'#' * level} {_plain(content)}"
        case Text(line=content):
            drawn = _inline(content)
        case Pairs(rows=rows):
            drawn = "\n".join(f"- {_label(label)}{_inline(content)}" for label, content in rows)
        case Bullets(items=items):
            drawn = "\n".join(f"- {_inline(item)}" for item in items)
        case Table():
            drawn = _table(block)
        case Bar():
            drawn = _bar(block)
        case Commands(lines=lines):
            drawn = "\n".join(["```sh", *lines, "```"])
        case _ as never:
            assert_never(never)
    return drawn


def _label(label: str) -> str:
    return f"**{_escaped(label)}**: " if label else ""


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _plain(content: Line) -> str:
    return _escaped("".join(word.text for word in content))


def _inline(content: Line) -> str:
    marks = {"strong": "**", "bad": "**"}
    parts = []
    for word in content:
        mark, body = marks.get(word.tone, ""), word.text.strip()
        around = word.text.split(body) if body else [word.text, ""]
        parts.append(f"{around[0]}{mark}{_escaped(body)}{mark}{around[-1]}" if body else word.text)
    return "".join(parts)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _table(block: Table) -> str:
    titles = [_escaped(column.title) or " " for column in block.columns]
    rule = ["---:" if column.right else "---" for column in block.columns]
    rows = [[_inline(cell) for cell in row] for row in block.rows]
    return "\n".join(map(_row, [titles, rule, *rows]))


def _bar(block: Bar) -> str:
    terms = [[part.label, part.shown] for part in block.parts]
    return f"{_inline(block.caption)}\n\n" + "\n".join(map(_row, [["part", "takes"], ["---", "---:"], *terms]))
