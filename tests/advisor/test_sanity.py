"""Orders of magnitude that the guide gives by hand, and that every prediction must keep."""

from __future__ import annotations

import pytest

from chipwise import (
    EstimateRequest,
    Request,
    SizeRequest,
    SplitRequest,
    TrainingRequest,
    advise,
    estimate,
    load_catalog,
    load_model,
    size,
)
from chipwise.decide import Option


def first(model: str, purpose: str) -> Option:
    return advise(Request(model=model, purpose=purpose)).options[0]


def test_pretraining_takes_a_hundred_times_the_gpus_of_adapters() -> None:
    whole, adapters = first("llama-3.3-70b", "pretrain"), first("llama-3.3-70b", "lora")
    assert whole.chips_used >= 100 * adapters.chips_used


@pytest.mark.parametrize("model", ["llama-3.1-8b", "llama-3.3-70b"])
def test_reinforcement_takes_4_to_32_gpus(model: str) -> None:
    assert 4 <= first(model, "rlhf").chips_used <= 32


@pytest.mark.parametrize("model", ["llama-3.1-8b", "llama-3.3-70b"])
def test_grpo_without_critic_and_reward_takes_no_fewer_gpus_than_hold_its_states(model: str) -> None:
    """18 bytes a parameter: 2 weights, 2 gradients, 12 of AdamW in fp32 with its master, 2 of a frozen reference."""
    option = first(model, "grpo")
    memory_bytes = load_catalog().chips[option.chip].memory_bytes or 0
    assert 18 * load_model(model).params_total <= option.chips_used * memory_bytes
    assert 1 < option.chips_used <= 32


def test_four_nodes_for_two_weeks_are_sixteen_for_three_and_a_half_days() -> None:
    setup = TrainingRequest(method="full-ft", seq_len=4096, global_batch=1024)
    rates = {
        nodes: estimate(
            EstimateRequest(model="llama-3.3-70b", instance="p5.48xlarge", instances=nodes, training=setup)
        )["training"]["tokens_per_s"].mid
        for nodes in (4, 16)
    }
    assert rates[4] * 14.0 == pytest.approx(rates[16] * 3.5, rel=0.05)


def test_the_cache_of_64_long_requests_outweighs_the_weights() -> None:
    asked = SizeRequest(
        model="llama-3.3-70b", instance="p5en.48xlarge", context_tokens=8192, concurrency=64, split=SplitRequest(tp=8)
    )
    per_chip = size(asked)["per_chip"]
    assert per_chip["cache_bytes"] > per_chip["weights_bytes"]
    assert per_chip["cache_bytes"] * 8 == pytest.approx(171.8e9, rel=0.001)


def _prompt_s(instance: str, tp: int) -> float:
    asked = EstimateRequest(
        model="llama-3.1-8b", instance=instance, isl_tokens=2048, osl_tokens=128, concurrency=1, replicas=1,
        split=SplitRequest(tp=tp),
    )  # fmt: skip
    return float(estimate(asked)["serving"]["isolated"]["ttft_s"].mid)


def test_four_gpus_over_pcie_slow_a_prompt_that_nvlink_speeds_up() -> None:
    over_pcie = _prompt_s("g6e.48xlarge", 4) / _prompt_s("g6e.48xlarge", 1)
    over_nvlink = _prompt_s("p5.48xlarge", 4) / _prompt_s("p5.48xlarge", 1)
    assert over_pcie > 1.0
    assert over_nvlink < 0.75


def test_a_plan_over_pcie_says_what_the_link_costs() -> None:
    option = advise(Request(model="llama-3.3-70b", purpose="chat", only=("g7e.12xlarge",))).options[0]
    assert option.parallelism.tp > 1
    (against,) = option.discouraged_by
    assert "nvlink" in against.rule
    assert "of a decode step" in against.penalty
