"""Long contexts, hot experts, many nodes and the models of RLHF: each answer says what they do, in figures."""

from __future__ import annotations

import dataclasses
import re

import pytest

from chipwise import Request, advise
from chipwise.decide import Option
from chipwise.perf.parameters import parameters_for

LONG = Request(model="llama-3.1-8b", context_tokens=131072, only=("g6e.xlarge",))
EXPERTS = Request(model="deepseek-v3", purpose="chat", users=512, only=("p5e.48xlarge",))
PRETRAIN = Request(
    model="mixtral-8x7b", purpose="pretrain", tokens=1e12, deadline_s=30 * 86400.0, only=("p5.48xlarge",)
)
CACHE_GIB = 32 * 2 * 32 * 8 * 128 * 2 * 131072 / 2**30
"""32 requests: keys and values of 8 heads of 128 in 32 layers at two bytes over the whole context."""


def first(request: Request) -> Option:
    return advise(request).options[0]


def said(texts: tuple[str, ...], words: str) -> str:
    return next(one for one in texts if words in one)


def test_a_context_that_no_prompt_of_the_load_fills_is_a_risk_with_its_seconds_and_bytes() -> None:
    risks = first(LONG).risks
    assert "for its first token even alone (1.00 s asked)" in said(risks, "a prompt that fills the context of 131,072")
    assert f"{CACHE_GIB:.0f} GiB a chip, 34.2 times the weights" in said(risks, "were all 32 in flight")


def test_a_context_that_does_no_harm_is_no_risk() -> None:
    risks = first(dataclasses.replace(LONG, context_tokens=6000, ttft_p99_s=10.0, users=2)).risks
    assert not [risk for risk in risks if "the context of" in risk]


def test_hot_experts_are_a_risk_where_ranks_have_experts_of_their_own() -> None:
    option = first(EXPERTS)
    assert option.parallelism.ep > 1
    words = said(option.risks, f"fullest of {option.parallelism.ep} ranks")
    share = re.search(r"at ([\d.]+) times its share \(fitted\)", words)
    assert share is not None
    fitted = parameters_for(chip=option.chip, generation="hopper", engine=option.engine).expert_imbalance
    assert float(share.group(1)) == pytest.approx(float(fitted), abs=0.005)
    dense = first(dataclasses.replace(EXPERTS, model="llama-3.1-8b"))
    assert not [risk for risk in dense.risks if "expert" in risk]


@pytest.fixture(scope="module")
def pretrain() -> Option:
    return first(PRETRAIN)


def test_training_says_what_hot_experts_cost() -> None:
    option = first(Request(model="deepseek-v3", purpose="pretrain", tokens=1e12))
    assert option.parallelism.ep > 1
    assert "times its share (fitted)" in said(option.risks, "expert skew")


def test_what_a_run_on_many_nodes_needs_has_its_seconds(pretrain: Option) -> None:
    found = {check.feature: check for check in pretrain.infrastructure}
    assert pretrain.instances > 1
    for feature in ("efa", "gpudirect-rdma", "gds"):
        assert found[feature].need in {"required", "recommended"}
        assert found[feature].time is not None
        assert str(found[feature].time) in found[feature].effect
    assert "by GDS" in str(found["gds"].time)
    assert found["mig"].time is None


@pytest.mark.parametrize(
    ("purpose", "words"),
    [
        ("rlhf", "ppo trains actor and critic and reads reference and reward"),
        ("dpo", "dpo trains actor and reads reference"),
    ],
)
def test_preference_methods_say_who_else_is_held(purpose: str, words: str) -> None:
    option = first(Request(model="llama-3.1-8b", purpose=purpose, only=("p5.48xlarge",)))
    assert "GiB of each" in said(option.reasons, words)
