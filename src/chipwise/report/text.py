"""A document drawn for a terminal: no frames, colour that means something, a memory bar."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Sequence
from typing import Literal, assert_never

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text as Styled

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

_STYLE = {
    "plain": "",
    "strong": "bold",
    "dim": "dim",
    "good": "green",
    "warn": "yellow",
    "bad": "red",
    "accent": "cyan",
}
_HEADING = {1: "bold", 2: "bold", 3: "italic"}
_CELL = {
    "held": ("█", "blue"),
    "cache": ("▓", "cyan"),
    "trained": ("▓", "yellow"),
    "working": ("▒", "magenta"),
    "reserved": ("░", "dim"),
    "free": ("·", "green"),
    "over": ("!", "red"),
}
_WIDEST_BAR = 72
_INDENT = 2
_END = "here the chip ends"
_PROMPT = "$ "
_GAP = 2
_NARROW = 12
_HELD = "\ue000"  # a space that does not break: rich breaks at U+00A0 too
_UNIT = re.compile(r"(?<=[\d\u2264\u00d7~]) (?=\S{1,16}(?:\s|$|[),;·]))")  # after a digit, at most, times


def text(document: Document, *, width: int, color: bool) -> str:
    """The document in `width` columns, with escape sequences only where `color`."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    for block in document.blocks:
        console.print(_drawn(block, width))
    rows = out.getvalue().replace(_HELD, " ").splitlines()
    return "\n".join(row.rstrip() for row in rows).strip("\n") + "\n"


def _drawn(block: Block, width: int) -> RenderableType:
    drawn: RenderableType
    match block:
        case Heading():
            drawn = _heading(block)
        case Text(line=content, indent=indent):
            drawn = _moved(_styled(content), indent)
        case Pairs():
            drawn = _pairs(block)
        case Bullets():
            drawn = _bullets(block)
        case Table():
            drawn = _table(block, width)
        case Bar():
            drawn = _bar(block, width)
        case Commands():
            drawn = _commands(block, width)
        case _ as never:
            assert_never(never)
    return drawn


def _commands(block: Commands, width: int) -> RenderableType:
    room = width - block.indent * _INDENT - len(_PROMPT)
    typed = Styled(overflow="fold")
    for place, one in enumerate(block.lines):
        remark = one.startswith("#")
        shown = one if remark else _PROMPT + _continued(one, room)
        typed.append("\n" * (place > 0) + shown, style="dim" if remark else "cyan")
    return _moved(typed, block.indent)


def _styled(content: Line) -> Styled:
    styled = Styled()
    for word in content:
        styled.append(_glued(word.text), style=_STYLE[word.tone])
    return styled


def _glued(content: str) -> str:
    """The same text, a number and its unit held together, and a dot kept on the line of what it follows."""
    return _UNIT.sub(_HELD, content.replace(" · ", f"{_HELD}· "))


def _continued(command: str, room: int) -> str:
    """A command broken between words, with backslashes, where it is longer than `room`."""
    if len(command) <= room:
        return command
    rows = textwrap.wrap(command, room - 4, break_on_hyphens=False, break_long_words=False)
    return f" \\\n{' ' * (len(_PROMPT) + 2)}".join(rows)


def _moved(content: RenderableType, indent: int) -> RenderableType:
    return Padding(content, (0, 0, 0, indent * _INDENT)) if indent else content


def _heading(block: Heading) -> RenderableType:
    styled = _styled(block.line)
    styled.stylize_before(_HEADING[block.level])
    above = 0 if block.level == 1 else 1
    return Padding(styled, (above, 0, 0, 0))


def _grid(columns: int) -> Grid:
    grid = Grid(box=None, show_header=False, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    for _ in range(columns):
        grid.add_column()
    return grid


def _pairs(block: Pairs) -> RenderableType:
    grid = _grid(2)
    grid.columns[0].no_wrap = True
    grid.columns[0].style = "dim"
    for label, content in block.rows:
        grid.add_row(label, _styled(content))
    return _moved(grid, block.indent)


def _bullets(block: Bullets) -> RenderableType:
    grid = _grid(2)
    grid.columns[0].no_wrap = True
    grid.columns[0].style = _STYLE[block.mark.tone]
    for item in block.items:
        grid.add_row(block.mark.text, _styled(item))
    return _moved(grid, block.indent)


def _table(block: Table, width: int) -> RenderableType:
    grid = Grid(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    roomy = _natural_width(block) <= width - block.indent * _INDENT
    for column in block.columns:
        side: Literal["right", "left"] = "right" if column.right else "left"
        whole = roomy and not column.wraps
        grid.add_column(column.title, justify=side, no_wrap=whole, overflow="fold")
    for row in block.rows:
        grid.add_row(*map(_styled, row))
    return _moved(grid, block.indent)


def _natural_width(block: Table) -> int:
    """Columns that the table needs with no cell wrapped but those of wrapping columns."""
    needed = 0
    for place, column in enumerate(block.columns):
        cells = [column.title, *("".join(word.text for word in row[place]) for row in block.rows)]
        needed += _GAP + (_NARROW if column.wraps else max(map(cell_len, cells)))
    return needed - _GAP


def _bar(block: Bar, width: int) -> RenderableType:
    room = min(_WIDEST_BAR, width - block.indent * _INDENT)
    bar = Styled()
    for part, cells in zip(block.parts, cells_of(block.parts, block.total, room), strict=True):
        glyph, style = _CELL[part.kind]
        bar.append(glyph * cells, style=style)
    grid = _grid(1)
    grid.add_row(_styled(block.caption))
    grid.add_row(bar)
    whole = sum(part.value for part in block.parts)
    if whole > block.total:
        end = round(block.total / whole * room)
        grid.add_row(Styled(f"{' ' * max(end - 1, 0)}^ {_END}", style="red"))
    for row in _legend(block.parts, width - block.indent * _INDENT):
        grid.add_row(row)
    return _moved(grid, block.indent)


def _legend(parts: Sequence[Part], room: int) -> list[Styled]:
    """The parts as `█ weights 65.7 GiB`, as many a row as there is room for."""
    rows = [Styled()]
    for part in parts:
        glyph, style = _CELL[part.kind]
        entry = Styled.assemble((f"{glyph} ", style), f"{part.label} ", (part.shown, "bold"), "  ")
        if rows[-1].plain and cell_len(rows[-1].plain) + cell_len(entry.plain.rstrip()) > room:
            rows.append(Styled())
        rows[-1].append_text(entry)
    return rows


def cells_of(parts: Sequence[Part], total: float, room: int) -> list[int]:
    """Cells of each part: in proportion, every part above zero at least one, together `room` at most.

    >>> whole = [Part(label="", value=v, shown="", kind="held") for v in (3.0, 1.0, 0.001)]
    >>> cells_of(whole, 4.001, 9)
    [6, 2, 1]
    """
    whole = max(total, sum(part.value for part in parts))
    if whole <= 0:
        return [0 for _ in parts]
    cells = [max(round(part.value / whole * room), 1) if part.value > 0 else 0 for part in parts]
    while sum(cells) > room and max(cells) > 1:
        cells[cells.index(max(cells))] -= 1
    return cells
