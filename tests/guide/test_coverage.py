"""The guide is covered whole: every claim has a verdict and is served, every served thing exists, pages are fresh."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import get_args

import pytest

from chipwise.guide import boxes, claims, topics
from chipwise.guide.claims import Verdict, twenty
from chipwise.guide.tables import table
from chipwise.interfaces.cli.door import LazyGroup, cli

DOCUMENTS = {"A": "accelerator-selection.txt", "B": "compute-hardware.txt"}
FILES = sorted(path.stem for path in (Path(__file__).parents[2] / "src/chipwise/guide/data").glob("*.csv"))


def test_every_claim_and_box_is_served_or_marked_as_background() -> None:
    known = topics()
    assert [one.id for one in claims() if one.topic not in known] == []
    assert [one.id for one in boxes().values() if one.topic not in known] == []
    assert [one.topic for one in known.values() if not one.background and not (one.command and one.test)] == []


def test_no_topic_serves_nothing() -> None:
    used = {one.topic for one in claims()} | {one.topic for one in boxes().values()}
    assert set(topics()) == used


def test_few_claims_are_background() -> None:
    left_out = [one.id for one in claims() if one.served.background]
    assert len(left_out) < len(claims()) / 20, left_out
    assert [one.id for one in claims() if one.served.background and one.verdict == "wrong"] == []


@pytest.mark.parametrize("topic", [name for name, one in topics().items() if not one.background])
def test_what_serves_a_topic_exists(repo: Path, topic: str) -> None:
    served = topics()[topic]
    assert (repo / served.file).is_file()
    path, _, name = served.test.partition("::")
    assert f"def {name}(" in (repo / path).read_text(encoding="utf-8")
    assert isinstance(cli, LazyGroup)
    assert cli.get_command(None, served.command.split()[0]) is not None  # type: ignore[arg-type] # needs no context


def test_claims_are_well_formed() -> None:
    ids = [one.id for one in claims()]
    assert len(ids) == len(set(ids))
    known = {row["key"] for row in table("sources")}
    for one in claims():
        assert one.verdict in get_args(Verdict)
        assert re.fullmatch(r"[AB]:\d+", one.where)
        assert one.id.startswith(one.where[0])
        assert one.sources
        assert set(one.sources) <= known
        assert one.right_value or one.verdict in {"right", "unverifiable"}, one.id


def test_the_twenty_name_claims_that_are_not_right() -> None:
    amiss = {one.id for one in claims() if one.verdict not in {"right", "unverifiable"}}
    named = [name for one in twenty() for name in one["claims"]]
    assert [name for name in named if name not in amiss] == ["A-dt-int4-g6e"] * named.count("A-dt-int4-g6e")


@pytest.mark.parametrize("name", FILES)
def test_every_row_has_the_columns_of_its_table(name: str) -> None:
    assert [row for row in table(name) if None in row or None in row.values()] == []


def test_every_line_cited_is_a_line_of_the_guide(shared: Path) -> None:
    lines = {letter: (shared / "guide" / name).read_text().splitlines() for letter, name in DOCUMENTS.items()}
    for one in claims():
        letter, _, line = one.where.partition(":")
        assert lines[letter][int(line) - 1].strip(), one.id


def test_every_line_of_the_errata_has_a_claim(shared: Path) -> None:
    text = (shared / "truth" / "ERRATA.md").read_text()
    cited = {f"{letter}:{line}" for letter, line in re.findall(r"\b([AB]):(\d+)", text)}
    have = {one.where for one in claims()} | {one.where for one in boxes().values()}
    near = {f"{where[0]}:{int(where[2:]) + step}" for where in have for step in (-3, -2, -1, 0, 1, 2, 3)}
    assert sorted(cited - near) == []


def test_no_sentence_of_the_guide_is_copied(shared: Path) -> None:
    words = " ".join((shared / "guide" / name).read_text() for name in DOCUMENTS.values())
    guide = " ".join(re.findall(r"[\w-]+", words.lower()))
    for one in claims():
        own = re.findall(r"[\w-]+", one.claim.lower())
        runs = [" ".join(own[start : start + 9]) for start in range(len(own) - 8)]
        assert [run for run in runs if run in guide] == [], one.id


def test_generated_pages_are_fresh(repo: Path) -> None:
    spec = importlib.util.spec_from_file_location("generate", repo / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    for name in ("errata.md", "guide-coverage.md"):
        assert (repo / "docs" / name).read_text(encoding="utf-8") == generate.page(name), "run `make docs`"
