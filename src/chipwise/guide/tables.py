"""Reads the guide's tables: every row a mapping of column to text, empty where the guide says nothing."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from chipwise.errors import UnknownNameError

Row = Mapping[str, str]
_DATA = Path(__file__).parent / "data"


@cache
def table(name: str) -> tuple[Row, ...]:
    """The rows of `data/<name>.csv`, in their order.

    >>> table("ratings")[0]["source"]
    'A:430'
    """
    with (_DATA / f"{name}.csv").open(encoding="utf-8", newline="") as lines:
        return tuple(MappingProxyType(row) for row in csv.DictReader(lines))


def row_named(name: str, column: str, value: str) -> Row:
    """The row of `data/<name>.csv` whose `column` holds `value`.

    Raises:
        UnknownNameError: no such row; names the others.

    >>> row_named("goals", "goal", "latency")["goal"]
    'latency'
    """
    row = next((row for row in table(name) if row[column] == value), None)
    if row is None:
        raise UnknownNameError(column, value, [row[column] for row in table(name)])
    return row


@cache
def limit(name: str) -> float:
    """A threshold of the guide, in base units.

    >>> limit("small_below_params")
    13000000000.0
    """
    return next(float(row["value"]) for row in table("limits") if row["name"] == name)


def cite(where: str) -> str:
    """A line of the guide as the answer cites it.

    >>> cite("A:720")
    'guide A:720'
    """
    return f"guide {where}"
