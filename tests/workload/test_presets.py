from __future__ import annotations

from pathlib import Path

import pytest

from chipwise.errors import InputError, UnknownNameError
from chipwise.workload import goals, load_preset, parse_goals, presets, read_lengths

NAMES = {
    "chat", "rag", "code", "agent", "summarise", "batch", "embed", "classify", "rerank", "vision", "diffusion",
    "transcribe", "tts", "recommend", "tabular", "multi-serving", "pretrain", "finetune", "lora", "qlora", "dpo",
    "rlhf", "grpo",
}  # fmt: skip


def test_every_preset_of_the_contract_is_there() -> None:
    assert {preset.name for preset in presets()} == NAMES


def test_every_value_says_why_and_where() -> None:
    for preset in presets():
        for key, value in preset.values.items():
            assert value.why, (preset.name, key)
            assert value.source, (preset.name, key)
            assert value.where, (preset.name, key)
            assert value.kind in {"policy", "derived", "assumed"}


def test_chat_has_the_bars_of_the_grade_good() -> None:
    chat = load_preset("chat")
    assert (chat.number("ttft_p99_s"), chat.number("tpot_p99_s")) == (1.0, 0.06)
    assert chat.text("goal") == "latency,cost"


def test_serving_presets_have_lengths_that_fit_their_context() -> None:
    for preset in presets():
        if preset.kind == "serving":
            isl, osl, context = (preset.number(key) for key in ("isl", "osl", "context"))
            assert isl is not None
            assert osl is not None
            assert context is not None
            assert isl + osl <= context


def test_every_preset_has_a_goal_of_its_kind() -> None:
    for preset in presets():
        goal = preset.text("goal")
        assert goal is not None
        assert parse_goals(goal, preset.kind)


def test_every_class_of_model_has_one_default() -> None:
    defaults = [word for preset in presets() for word in (preset.text("default_for") or "").split()]
    assert len(defaults) == len(set(defaults))
    assert set(defaults) == {
        "dense-llm", "moe-llm", "vision-language", "vision", "diffusion", "cnn", "audio", "encoder", "recommender",
        "tabular",
    }  # fmt: skip


def test_the_lengths_of_the_traces_are_those_of_the_files(shared: Path) -> None:
    for name, preset in (
        ("AzureLLMInferenceTrace_conv.csv", "chat"),
        ("AzureLLMInferenceTrace_code.csv", "code"),
        ("vidur_arxiv_summarization_stats_llama2_tokenizer_filtered_v2.csv", "summarise"),
        ("mooncake_synthetic_trace.jsonl", "agent"),
    ):
        table = read_lengths(shared / "traces" / name)
        said = load_preset(preset)
        assert (table.mean_isl, table.mean_osl) == (said.number("isl"), said.number("osl"))


def test_goals_of_the_contract() -> None:
    assert [goal.name for goal in goals()] == [
        "latency", "quality", "concurrency", "cost", "time-to-train", "training-cost",
    ]  # fmt: skip
    assert {goal.name: goal.bar for goal in goals()}["time-to-train"] == "deadline"


def test_one_or_two_goals() -> None:
    assert [goal.name for goal in parse_goals("cost", "serving")] == ["cost"]
    assert [goal.name for goal in parse_goals(" Latency , cost ", "serving")] == ["latency", "cost"]
    assert [goal.name for goal in parse_goals("accuracy,price", "other")] == ["quality", "cost"]


@pytest.mark.parametrize("text", ["latency,cost,quality", "cost,cost", "", ","])
def test_three_goals_or_one_twice_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_goals(text, "serving")


def test_a_goal_of_the_other_kind_is_refused() -> None:
    with pytest.raises(InputError, match="does not go with training") as caught:
        parse_goals("latency", "training")
    assert "time-to-train" in caught.value.fix
    with pytest.raises(InputError, match="inference"):
        parse_goals("training-cost", "serving")


def test_unknown_names_are_refused_with_near_ones() -> None:
    with pytest.raises(UnknownNameError) as preset:
        load_preset("chatt")
    assert "chat" in preset.value.fix
    with pytest.raises(UnknownNameError) as goal:
        parse_goals("latensy", "serving")
    assert "latency" in goal.value.fix
