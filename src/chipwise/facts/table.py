"""Reads the long-form tables: one fact a line, rivals of a fact on later lines with the same subject and key.

Columns of a table of facts: subject, key, value, unit, kind, source, where, read_on, why.
Columns of the table of sources: key, title, locator, read_on.
A value with a unit is a number; without one it is text, or yes or no when it reads `true` or `false`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from chipwise.errors import KnowledgeError
from chipwise.facts.fact import KIND_RANK, Fact, Kind, Source, Value
from chipwise.facts.measure import UNITS, to_base

FACT_COLUMNS = ("subject", "key", "value", "unit", "kind", "source", "where", "read_on", "why")
SOURCE_COLUMNS = ("key", "title", "locator", "read_on")
_FLAGS = {"true": True, "false": False}

Row = Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactTable:
    """The rows of one file, grouped by subject and key; the first row of a group is the chosen one."""

    path: Path
    rows: Mapping[str, Mapping[str, Sequence[Row]]]
    sources: Mapping[str, Source]


def _broken(path: Path, line: int, why: str) -> KnowledgeError:
    return KnowledgeError(f"{path.name}:{line}: {why}", why="the table cannot be read", fix=f"correct {path}")


def read_rows(path: Path, columns: Sequence[str]) -> list[tuple[int, list[str]]]:
    """The rows of a CSV file with exactly these columns, each with its line number.

    Raises:
        KnowledgeError: no such file, not UTF-8, another header, a row of another length.

    Every message names the file and the line.
    """
    numbered: list[tuple[int, list[str]]] = []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            if tuple(header) != tuple(columns):
                raise _broken(path, 1, f"its columns are {','.join(header)!r}, not {','.join(columns)!r}")
            for row in reader:
                if len(row) != len(columns):
                    raise _broken(path, reader.line_num, f"{len(row)} fields, not {len(columns)}")
                numbered.append((reader.line_num, row))
    except OSError as error:
        raise _broken(path, 0, error.strerror or "unreadable") from error
    except UnicodeDecodeError as error:
        raise _broken(path, 0, f"not UTF-8 at byte {error.start}") from error
    except csv.Error as error:
        raise _broken(path, len(numbered) + 2, str(error)) from error
    return numbered


def read_sources(path: Path) -> dict[str, Source]:
    """The table of sources by key.

    Raises:
        KnowledgeError: as `read_rows`, an empty field, or a key that stands twice.
    """
    sources: dict[str, Source] = {}
    for line, row in read_rows(path, SOURCE_COLUMNS):
        key, title, locator, read_on = row
        if not all(row):
            raise _broken(path, line, "an empty field")
        if key in sources:
            raise _broken(path, line, f"source {key!r} stands twice")
        sources[key] = Source(key=key, title=title, locator=locator, read_on=read_on)
    return sources


def read_facts(path: Path, sources: Mapping[str, Source]) -> FactTable:
    """The facts of one file, every row checked.

    Raises:
        KnowledgeError: as `read_rows`; an empty field, an unknown kind, unit or source, no number.
    """
    grouped: dict[str, dict[str, list[Row]]] = {}
    proved: set[tuple[str, str, str]] = set()
    for line, row in read_rows(path, FACT_COLUMNS):
        subject, key, value, unit, kind, source, where, read_on, _ = row
        if not (subject and key and value and where and read_on):
            empty = next(name for name, text in zip(FACT_COLUMNS, row, strict=True) if not (text or name == "unit"))
            raise _broken(path, line, f"{empty} is empty")
        if (unit, kind, source) not in proved:
            _check_terms(path, line, row, sources)
            proved.add((unit, kind, source))
        if unit:
            _check_number(path, line, value, unit)
        grouped.setdefault(subject, {}).setdefault(key, []).append(row)
    return FactTable(path=path, rows=grouped, sources=sources)


def _check_terms(path: Path, line: int, row: Row, sources: Mapping[str, Source]) -> None:
    unit, kind, source = row[3:6]
    if kind not in KIND_RANK:
        raise _broken(path, line, f"kind {kind!r} is none of {', '.join(KIND_RANK)}")
    if source not in sources:
        raise _broken(path, line, f"source {source!r} is not in the table of sources")
    if unit and unit not in UNITS:
        raise _broken(path, line, f"unit {unit!r} is none of {', '.join(UNITS)}")


def _check_number(path: Path, line: int, value: str, unit: str) -> None:
    number = _number(value)
    if number is None:
        raise _broken(path, line, f"{value[:40]!r} in {unit} is not a finite number")
    if UNITS[unit].base in {"count", "tokens"} and number != round(number):
        raise _broken(path, line, f"{value[:40]!r} {unit} is not whole")


def _number(text: str) -> float | int | None:
    if text.isascii() and text.isdigit() and len(text) <= 18:
        return int(text)
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value * 1e18) else None


def _printed(text: str, unit: str) -> Value:
    if not unit:
        return _FLAGS.get(text, text)
    number = _number(text)
    return text if number is None else number


def values_of(table: FactTable, subject: str) -> dict[str, Value]:
    """The chosen value of every key of one subject, in base units; empty for an unknown subject."""
    rows = table.rows.get(subject, {})
    return {key: to_base(_printed(row[2], row[3]), row[3] or None) for key, (row, *_) in rows.items()}


def facts_of(table: FactTable, subject: str) -> tuple[Fact, ...]:
    """Every fact of one subject, each with its conflicts; empty for an unknown subject."""
    groups = table.rows.get(subject, {}).values()
    return tuple(_fact(rows[0], tuple(_fact(rival, ()) for rival in rows[1:])) for rows in groups)


def _fact(row: Row, conflicts: tuple[Fact, ...]) -> Fact:
    subject, key, value, unit, kind, source, where, read_on, why = row
    return Fact(
        subject=subject,
        key=key,
        value=_printed(value, unit),
        unit=unit or None,
        kind=cast("Kind", kind),
        source=source,
        where=where,
        read_on=read_on,
        why=why or None,
        conflicts=conflicts,
    )
