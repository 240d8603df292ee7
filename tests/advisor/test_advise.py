"""The whole answer: every size once, no bare cost, replicas times devices, bars met by what is recommended."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chipwise import Request, advise, load_catalog
from chipwise.decide import Advice
from chipwise.errors import ChipwiseError, InputError, KnowledgeError, UnknownNameError
from chipwise.report.json import as_json

CHAT = Request(
    model="llama-3.3-70b",
    purpose="chat",
    users=64,
    context_tokens=8192,
    ttft_p99_s=1.0,
    tpot_p99_s=0.04,
    goal="latency,cost",
    regions=("us",),
)


@pytest.fixture(scope="module")
def chat() -> Advice:
    """The question of the demo."""
    return advise(CHAT)


def sizes(advice: Advice) -> Counter[str]:
    """How often each size stands in the five lists; within the options once."""
    found = Counter({option.instance for option in advice.options})
    for rows in (advice.also_feasible, advice.rejected, advice.not_judged, advice.excluded):
        found.update(row.instance for row in rows)
    return found


def assert_whole(advice: Advice) -> None:
    """Every size of the catalog stands exactly once."""
    counted = sizes(advice)
    assert set(counted) == set(load_catalog().instances)
    assert not [name for name, count in counted.items() if count > 1]


def test_the_demo_question_has_options_that_differ(chat: Advice) -> None:
    assert 1 <= len(chat.options) <= 3
    kinds = {(option.chip, option.precision.weights) for option in chat.options}
    assert len(kinds) == len(chat.options)
    assert [option.rank for option in chat.options] == list(range(1, len(chat.options) + 1))


def test_every_size_stands_once(chat: Advice) -> None:
    assert_whole(chat)


def test_options_meet_the_bars_they_were_searched_for(chat: Advice) -> None:
    for option in chat.options:
        assert option.latency is not None
        assert option.latency.ttft_s.p99 is not None
        assert option.latency.tpot_s.p99 is not None
        assert option.latency.ttft_s.p99 <= 1.0 * 1.001
        assert option.latency.tpot_s.p99 <= 0.04 * 1.001


def test_chips_are_instances_times_their_chips_and_replicas_fill_them(chat: Advice) -> None:
    catalog = load_catalog()
    for option in chat.options:
        instance = catalog.instance(option.instance)
        split = option.parallelism
        assert option.chips == option.instances * (instance.chips or 0)
        assert option.devices_per_replica == split.tp * split.pp * split.dp * split.cp
        cores = catalog.chip(option.chip).cores
        assert option.chips_used == -(-option.replicas * option.devices_per_replica // cores)
        assert option.chips_used <= option.chips


def test_memory_terms_add_up_in_every_option(chat: Advice) -> None:
    for option in chat.options:
        per_chip = dict(option.memory["per_chip"])
        capacity, free = per_chip.pop("capacity_bytes"), per_chip.pop("free_bytes")
        assert sum(per_chip.values()) + free == pytest.approx(capacity + option.memory["shortfall_bytes"], abs=16)
        assert option.memory["fits"]


def costs(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """Every leaf under a key that names USD."""
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in costs(inner, f"{path}.{key}")]
    if isinstance(value, list):
        return [leaf for inner in value for leaf in costs(inner, path)]
    return [(path, value)] if "usd" in path else []


def test_no_cost_is_a_bare_number(chat: Advice) -> None:
    printed = as_json(chat)
    assert isinstance(printed, dict)
    for option in printed["options"]:
        for path, value in costs(option["cost"]):
            assert value is None or path.rpartition(".")[2] in {"low", "mid", "high"}, path
        assert option["cost"]["price_as_of"] or "undated" in " ".join(option["cost"]["caveats"])
        assert option["cost"]["caveats"]


def test_rejections_say_what_they_lacked(chat: Advice) -> None:
    for row in chat.rejected:
        assert row.rule
        assert row.reason
        assert row.change
        assert row.source
    slo = [row for row in chat.rejected if row.rule == "slo"]
    assert slo
    assert all(row.nearest for row in slo)
    memory = [row for row in chat.rejected if row.rule == "memory"]
    assert memory
    assert all(row.shortfall is not None and float(row.shortfall["value"]) > 0 for row in memory)


def test_retired_sizes_are_rejected_as_such(chat: Advice) -> None:
    rules = {row.instance: row.rule for row in chat.rejected}
    assert rules["p3.16xlarge"] == "retired"


def test_what_to_benchmark_starts_the_engine_and_its_load(chat: Advice) -> None:
    text = "\n".join(chat.benchmark["commands"])
    assert "--tensor-parallel-size" in text or "vllm serve" in text
    assert "bench serve" in text
    assert "P99 TTFT" in chat.benchmark["decide_by"]


@pytest.mark.parametrize("asked", ["Qwen/QwQ-32B", "Qwen/Qwen2.5-32B-Instruct", "qwen/qwq-32b"])
def test_the_checkpoint_that_was_asked_for_is_benchmarked(asked: str) -> None:
    """One description stands for three checkpoints; each is named as the hub spells it."""
    advice = advise(Request(model=asked, purpose="chat", min_precision="bf16", only=("p5.48xlarge",)))
    named = {"qwen/qwq-32b": "Qwen/QwQ-32B"}.get(asked, asked)
    lines = [line for line in advice.benchmark["commands"] if not line.startswith("#")]
    assert lines
    assert all(named in line.split() for line in lines)
    assert advice.model["checkpoint"] == named
    assert not [text for text in advice.warnings if "is taken as" in text]


def test_a_short_name_says_which_checkpoint_it_was_taken_for() -> None:
    advice = advise(Request(model="qwen2.5-32b", purpose="chat", only=("p5.48xlarge",)))
    assert advice.model["checkpoint"] == "Qwen/Qwen2.5-32B"
    (said,) = [text for text in advice.warnings if "is taken as" in text]
    assert "Qwen/Qwen2.5-32B;" in said
    assert "Qwen/QwQ-32B" in said
    assert not [text for text in advise(CHAT).warnings if "is taken as" in text]  # it has one id


def test_the_engine_is_told_the_precision_that_was_planned(chat: Advice) -> None:
    """Another precision than the checkpoint's is asked of the engine, or of a checkpoint that a remark names."""
    blocks = "\n".join(chat.benchmark["commands"]).split("# option ")[1:]
    for option, block in zip(chat.options, blocks, strict=True):
        assert "Llama-3.3-70B-Instruct" in block
        assert f"--max-num-seqs {option.settings['max_num_seqs']}" in block
        told = "--quantization=fp8" in block or f"at {option.precision.weights}:" in block
        assert told == (option.precision.weights != "bf16")


def test_a_looser_bar_never_loses_a_feasible_size(chat: Advice) -> None:
    looser = advise(dataclasses.replace(CHAT, tpot_p99_s=0.08, ttft_p99_s=3.0))
    now = {option.instance for option in looser.options} | {row.instance for row in looser.also_feasible}
    before = {option.instance for option in chat.options} | {row.instance for row in chat.also_feasible}
    assert before <= now


def test_only_and_exclude_leave_the_rest_as_excluded() -> None:
    advice = advise(dataclasses.replace(CHAT, only=("p5.48xlarge", "g6e")))
    assert_whole(advice)
    assert all(row.by == "--only" for row in advice.excluded)
    assert {option.instance for option in advice.options} <= {"p5.48xlarge"} | {
        name for name in load_catalog().instances if name.startswith("g6e.")
    }


def test_a_region_without_the_size_rejects_it() -> None:
    advice = advise(dataclasses.replace(CHAT, regions=("sa-east-1",)))
    assert_whole(advice)
    rules = {row.instance: row.rule for row in advice.rejected}
    assert rules["p4de.24xlarge"] == "region"


def test_users_price_is_used_and_named() -> None:
    advice = advise(dataclasses.replace(CHAT, prices_usd_per_hour={"p5.48xlarge": 1.0}))
    first = advice.options[0]
    assert first.instance == "p5.48xlarge"
    assert first.cost.price_kind == "user"


def test_a_budget_rejects_what_costs_more() -> None:
    advice = advise(dataclasses.replace(CHAT, budget_usd=46.0))
    assert_whole(advice)
    assert all(option.cost.usd_per_hour is None or option.cost.usd_per_hour.mid <= 46.0 for option in advice.options)
    assert "budget" in {row.rule for row in advice.rejected}


def test_a_need_rejects_what_lacks_it() -> None:
    advice = advise(dataclasses.replace(CHAT, needs=("mig",)))
    rules = {row.instance: row.rule for row in advice.rejected}
    assert rules.get("g6e.48xlarge") == "needs-mig"


def test_a_floor_of_16_bits_keeps_quantised_options_out() -> None:
    advice = advise(dataclasses.replace(CHAT, min_precision="bf16"))
    assert {option.precision.weights for option in advice.options} <= {"bf16", "fp16"}


def test_headroom_multiplies_what_is_rented() -> None:
    one = advise(dataclasses.replace(CHAT, only=("p5.48xlarge",)))
    two = advise(dataclasses.replace(CHAT, only=("p5.48xlarge",), ha_factor=2.0))
    assert two.options[0].instances == 2 * one.options[0].instances
    assert two.options[0].sizing.ha_factor == 2.0


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"model": "llama-9.9-70b"}, KnowledgeError),
        ({"users": -3}, InputError),
        ({"users": 8, "rate_per_s": 1.0}, InputError),
        ({"regions": ("us-moon-1",)}, UnknownNameError),
        ({"isl_tokens": 9000}, InputError),
        ({"goal": "beauty"}, InputError),
        ({"needs": ("wings",)}, UnknownNameError),
        ({"context_tokens": 10**9}, InputError),
    ],
)
def test_wrong_requests_say_what_why_and_fix(change: dict[str, Any], error: type[ChipwiseError]) -> None:
    with pytest.raises(error) as caught:
        advise(dataclasses.replace(CHAT, **change))
    assert caught.value.what
    assert caught.value.why
    assert caught.value.fix


MODELS = ["llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v3", "gpt-oss-20b", "mixtral-8x7b", "params:3b"]


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(
    model=st.sampled_from(MODELS),
    users=st.integers(1, 500),
    goal=st.sampled_from(["latency", "cost", "concurrency", "quality", "quality,cost", "latency,cost"]),
    tpot_p99_s=st.floats(0.005, 0.5),
    purchase=st.sampled_from(["any", "on-demand", "spot", "capacity-block"]),
    regions=st.sampled_from([(), ("us",), ("eu-west-1",), ("ap-northeast-1",)]),
)
def test_every_size_stands_once_whatever_is_asked(**asked: Any) -> None:
    assert_whole(advise(Request(purpose="chat", **asked)))
