"""A document as HTML: a fragment for a page that is served, or one file that needs nothing beside it."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files
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
    Part,
    Table,
    Text,
)

_MARKS = {"plain": "", "strong": "b", "dim": "small", "good": "b", "warn": "b", "bad": "b", "accent": "b"}
"""The element of a tone; its class says which."""
_HUNDRED = 100.0


def html(document: Document) -> str:
    """The document as a fragment.

    >>> from chipwise.report.document import Document, Text, bad, line
    >>> html(Document(blocks=(Text(line=line("P99 < 1 s: ", bad("missed"))),)))
    '<p>P99 &lt; 1 s: <b class="bad">missed</b></p>'
    """
    return "\n".join(_drawn(block) for block in document.blocks)


def file(title: str, *fragments: str) -> str:
    """One self-contained file: styles inside, no script, nothing fetched."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{stylesheet()}</style></head>"
        f'<body><main class="report">{"".join(fragments)}</main></body></html>\n'
    )


@cache
def stylesheet() -> str:
    """The styles of every page, served or written."""
    return (files("chipwise.report") / "data" / "page.css").read_text(encoding="utf-8")


def _drawn(block: Block) -> str:
    drawn: str
    match block:
        case Heading(line=content, level=level):
            drawn = f"<h{level}>{inline(content)}</h{level}>"
        case Text(line=content):
            drawn = f"<p>{inline(content)}</p>"
        case Pairs(rows=rows):
            pairs = (f"<dt>{escape(label)}</dt><dd>{inline(content)}</dd>" for label, content in rows)
            drawn = f"<dl>{''.join(pairs)}</dl>"
        case Bullets(items=items, mark=mark):
            listed = "".join(f"<li>{inline((mark,))} {inline(item)}</li>" for item in items)
            drawn = f'<ul class="marked">{listed}</ul>'
        case Table():
            drawn = _table(block)
        case Bar():
            drawn = _bar(block)
        case Commands(lines=lines):
            drawn = f'<pre tabindex="0"><code>{escape(chr(10).join(lines))}</code></pre>'
        case _ as never:
            assert_never(never)
    return drawn


def inline(content: Line) -> str:
    """One line as HTML, without an element around it."""
    return "".join(
        f'<{_MARKS[word.tone]} class="{word.tone}">{escape(word.text)}</{_MARKS[word.tone]}>'
        if _MARKS[word.tone]
        else escape(word.text)
        for word in content
    )


def _table(block: Table) -> str:
    sides = [' class="right"' if column.right else "" for column in block.columns]
    titles = "".join(
        f'<th scope="col"{side}>{escape(column.title)}</th>' if column.title else f"<td{side}></td>"
        for side, column in zip(sides, block.columns, strict=True)
    )
    rows = "".join(
        "<tr>" + "".join(f"<td{side}>{inline(cell)}</td>" for side, cell in zip(sides, row, strict=True)) + "</tr>"
        for row in block.rows
    )
    return (
        f'<div class="scrolls" tabindex="0" role="group" aria-label="table"><table><thead><tr>{titles}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _bar(block: Bar) -> str:
    """The bar as rectangles of one SVG, each with its name and figure on hover, and a legend below."""
    drawn, left = [], 0.0
    whole = max(block.total, sum(part.value for part in block.parts))
    for part in block.parts:
        wide = _HUNDRED * part.value / whole if whole else 0.0
        drawn.append(
            f'<rect class="{part.kind}" x="{left:.3f}%" y="0" width="{wide:.3f}%" height="100%">'
            f"<title>{escape(': '.join(filter(None, [_told(part), part.about])))}</title></rect>"
        )
        left += wide
    legend = "".join(
        f'<li><i class="{part.kind}" aria-hidden="true"></i>{escape(_told(part))}</li>' for part in block.parts
    )
    abouts = [f"<dt>{escape(part.label)}</dt><dd>{escape(part.about)}</dd>" for part in block.parts if part.about]
    terms = f"<details><summary>what these are</summary><dl>{''.join(abouts)}</dl></details>" if abouts else ""
    return (
        f'<figure class="bar"><figcaption>{inline(block.caption)}</figcaption>'
        f'<svg role="img" aria-label="{escape(", ".join(map(_told, block.parts)))}" width="100%" height="22">'
        f"{''.join(drawn)}</svg><ul>{legend}</ul>{terms}</figure>"
    )


def _told(part: Part) -> str:
    return f"{part.label} {part.shown}".strip()
