"""`why` and `compare`: what they say agrees with itself, and chips are compared as sizes are."""

from __future__ import annotations

import pytest

from chipwise import Request
from chipwise.advisor import compare, why
from chipwise.errors import InputError, UnknownNameError


def test_what_a_rule_asks_for_is_tried_before_it_is_said() -> None:
    answer = why("trn2.48xlarge", Request(model="deepseek-v3", users=200))
    assert answer["stands_in"] == "rejected"
    assert answer["would_change_it"] or "not enough" in answer["detail"].change


def test_why_names_the_model_and_the_workload() -> None:
    answer = why("g6e.xlarge", Request(model="llama-3.1-8b", users=7))
    assert answer["model"]["name"] == "llama-3.1-8b"
    assert answer["workload"]["users"] == {"value": 7, "from": "user"}


def test_a_size_left_out_by_a_flag_needs_nothing_but_the_flag() -> None:
    answer = why("trn2.48xlarge", Request(model="llama-3.1-8b", vendor="nvidia"))
    assert answer["stands_in"] == "excluded"
    assert [one["kind"] for one in answer["would_change_it"]] == ["selection"]


def test_an_engine_that_does_not_run_there_is_what_would_turn_it() -> None:
    answer = why("trn2.48xlarge", Request(model="llama-3.1-8b", engine="vllm"))
    assert "engine" in {one["kind"] for one in answer["would_change_it"]}


def facts(first: str, second: str) -> dict[str, tuple[object, object]]:
    return {row["fact"]: (row["first"], row["second"]) for row in compare(first, second)["facts"]}


def test_chips_are_compared_fact_by_fact() -> None:
    found = facts("h100-sxm", "H200")
    assert found["memory_bandwidth_bytes_per_s_per_chip"] == (3.35e12, 4.8e12)
    assert found["bf16_dense_flops_per_s_per_chip"][0] == found["bf16_dense_flops_per_s_per_chip"][1]
    assert "vcpu" not in found


def test_a_chip_beside_a_size_knows_no_host() -> None:
    found = facts("h100-sxm", "p5.48xlarge")
    assert found["chips"] == (1, 8)
    assert found["vcpu"] == (None, 192)


def test_a_chip_answers_a_question_as_the_best_of_its_sizes() -> None:
    answer = compare("h100-sxm", "g6e.xlarge", Request(model="llama-3.1-8b", users=4))
    assert answer["answers"] is not None
    assert [one["stands_in"] for one in answer["answers"]] == ["options", "options"]
    assert answer["answers"][0]["detail"].instance.startswith("p5.")


def test_what_is_neither_chip_nor_size_proposes_both() -> None:
    with pytest.raises(UnknownNameError) as caught:
        compare("h100-sxm", "h100-sxn")
    assert "h100-sxm" in caught.value.fix


def test_size_and_model_in_each_other_s_place_are_told_apart() -> None:
    with pytest.raises(InputError) as caught:
        why("llama-3.3-70b", Request(model="p5.48xlarge", purpose="chat"))
    assert caught.value.fix == "chipwise why p5.48xlarge llama-3.3-70b"
    with pytest.raises(UnknownNameError, match=r"p5\.49xlarge"):
        why("p5.49xlarge", Request(model="llama-3.3-70b", purpose="chat"))


def test_only_the_bar_that_is_missed_is_loosened() -> None:
    """The prompt of a chat is answered in a tenth of a second: the bar on TTFT stays, that on TPOT moves."""
    answer = why("g6e.xlarge", Request(model="llama-3.1-8b", users=64, ttft_p99_s=1.0, tpot_p99_s=0.001))
    (looser,) = (one["change"] for one in answer["would_change_it"] if one["kind"] == "bars")
    assert looser.startswith("--tpot-p99 ")
    assert "ttft" not in looser
