"""The guide beside the answer: to its letter where asked, and why its own sizes are no options."""

from __future__ import annotations

import pytest

from chipwise import Request, advise


@pytest.mark.parametrize(
    ("model", "sizes", "degrees"),
    [
        ("llama-3.1-8b", {"g6e.12xlarge", "g7e.12xlarge"}, {1}),
        ("qwen2.5-32b", {"g7e.48xlarge", "p5.48xlarge", "trn2.48xlarge"}, {2, 3, 4}),
        ("llama-3.3-70b", {"p5e.48xlarge", "trn2.48xlarge"}, {8}),
    ],
)
def test_the_letter_of_the_flow_for_latency(model: str, sizes: set[str], degrees: set[int]) -> None:
    advice = advise(Request(model=model, goal="latency", strict_guide=True))
    assert advice.options
    assert {option.instance for option in advice.options} <= sizes
    assert {option.parallelism.tp for option in advice.options} <= degrees
    assert {option.precision.weights for option in advice.options} <= {"bf16", "fp16"}
    assert advice.guide["agrees"]
    assert {row.instance for row in advice.also_feasible} <= sizes
    assert "strict-flow" in {row.rule for row in advice.rejected}


def test_the_letter_quantises_where_it_says_so() -> None:
    advice = advise(Request(model="llama-3.3-70b", goal="cost", strict_guide=True))
    assert {(option.instance, option.precision.weights) for option in advice.options} == {("p5.48xlarge", "int8")}


def test_a_floor_of_your_own_comes_before_the_letters_precision() -> None:
    advice = advise(Request(model="llama-3.3-70b", goal="cost", strict_guide=True, min_precision="bf16"))
    assert {option.precision.weights for option in advice.options} <= {"bf16", "fp16"}
    assert advice.options


def test_without_the_flag_the_flow_forbids_nothing() -> None:
    advice = advise(Request(model="llama-3.1-8b", goal="latency"))
    assert not [row for row in advice.rejected if row.rule.startswith("strict")]


def test_a_size_that_the_question_leaves_out_is_not_called_feasible() -> None:
    advice = advise(Request(model="deepseek-v3", vendor="neuron"))
    told = {row["id"]: row for row in advice.guide["differs"]}
    assert told["p5e.48xlarge"]["why"] == "left out by the question: --vendor neuron"
    assert not any("None" in row["why"] for row in advice.guide["differs"])
    only = advise(Request(model="deepseek-v3", only=("p5en.48xlarge",)))
    assert {row["why"] for row in only.guide["differs"]} == {"left out by the question: --only"}


def test_a_size_behind_the_options_says_behind_what() -> None:
    advice = advise(Request(model="llama-3.1-8b", goal="latency"))
    behind = {row.instance: row.behind_because for row in advice.also_feasible}
    told = [row for row in advice.guide["differs"] if row["id"] in behind]
    assert told
    assert all(behind[row["id"]] in row["why"] for row in told)
    assert all(row["kind"] == ("price" if behind[row["id"]].startswith("ties") else "slo") for row in told)


def test_support_today_quotes_the_newest_neuron_chip() -> None:
    for asked in (Request(model="deepseek-v3"), Request(model="llama-3.3-70b", regions=("cn-north-1",))):
        signals = advise(asked).gpu_or_neuron["signals"]
        (why,) = [one["why"] for one in signals if one["signal"] == "support today"]
        assert "trn2" in why
        assert "inf1" not in why


def test_the_flow_for_language_models_does_not_bind_images() -> None:
    advice = advise(Request(model="stable-diffusion-xl", strict_guide=True))
    assert advice.options
    assert "strict-flow" not in {row.rule for row in advice.rejected}
