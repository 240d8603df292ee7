"""Terms explained."""

from __future__ import annotations

import pytest

from chipwise.errors import UnknownNameError
from chipwise.guide import explain_term, goal_settings
from chipwise.guide.tables import table

NAMES = [row["term"] for row in table("terms")]


@pytest.mark.parametrize("name", NAMES)
def test_every_term_says_what_decides_and_improves_it(name: str) -> None:
    found = explain_term(name)
    assert found.meaning
    assert found.decided_by or found.improve


@pytest.mark.parametrize(
    ("word", "term"),
    [("ITL", "tpot"), ("time to first token", "ttft"), ("KV Cache", "kv-cache"), ("inter_token_latency", "tpot")],
)
def test_other_names_are_understood(word: str, term: str) -> None:
    assert explain_term(word).term == term


def test_no_name_means_two_terms() -> None:
    names = [name for row in table("terms") for name in {row["term"], *row["aliases"].split()}]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("name", ["ttft", "tpot", "throughput", "mfu", "communication-efficiency"])
def test_metrics_carry_their_grades(name: str) -> None:
    assert explain_term(name).ratings


def test_a_busy_gpu_with_low_mfu_is_diagnosed() -> None:
    causes = [one.cause for one in explain_term("mfu").diagnoses if "busy" in one.symptom]
    assert causes == ["it waits in collectives, which count as busy"]


@pytest.mark.parametrize("name", [row["goal"] for row in table("goals")])
def test_goals_are_terms_with_settings(name: str) -> None:
    found = explain_term(name)
    assert found.decided_by
    assert found.settings == goal_settings(name)


def test_an_unknown_term_proposes_near_ones() -> None:
    with pytest.raises(UnknownNameError) as caught:
        explain_term("trottle-tpt")
    assert caught.value.fix
