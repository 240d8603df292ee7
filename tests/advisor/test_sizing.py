"""How many: a seat for what runs, final = max(memory, throughput) x headroom, room below saturation, no false floor."""

from __future__ import annotations

import dataclasses
import math

import pytest

from chipwise import Request, advise
from chipwise.decide import Advice, Option

QUESTIONS = {
    "closed": Request(model="gpt-oss-120b", users=100, goal="cost"),
    "rate": Request(model="llama-3.1-8b", rate_per_s=50.0, isl_tokens=2000, osl_tokens=200, goal="cost"),
    "throughput": Request(model="llama-3.1-8b", throughput_tokens_per_s=20000.0, goal="cost"),
    "headroom": Request(model="llama-3.1-8b", users=200, ha_factor=1.5, goal="cost"),
}


@pytest.fixture(scope="module", params=QUESTIONS)
def asked(request: pytest.FixtureRequest) -> tuple[Request, Advice]:
    """A question with its answer."""
    question = QUESTIONS[request.param]
    return question, advise(question)


def _batch(option: Option) -> float:
    serving = option.performance["serving"]
    return float(serving["batch"].mid)


def test_the_engine_has_a_seat_for_every_sequence_that_is_predicted_to_run(asked: tuple[Request, Advice]) -> None:
    question, advice = asked
    assert advice.options
    for option in advice.options:
        seats = option.settings["max_num_seqs"] * option.parallelism.dp
        assert seats >= math.floor(_batch(option))
        if question.users and question.ha_factor is None:
            assert seats * option.replicas >= question.users


def test_the_number_of_instances_is_the_larger_of_both_times_the_headroom(asked: tuple[Request, Advice]) -> None:
    for option in asked[1].options:
        sizing = option.sizing
        both = max(sizing.instances_by_memory, sizing.instances_by_throughput)
        rented = sum(pool["instances"] for pool in option.pools) if option.pools else option.instances
        assert rented >= both
        assert rented == pytest.approx(both * sizing.ha_factor, abs=both)
        assert sizing.binding == ("memory" if sizing.instances_by_memory == both else "latency")


def test_a_rate_leaves_a_fifth_of_the_saturation_rate() -> None:
    for option in advise(QUESTIONS["rate"]).options:
        assert option.performance["serving"]["saturation_rate"].mid * 0.8 >= 50.0


def test_a_throughput_with_latency_bars_is_a_rate_of_requests_that_keeps_them() -> None:
    advice = advise(QUESTIONS["throughput"])
    for option in advice.options:
        assert option.latency is not None
        assert option.latency.ttft_s.p99 is not None
        assert option.latency.ttft_s.p99 <= advice.workload["ttft_p99_s"]["value"]
        assert option.performance["serving"]["output_tokens_per_s"].mid == pytest.approx(20000.0, rel=0.01)
    assert {"p5.48xlarge"} <= {row.instance for row in advice.also_feasible}


@pytest.mark.parametrize("model", ["deepseek-v3", "gpt-oss-120b"])
def test_what_a_checkpoint_is_stored_in_loses_nothing(model: str) -> None:
    """The quality goal's floor of 16 bits speaks of quantising, not of a checkpoint that has fewer bits."""
    advice = advise(Request(model=model, goal="quality"))
    assert advice.options
    assert advice.options[0].precision.quality["loss"] == "none (by definition)"


def test_a_stated_floor_above_the_checkpoint_refuses_by_precision() -> None:
    advice = advise(Request(model="deepseek-v3", min_precision="bf16"))
    assert not advice.options
    refused = {row.instance: row for row in advice.rejected}["p5e.48xlarge"]
    assert refused.rule == "precision"
    assert "fp8-block" in refused.reason


def test_concurrency_is_what_one_instance_carries_not_the_largest_fleet() -> None:
    advice = advise(Request(model="llama-3.3-70b", goal="concurrency", users=1000, ttft_p99_s=2.0))
    rented = {one.instance: one.instances for one in advice.options}
    rented |= {row.instance: row.instances for row in advice.also_feasible}
    assert rented[advice.options[0].instance] == min(rented.values())


def test_a_dense_16_bit_model_is_offered_mxfp4_only_where_a_stack_takes_it() -> None:
    advice = advise(Request(model="llama-3.3-70b", purpose="batch", goal="cost"))
    offered = {(row.instance, row.precision) for row in advice.also_feasible}
    offered |= {(one.instance, one.precision.weights) for one in advice.options}
    assert not [name for name, precision in offered if precision == "mxfp4" and not name.startswith("trn3")]


def test_ultraservers_are_rented_whole() -> None:
    """P6e is sold in UltraServers of 9 or 18 instances (4 GPUs each), and the whole is paid for."""
    advice = advise(Request(model="deepseek-v3", regions=("us-east-1-dfw",), users=200))
    (option,) = [one for one in advice.options if one.instance == "p6e-gb200.36xlarge"]
    assert option.instances == 9
    assert option.chips == 36
    assert option.cost.usd_per_hour is not None
    assert option.cost.usd_per_hour.mid == pytest.approx(380.952)


def test_under_the_latency_goal_the_engine_runs_as_many_at_once_as_keep_the_bars() -> None:
    question = Request(model="llama-3.1-8b", purpose="chat", users=64, goal="latency,cost", only=("g6e.xlarge",))
    option = advise(question).options[0]
    seats = option.settings["max_num_seqs"] * option.replicas
    assert seats > 64
    full = advise(dataclasses.replace(question, users=seats)).options[0]
    beyond = advise(dataclasses.replace(question, users=math.ceil(seats * 1.2))).options[0]
    assert full.instances == option.instances
    assert beyond.instances > option.instances


def test_a_stable_load_speaks_for_neuron_and_for_a_commitment() -> None:
    question = Request(model="llama-3.1-8b", users=8, only=("g6e.xlarge",), stability="steady")
    steady, bursty = advise(question), advise(dataclasses.replace(question, stability=None))
    assert ("stability", "neuron") in {(one["signal"], one["points_to"]) for one in steady.gpu_or_neuron["signals"]}
    assert "stability" not in {one["signal"] for one in bursty.gpu_or_neuron["signals"]}
    assert "advised for steady use" in _why_bought(steady, "savings-plan")
    assert "advised for bursty use" in _why_bought(bursty, "on-demand")


def _why_bought(advice: Advice, option: str) -> str:
    return next(str(one.why) for one in advice.options[0].cost.purchase if one.option == option)
