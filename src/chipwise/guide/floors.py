"""How few bits a goal lets a model be held in, when the asker names no floor."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The lowest weight format tried for a goal, why, and the line it comes from."""

    goal: str
    floor: str
    why: str
    source: str


@cache
def _floors() -> dict[str, Floor]:
    with files("chipwise.guide").joinpath("data/floors.csv").open(encoding="utf-8", newline="") as lines:
        return {row["goal"]: Floor(**row) for row in csv.DictReader(lines)}


def precision_floor(goal: str) -> Floor | None:
    """The floor of the first goal; None for training goals, whose precision is the method's.

    >>> precision_floor("latency").floor, precision_floor("time-to-train")
    ('fp8', None)
    """
    return _floors().get(goal)
