"""Figures of this room: how far a fleet may grow."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from chipwise.facts import read_rows

DATA = Path(__file__).parent / "data"
COLUMNS = ("key", "value", "unit", "kind", "source", "where", "read_on")


@cache
def _values() -> dict[str, float]:
    return {row[0]: float(row[1]) for _, row in read_rows(DATA / "training.csv", COLUMNS)}


def scaling_floor_fraction() -> float:
    """The least parallel efficiency at which a larger fleet still pays; a policy of ours."""
    return _values()["scaling_floor_fraction"]
