"""What filters a training plan and what does not: bars, fleets that pay, stacks past support, 4-bit bases, Spot."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise import Request, advise, load_catalog
from chipwise.advisor import EstimateRequest, TrainingRequest, estimate
from chipwise.decide import Advice, Option
from chipwise.decide.training.runs import duration_s, time_between_stops_s
from chipwise.decide.training.scaling import parallel_efficiency_fraction
from chipwise.errors import InfeasibleError
from chipwise.perf.training_coefficients import training_coefficients
from chipwise.perf.training_operators import unpacking_s
from chipwise.report.json import as_json
from chipwise.report.plan import plan_page
from chipwise.report.text import text
from chipwise.units import show_seconds, show_usd

DAY_S = 86400.0
END_OF_SUPPORT = "support: end of support"
PRETRAIN = Request(model="llama-3.3-70b", purpose="pretrain", tokens=1e12, deadline_s=30 * DAY_S)
RLHF = Request(model="llama-3.1-8b", purpose="rlhf", goal="time-to-train")
QLORA = Request(model="llama-3.1-8b", purpose="qlora")
LORA_70B = Request(model="llama-3.3-70b", purpose="lora")
SPOT = Request(model="llama-3.1-8b", purpose="lora", purchase="spot")


@cache
def plan(model: str, purpose: str, **asked: Any) -> Advice:
    """One answer, asked once."""
    return advise(Request(model=model, purpose=purpose, **asked))


@cache
def answer(request_of: str) -> Advice:
    """One of the answers that several tests look at."""
    asked = {"pretrain": PRETRAIN, "rlhf": RLHF, "qlora": QLORA, "lora-70b": LORA_70B, "spot": SPOT}
    return advise(asked[request_of])


def kind_of(option: Option) -> str:
    """Gpu or neuron."""
    return load_catalog().instance(option.instance).kind


def ends(option: Option) -> bool:
    """Whether its stack is past its support."""
    return any(one.rule == END_OF_SUPPORT for one in option.discouraged_by)


def test_a_budget_that_nobody_asked_for_rejects_nothing() -> None:
    advice = answer("pretrain")
    assert advice.options
    assert not [row for row in advice.rejected if row.rule == "budget"]
    assert "budget_usd" not in advice.workload


def test_a_budget_of_the_user_is_a_bar() -> None:
    advice = plan("llama-3.3-70b", "pretrain", tokens=1e12, deadline_s=30 * DAY_S, budget_usd=50_000.0)
    assert not advice.options
    assert [row for row in advice.rejected if row.rule == "budget"]


@pytest.mark.parametrize(
    ("model", "params", "tokens", "days"),
    [
        ("llama-3.3-70b", 70e9, 1e12, 30),
        ("llama-3.3-70b", 70e9, 2e12, 30),
        ("llama-3.1-8b", 8e9, 15e12, 60),
        ("mistral-7b", 7.2e9, 2e12, 30),
    ],
)
def test_clusters_are_those_an_engineer_would_order(model: str, params: float, tokens: float, days: int) -> None:
    advice = plan(model, "pretrain", tokens=tokens, deadline_s=days * DAY_S)
    assert {kind_of(option) for option in advice.options} == {"gpu", "neuron"}
    for option in advice.options:
        run = option.run
        assert run is not None
        assert run.duration_s.mid <= days * DAY_S
        rate_needed = 6.0 * params * tokens / (days * DAY_S)
        per_chip = rate_needed / option.chips
        assert 15e12 < per_chip < 1300e12  # Trainium1 to Blackwell, at 15 to 50 % of their peaks
        hopper = load_catalog().chips[option.chip].architecture == "hopper"
        assert not hopper or 150e12 < per_chip < 600e12


def test_one_goal_orders_and_the_presets_deadline_does_not_filter() -> None:
    advice = plan("llama-3.1-8b", "lora", tokens=5e9, only=("g6e.xlarge",))
    (option,) = advice.options
    assert option.run is not None
    assert option.run.duration_s.mid > 3 * DAY_S
    assert not any("deadline" in reason for reason in option.reasons)


def test_the_presets_deadline_filters_where_time_comes_first_of_two_goals() -> None:
    goal = "time-to-train,training-cost"
    advice = plan("llama-3.1-8b", "lora", tokens=5e9, goal=goal, only=("g6e.xlarge", "p5.48xlarge"))
    assert [option.instance for option in advice.options] == ["p5.48xlarge"]
    (row,) = [row for row in advice.rejected if row.instance == "g6e.xlarge"]
    assert "of the preset lora" in row.reason


@pytest.mark.parametrize("goal", ["time-to-train,training-cost", "training-cost,time-to-train"])
def test_a_presets_bar_that_no_run_meets_gives_way(goal: str) -> None:
    advice = plan("llama-3.3-70b", "pretrain", tokens=60e12, goal=goal, vendor="nvidia")
    assert advice.options
    assert any("times as loose" in row.reason for row in advice.rejected if row.rule == "slo")


def test_the_page_says_that_no_option_ends_by_the_presets_deadline() -> None:
    said = "no option ends within the preset's 14.0 d: the soonest takes"
    for tokens, late in ((60e12, True), (20e9, False)):
        advice = plan("llama-3.3-70b", "pretrain", tokens=tokens, vendor="nvidia")
        assert (said in text(plan_page(as_json(advice)), width=120, color=False)) == late
    own = plan("llama-3.3-70b", "pretrain", tokens=20e9, deadline_s=90 * 86400.0, vendor="nvidia")
    assert said not in text(plan_page(as_json(own)), width=120, color=False)


def test_a_4_bit_base_is_printed_as_such() -> None:
    for option in answer("qlora").options:
        assert (option.precision.weights, option.precision.compute) == ("nf4", "bf16")
        assert option.precision.quality["loss"] != "none"
        assert "QLoRA" in (option.precision.quality["source"] or "")


def test_no_neuron_stack_is_said_to_hold_a_4_bit_base() -> None:
    advice = answer("qlora")
    kinds = load_catalog().instances
    feasible = [option.instance for option in advice.options] + [row.instance for row in advice.also_feasible]
    assert all(kinds[name].kind == "gpu" for name in feasible)
    (row,) = [row for row in advice.rejected if row.instance == "trn2.3xlarge"]
    assert row.rule == "precision"
    assert "4-bit" in row.reason
    assert "neuron" in (row.source or "")
    with pytest.raises(InfeasibleError):
        estimate(
            EstimateRequest(model="llama-3.1-8b", instance="trn2.3xlarge", training=TrainingRequest(method="qlora"))
        )


def test_unpacking_a_4_bit_base_makes_its_step_longer() -> None:
    steps, terms = {}, {}
    for method in ("lora", "qlora"):
        asked = TrainingRequest(method=method, seq_len=1024, micro_batch=1, recompute="none", global_batch=8)
        found = estimate(EstimateRequest(model="llama-3.1-8b", instance="p4d.24xlarge", training=asked))
        steps[method] = found["training"]["step_s"].mid
        terms[method] = {term["op"]: term["seconds"] for term in found["training"]["terms"]}
    assert terms["lora"]["unpacking"] == 0
    assert sum(terms["qlora"].values()) == pytest.approx(steps["qlora"])
    assert steps["qlora"] - steps["lora"] == pytest.approx(terms["qlora"]["unpacking"])
    assert terms["qlora"]["elementwise"] == pytest.approx(terms["lora"]["elementwise"])
    assert 1.2 < steps["qlora"] / steps["lora"] < 3.0
    reached = training_coefficients(generation="ampere", precision="bf16", trainer="hf").dequantise_fraction
    assert terms["qlora"]["unpacking"] == pytest.approx(2 * 7.0e9 * 2.56 / (1555e9 * reached), rel=0.05)


def test_recomputing_all_unpacks_once_more() -> None:
    seconds = {}
    for mode in ("selective", "full"):
        asked = TrainingRequest(method="qlora", seq_len=1024, micro_batch=1, recompute=mode, global_batch=8)
        found = estimate(EstimateRequest(model="llama-3.1-8b", instance="p4d.24xlarge", training=asked))
        (seconds[mode],) = [t["seconds"] for t in found["training"]["terms"] if t["op"] == "unpacking"]
    assert seconds["full"] == pytest.approx(1.5 * seconds["selective"])


@given(params=st.floats(1e6, 1e12), more=st.floats(1.0, 8.0))
def test_unpacking_is_linear_in_what_is_unpacked(params: float, more: float) -> None:
    def seconds(many: float) -> float:
        return float(unpacking_s(params=many, passes=2, packed_bytes=0.5, wide_bytes=2.0, bytes_per_s=1e12))

    assert seconds(params * more) == pytest.approx(more * seconds(params))


@pytest.mark.parametrize("purpose", ["rlhf", "lora"])
def test_the_fastest_run_is_no_fleet_that_does_not_pay(purpose: str) -> None:
    advice = plan("llama-3.1-8b", purpose, goal="time-to-train")
    for option in advice.options:
        assert option.instances <= 16
        fewest = option.sizing.instances_by_memory
        if option.instances > fewest:
            alone = plan("llama-3.1-8b", purpose, goal="training-cost", only=(option.instance,)).options[0]
            assert alone.run is not None
            assert option.run is not None
            efficiency = parallel_efficiency_fraction(
                smallest_s=alone.run.duration_s.mid, smallest=alone.instances,
                larger_s=option.run.duration_s.mid, larger=option.instances,
            )  # fmt: skip
            assert efficiency >= 0.4


def test_a_deadline_of_the_user_buys_the_smallest_fleet_that_meets_it_whether_it_pays_or_not() -> None:
    only = ("p6-b200.48xlarge",)
    free = plan("llama-3.1-8b", "rlhf", goal="time-to-train", only=only).options[0]
    hurried = plan("llama-3.1-8b", "rlhf", goal="time-to-train", only=only, deadline_s=3000.0).options[0]
    assert free.run is not None
    assert hurried.run is not None
    assert free.run.duration_s.mid > 3000.0 >= hurried.run.duration_s.mid
    assert hurried.instances > free.instances


@given(smallest_s=st.floats(1.0, 1e7), smallest=st.integers(1, 64), times=st.integers(1, 32))
def test_perfect_scaling_keeps_all_of_the_efficiency(smallest_s: float, smallest: int, times: int) -> None:
    found = parallel_efficiency_fraction(
        smallest_s=smallest_s, smallest=smallest, larger_s=smallest_s / times, larger=smallest * times
    )
    assert found == pytest.approx(1.0)


def test_a_stack_past_its_support_stands_behind_every_supported_one() -> None:
    options = plan("mistral-7b", "lora").options
    assert [ends(option) for option in options] == sorted(ends(option) for option in options)
    assert ends(options[-1])
    assert not ends(options[0])
    dearer = options[-1].cost.usd_per_run
    assert dearer is not None
    first = answer("lora-70b").options[0]
    assert not ends(first)
    assert kind_of(first) == "gpu" or first.chip == "trainium1"


def test_among_stacks_past_support_the_goal_orders() -> None:
    advice = plan("llama-3.3-70b", "lora", only=("trn2.3xlarge", "trn2.48xlarge"))
    first = advice.options[0]
    assert ends(first)
    assert not any("inf" in row.behind_because for row in advice.also_feasible)


@pytest.mark.parametrize("which", ["lora-70b", "qlora", "spot", "pretrain", "rlhf"])
def test_no_checkpoint_is_due_after_the_run(which: str) -> None:
    for option in answer(which).options:
        assert option.run is not None
        assert option.run.checkpoint_interval_s is not None
        assert option.run.checkpoint_interval_s <= option.run.duration_s.mid


@pytest.mark.parametrize("which", ["lora-70b", "qlora", "spot", "pretrain", "rlhf"])
def test_duration_reasons_and_cost_agree(which: str) -> None:
    for option in answer(which).options:
        run, cost = option.run, option.cost
        assert run is not None
        assert cost.usd_per_hour is not None
        assert cost.usd_per_run is not None
        hours = run.duration_s.mid / 3600.0
        assert cost.usd_per_run.mid == pytest.approx(hours * cost.usd_per_hour.mid)
        assert run.chip_hours.mid == pytest.approx(hours * option.chips)
        assert show_seconds(run.duration_s.mid) in option.reasons[0]
        assert any(show_usd(cost.usd_per_run.mid) in reason for reason in option.reasons)
        training = option.performance["training"]
        assert run.duration_s.mid > run.tokens / training["tokens_per_s"].mid


def test_interruptions_cost_on_spot_and_only_there() -> None:
    for option in answer("spot").options:
        assert option.run is not None
        assert option.cost.usd_per_run is not None
        lost = option.run.interruption_cost_usd
        assert lost is not None
        assert 0.0 <= lost.low < lost.mid < lost.high < option.cost.usd_per_run.mid
    for option in answer("lora-70b").options:
        assert option.run is not None
        assert option.run.interruption_cost_usd is None


def test_spot_stops_a_long_run_more_often_than_failures_alone() -> None:
    asked: dict[str, Any] = {"tokens": 1e10, "only": ("p4d.24xlarge",)}
    calm = plan("llama-3.1-8b", "lora", purchase="on-demand", **asked).options[0]
    spot = plan("llama-3.1-8b", "lora", purchase="spot", **asked).options[0]
    assert calm.run is not None
    assert spot.run is not None
    assert calm.run.checkpoint_interval_s is not None
    assert spot.run.checkpoint_interval_s is not None
    assert spot.run.checkpoint_interval_s < calm.run.checkpoint_interval_s
    assert spot.run.duration_s.mid > calm.run.duration_s.mid


def test_a_start_is_paid_and_counted() -> None:
    assert duration_s(work_s=900.0, goodput_fraction=0.9, start_s=500.0, finish_s=100.0) == 1600.0


@given(mtbf_s=st.floats(1e3, 1e9), rate=st.floats(0.0, 1e-3))
def test_a_second_cause_of_stops_never_makes_them_rarer(mtbf_s: float, rate: float) -> None:
    assert time_between_stops_s(mtbf_s=mtbf_s, interruptions_per_s=rate) <= mtbf_s * (1 + 1e-9)


@pytest.mark.parametrize(("model", "purpose"), [("deepseek-v3", "finetune"), ("llama-3.1-8b", "grpo")])
def test_large_experts_and_reinforcement_get_sensible_options(model: str, purpose: str) -> None:
    advice = plan(model, purpose)
    assert len(advice.options) == 3
    for option in advice.options:
        assert option.memory["fits"]
        assert option.run is not None
        assert option.run.duration_s.mid < 3 * DAY_S
        assert 0.03 < option.performance["training"]["mfu_fraction"].mid < 0.7
        assert option.instances <= 64


def batched(batch: int, **asked: Any) -> Advice:
    """A pretraining on one size with that many sequences a step."""
    one = {"tokens": 1e12, "goal": "time-to-train", "only": ("p5.48xlarge",)}
    return plan("llama-3.1-8b", "pretrain", global_batch=batch, **one, **asked)


def test_more_sequences_a_step_end_a_run_sooner() -> None:
    small, large = batched(128).options[0], batched(2048).options[0]
    assert (small.settings["global_batch"], large.settings["global_batch"]) == (128, 2048)
    assert small.run is not None
    assert large.run is not None
    assert large.run.duration_s.mid < small.run.duration_s.mid
    late = batched(128, deadline_s=large.run.duration_s.mid)
    assert not late.options
    assert any("--global-batch" in one.change for one in late.rejected)


def test_a_batch_too_small_for_a_node_is_named_as_the_reason() -> None:
    starved = plan("resnet-50", "pretrain", global_batch=4, only=("p5.48xlarge",))
    assert not starved.options
    assert any("--global-batch" in one.change for one in starved.rejected)
