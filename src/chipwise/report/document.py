"""What a page is made of: blocks of words with a tone, which every renderer draws in its own way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Tone = Literal["plain", "strong", "dim", "good", "warn", "bad", "accent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A piece of text and what it means: `good` met, `warn` take care, `bad` missed, `dim` in passing."""

    text: str
    tone: Tone = "plain"


Line = tuple[Word, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A heading of level 1 (the page), 2 (a section) or 3 (a part of it)."""

    line: Line
    level: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A paragraph; `indent` is its depth."""

    line: Line
    indent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Labels with what they say, the labels in one column."""

    rows: tuple[tuple[str, Line], ...]
    indent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bullets:
    """A list; `mark` stands before every item."""

    items: tuple[Line, ...]
    mark: Word
    indent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table. `wraps` is the one that gives way where the page is narrow."""

    title: str
    right: bool = False
    wraps: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under columns, no frames."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Line, ...], ...]
    indent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a bar: its share of the whole is `value` of the bar's `total`."""

    label: str
    value: float
    shown: str
    kind: Literal["held", "cache", "trained", "working", "reserved", "free", "over"]
    about: str = ""
    """What it is, for one who does not know the word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """Parts that add up to a whole; a part `over` lies beyond it."""

    parts: tuple[Part, ...]
    total: float
    caption: Line
    indent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """Lines to type."""

    lines: tuple[str, ...]
    indent: int = 0


Block = Heading | Text | Pairs | Bullets | Table | Bar | Commands


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A page."""

    blocks: tuple[Block, ...]


def line(*parts: str | Word) -> Line:
    """A line of plain texts and toned words.

    >>> line("fits ", good("yes"))
    (Word(text='fits ', tone='plain'), Word(text='yes', tone='good'))
    """
    return tuple(Word(text=part) if isinstance(part, str) else part for part in parts if part)


def join(lines: Iterable[Line], separator: str = " · ") -> Line:
    """Several lines as one, empty ones left out."""
    words: Line = ()
    for one in lines:
        if one:
            words = (*words, Word(text=separator, tone="dim"), *one) if words else one
    return words


def strong(text: str) -> Word:
    """What the eye should find first."""
    return Word(text=text, tone="strong")


def dim(text: str) -> Word:
    """What is said in passing."""
    return Word(text=text, tone="dim")


def good(text: str) -> Word:
    """A bar that is met."""
    return Word(text=text, tone="good")


def warn(text: str) -> Word:
    """Something to take care of."""
    return Word(text=text, tone="warn")


def bad(text: str) -> Word:
    """A bar that is missed."""
    return Word(text=text, tone="bad")


def accent(text: str) -> Word:
    """A name to recognise: an instance, a command."""
    return Word(text=text, tone="accent")
