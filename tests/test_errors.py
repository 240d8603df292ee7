"""The tree of errors: three families, an exit status each, and near names that help."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import (
    ChipwiseError,
    InfeasibleError,
    InputError,
    KnowledgeError,
    UnknownNameError,
    near_names,
)

SIZES = ["p5en.48xlarge", "p5.48xlarge", "g6.xlarge", "g6e.12xlarge", "trn2.48xlarge"]


@pytest.mark.parametrize(
    ("kind", "family", "status"),
    [(InputError, "input", 2), (KnowledgeError, "knowledge", 3), (InfeasibleError, "infeasible", 1)],
)
def test_each_family_has_its_exit_status(kind: type[ChipwiseError], family: str, status: int) -> None:
    error = kind("no such chip", why="it is not in the catalog", fix="see chipwise catalog list")
    assert error.exit_status == status
    assert error.as_json() == {
        "error": {
            "what": "no such chip",
            "why": "it is not in the catalog",
            "fix": "see chipwise catalog list",
            "family": family,
        }
    }
    assert str(error) == "no such chip"


@pytest.mark.parametrize("kind", [InputError, KnowledgeError, InfeasibleError, UnknownNameError])
def test_every_error_is_a_chipwise_error(kind: type[Exception]) -> None:
    assert issubclass(kind, ChipwiseError)
    assert not issubclass(kind, ValueError | KeyError)


def test_an_unknown_name_proposes_near_ones() -> None:
    error = UnknownNameError("instance", "p5en.48xlarg", SIZES)
    assert isinstance(error, InputError)
    assert error.fix.startswith("did you mean p5en.48xlarge")
    assert "'p5en.48xlarg'" in error.what


def test_an_unknown_name_with_nothing_near_points_to_the_list() -> None:
    assert UnknownNameError("chip", "zzz", SIZES).fix == "see the list of known chips"
    assert UnknownNameError("chip", "zzz", SIZES, listing="chipwise catalog list").fix == "chipwise catalog list"


def test_near_names_ignore_case_keep_spelling_and_stop_at_most() -> None:
    assert near_names("G6E.12XLARGE", SIZES, most=1) == ["g6e.12xlarge"]
    assert near_names("trn2.48XL", ["Trn2.48xlarge"]) == ["Trn2.48xlarge"]
    assert len(near_names("p5.48xlarge", SIZES, most=2)) == 2


@given(st.text(), st.lists(st.text(), max_size=8), st.integers(1, 4))
def test_near_names_are_known_names(name: str, known: list[str], most: int) -> None:
    near = near_names(name, known, most=most)
    assert len(near) <= most
    assert set(near) <= set(known)
