"""Proves that facts say where they come from, and that of rivals the stronger one was chosen, or why not."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from chipwise.facts.fact import KIND_RANK, Fact, Source
from chipwise.facts.measure import base_value


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """One thing that is wrong with the provenance of one fact."""

    subject: str
    key: str
    what: str


def find_defects(facts: Iterable[Fact], sources: Mapping[str, Source]) -> list[Defect]:
    """Everything wrong with the provenance of these facts; an empty list is the proof.

    A fact needs a known kind, a known source, a place in it and an ISO date; an assumption needs a `why`.
    A fact chosen over conflicts needs a `why`, and each conflict must really say something else.
    """
    return [Defect(subject=fact.subject, key=fact.key, what=what) for fact in facts for what in _defects(fact, sources)]


def _defects(fact: Fact, sources: Mapping[str, Source]) -> Iterator[str]:
    for one in (fact, *fact.conflicts):
        yield from _own_defects(one, sources)
    if not fact.conflicts:
        return
    if not fact.why:
        yield "it has rivals and does not say why it was chosen"
    for rival in fact.conflicts:
        if rival.conflicts:
            yield "a rival has rivals of its own"
        if base_value(rival) == base_value(fact):
            yield f"the rival of {rival.source} says the same"


def _own_defects(fact: Fact, sources: Mapping[str, Source]) -> Iterator[str]:
    if fact.kind not in KIND_RANK:
        yield f"unknown kind {fact.kind!r}"
    if fact.source not in sources:
        yield f"unknown source {fact.source!r}"
    if not fact.where.strip():
        yield "it does not say where in the source"
    if not _is_date(fact.read_on):
        yield f"{fact.read_on!r} is not an ISO date"
    if fact.kind == "assumed" and not fact.why:
        yield "an assumption without a why"


def _is_date(text: str) -> bool:
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == len("2026-11-30")
