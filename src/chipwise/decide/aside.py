"""Feasible sizes so far behind the first option that a page folds them into a line: in money, or in instances."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.facts import read_rows

if TYPE_CHECKING:
    from chipwise.decide.deployment import Deployment
    from chipwise.decide.question import Question

DATA = Path(__file__).parent / "data"
COLUMNS = ("key", "value", "unit", "kind", "source", "where", "read_on")


@cache
def _multiples() -> dict[str, float]:
    return {row[0]: float(row[1]) for _, row in read_rows(DATA / "aside.csv", COLUMNS)}


def set_aside(one: Deployment, leader: Deployment | None, question: Question) -> str | None:
    """Why a deployment is folded: a multiple of what the leader costs or counts; None where it is near enough.

    Args:
        one: what would do as well.
        leader: the first option; None without one.
        question: what the cost is for.
    """
    if leader is None:
        return None
    most, cost, least = _multiples(), one.cost(question), leader.cost(question)
    if cost is not None and least is not None and cost.mid > most["cost"] * least.mid:
        return f"over {most['cost']:g} times the cost of {leader.instance.name}"
    if one.instances > most["fleet"] * leader.instances:
        return f"over {most['fleet']:g} times the instances of {leader.instance.name}"
    return None
