"""The cells of the guide as questions: every box and every row of a recommendation table has one, at its own line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chipwise.audit.guide_check.parts import PARTS
from chipwise.guide import boxes, cells, claim
from chipwise.guide.cells import questions
from chipwise.guide.tables import table

DOCUMENTS = {"A": "accelerator-selection.txt", "B": "compute-hardware.txt"}
CALLED = {
    "trn2": ("trn2", "trainium"),
    "trn1": ("trn1", "trainium"),
    "inf2": ("inf2", "inferentia"),
    "p5": ("p5", "h100"),
    "p5e": ("p5e", "h200"),
    "p5en": ("p5en", "h200"),
    "p6-b200": ("p6", "b200"),
}
"""What the guide calls a family by besides its name."""
OURS = "ask"
"""The flow of questions that the guide does not ask."""


def test_there_are_enough_and_their_ids_are_their_own() -> None:
    ids = [cell.id for cell in cells()]
    assert len(ids) == len(set(ids))
    assert len(ids) >= 150


def test_every_box_of_every_flow_has_a_cell() -> None:
    asked = {cell.id for cell in cells()}
    assert [name for name, one in boxes().items() if one.flow != OURS and name not in asked] == []


@pytest.mark.parametrize(
    "name",
    [
        *("goal_instances", "architectures", "workloads", "scenarios", "training_inference", "matrix"),
        *("winners", "quick_reference", "capacity", "memory_counts", "kv_cells", "datatypes"),
    ],
)
def test_every_row_of_a_recommendation_table_has_a_cell(name: str) -> None:
    lines = {cell.where for cell in cells()}
    assert [row["where"] for row in table(name) if row["where"] not in lines] == []


def test_every_goal_has_its_summary() -> None:
    asked = {cell.id for cell in cells()}
    wanted = {f"6.summary.{row['goal']}.{vendor}" for row in table("goals") for vendor in ("nvidia", "neuron")}
    assert wanted <= asked


def test_every_cell_names_a_part_a_word_and_claims_that_exist() -> None:
    for cell in cells():
        assert cell.part in PARTS, cell.id
        assert cell.recommends, cell.id
        assert all(claim(name).id == name for name in cell.claims)


def test_every_question_is_asked() -> None:
    asked = {repr(cell.question) for cell in cells()}
    derived = {"has-format", "cache"}
    assert [name for name, said in questions().items() if repr(said) not in asked and name not in derived] == []


def test_words_of_another_table_are_taken_from_it() -> None:
    by_id = {cell.id: cell for cell in cells()}
    assert by_id["8.7-cost"].recommends == boxes()["8.7-cost"].recommends
    assert by_id["6.latency.small.neuron"].recommends == ("trn2.3xlarge",)
    assert by_id["8.5-speed.format"].recommends == boxes()["8.5-speed"].precision


def test_every_family_recommended_stands_at_its_line(shared: Path) -> None:
    lines = {letter: (shared / "guide" / name).read_text().splitlines() for letter, name in DOCUMENTS.items()}
    for cell in cells():
        if cell.part != "sizes" or cell.claims:
            continue
        letter, _, number = cell.where.partition(":")
        said = " ".join(lines[letter][int(number) - 2 : int(number) + 1]).lower()
        for word in cell.recommends:
            family = word.partition(".")[0]
            assert any(name in said for name in CALLED.get(family, (family,))), (cell.id, word, said)


def test_every_line_is_a_line_of_the_guide(shared: Path) -> None:
    lines = {letter: (shared / "guide" / name).read_text().splitlines() for letter, name in DOCUMENTS.items()}
    for cell in cells():
        assert re.fullmatch(r"[AB]:\d+", cell.where)
        assert lines[cell.where[0]][int(cell.where[2:]) - 1].strip(), cell.id
