"""How few bits a goal lets a model be held in, when the asker names no floor."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.guide.tables import table


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The lowest weight format tried for a goal, why, and the line it comes from."""

    goal: str
    floor: str
    why: str
    source: str


def precision_floor(goal: str) -> Floor | None:
    """The floor of the first goal; None for training goals, whose precision is the method's.

    >>> precision_floor("latency").floor, precision_floor("time-to-train")
    ('fp8', None)
    """
    return next((Floor(**row) for row in table("floors") if row["goal"] == goal), None)
