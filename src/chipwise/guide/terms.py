"""What a word of the field means, what decides it, how it is graded, and how to improve it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from chipwise.errors import UnknownNameError
from chipwise.guide.goals import Setting, goal_card, goal_settings
from chipwise.guide.ratings import Band, bands
from chipwise.guide.tables import Row, cite, table


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """A symptom, what is behind it, what to look at, what to do."""

    symptom: str
    cause: str
    check: str
    remedy: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A word explained. `config` is a configuration to copy where the term is a technique; empty otherwise.

    `settings` is what a goal sets, where the term is a goal.
    """

    term: str
    title: str
    aliases: tuple[str, ...]
    meaning: str
    equation: str
    decided_by: str
    factors: str
    improve: str
    felt: str
    ratings: tuple[Band, ...]
    diagnoses: tuple[Diagnosis, ...]
    config: str
    source: str
    settings: tuple[Setting, ...] = ()


def explain_term(name: str) -> Term:
    """The term or goal of that name or alias.

    Raises:
        UnknownNameError: no such term; proposes near ones.

    >>> explain_term("ITL").decided_by
    'memory bandwidth, first order'
    """
    folded = name.strip().lower().replace(" ", "-").replace("_", "-")
    goals = [row["goal"] for row in table("goals")]
    if folded in goals:
        return _goal(folded)
    row = _by_name().get(folded)
    if row is None:
        known = [*(row["term"] for row in table("terms")), *goals]
        raise UnknownNameError("term", name, [*_by_name(), *goals], listing=f"known: {', '.join(known)}")
    return _term(row)


def _goal(name: str) -> Term:
    """A goal as a term: what it asks, what it measures, what it costs, what it sets."""
    card = goal_card(name)
    return Term(
        term=name,
        title=f"Goal {card.number}: {name}",
        aliases=(),
        meaning=f"{card.question} ({card.scenarios})",
        equation="",
        decided_by=card.metrics,
        factors=f"costs {card.tradeoff}",
        improve=card.direction,
        felt="",
        ratings=(),
        diagnoses=(),
        config="",
        source=card.source,
        settings=goal_settings(name),
    )


@cache
def _by_name() -> Mapping[str, Row]:
    found: dict[str, Row] = {}
    for row in table("terms"):
        for name in (row["term"], *row["aliases"].split()):
            found.setdefault(name, row)
    return MappingProxyType(found)


def _term(row: Row) -> Term:
    return Term(
        term=row["term"],
        title=row["title"],
        aliases=tuple(row["aliases"].split()),
        meaning=row["meaning"],
        equation=row["equation"],
        decided_by=row["decided_by"],
        factors=row["factors"],
        improve=row["improve"],
        felt=row["felt"],
        ratings=bands(row["rating"]),
        diagnoses=tuple(_diagnoses(row["term"])),
        config=next((one["config"] for one in table("sharing") if one["technique"] == row["term"]), ""),
        source=cite(row["where"]),
    )


def _diagnoses(term: str) -> list[Diagnosis]:
    return [
        Diagnosis(
            symptom=row["symptom"],
            cause=row["cause"],
            check=row["check"],
            remedy=row["remedy"],
            source=cite(row["where"]),
        )
        for row in table("diagnoses")
        if term in row["terms"].split()
    ]
