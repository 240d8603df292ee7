"""Every way a fact can hide where it comes from is found; a whole fact passes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chipwise.facts import Fact, Source
from chipwise.facts.provenance import find_defects

SOURCES = {"log": Source(key="log", title="A log", locator="somewhere", read_on="2026-11-30")}
WHOLE = Fact(
    subject="chip",
    key="memory",
    value=80,
    unit="GB",
    kind="vendor",
    source="log",
    where="page 1",
    read_on="2026-11-30",
    why=None,
    conflicts=(),
)


def found(fact: Fact) -> list[str]:
    return [defect.what for defect in find_defects([fact], SOURCES)]


def test_a_whole_fact_passes() -> None:
    assert found(WHOLE) == []


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"kind": "heard"}, "unknown kind"),
        ({"source": "dream"}, "unknown source"),
        ({"where": " "}, "where in the source"),
        ({"read_on": "30.11.2026"}, "ISO date"),
        ({"read_on": "2026-13-01"}, "ISO date"),
        ({"read_on": "20261130"}, "ISO date"),
        ({"kind": "assumed"}, "assumption without a why"),
    ],
)
def test_what_is_missing_is_found(change: dict[str, Any], word: str) -> None:
    (what,) = found(replace(WHOLE, **change))
    assert word in what


def test_a_choice_between_rivals_needs_a_why() -> None:
    rival = replace(WHOLE, value=81, kind="measured")
    assert found(replace(WHOLE, conflicts=(rival,))) == ["it has rivals and does not say why it was chosen"]
    assert found(replace(WHOLE, conflicts=(rival,), why="the log is of another card")) == []


def test_a_rival_must_disagree_also_across_units() -> None:
    same = replace(WHOLE, value=80_000, unit="MB")
    assert found(replace(WHOLE, conflicts=(same,), why="first")) == ["the rival of log says the same"]


def test_rivals_are_proved_too() -> None:
    rival = replace(WHOLE, value=81, source="dream")
    assert found(replace(WHOLE, conflicts=(rival,), why="first")) == ["unknown source 'dream'"]


def test_a_rival_has_no_rivals_of_its_own() -> None:
    deep = replace(WHOLE, value=81, conflicts=(replace(WHOLE, value=82),))
    assert found(replace(WHOLE, conflicts=(deep,), why="first")) == ["a rival has rivals of its own"]


def test_a_defect_names_subject_and_key() -> None:
    (defect,) = find_defects([replace(WHOLE, where="")], SOURCES)
    assert (defect.subject, defect.key) == ("chip", "memory")
