"""`estimate` answers for fleets that exist and models that fit, by the field's definitions."""

from __future__ import annotations

import dataclasses

import pytest

from chipwise import EngineRequest, EstimateRequest, Request, SplitRequest, advise, estimate
from chipwise.errors import InputError

FLEET = EstimateRequest(
    model="llama-3.3-70b",
    instance="p5.48xlarge",
    split=SplitRequest(tp=8),
    isl_tokens=1000,
    osl_tokens=100,
    concurrency=8,
    replicas=3,
)


def test_a_fleet_holds_its_replicas_or_is_refused() -> None:
    assert estimate(FLEET)["config"]["instances"] == 3
    with pytest.raises(InputError, match="2 instances hold 2 replicas of 8 devices") as told:
        estimate(dataclasses.replace(FLEET, instances=2))
    assert told.value.fix == "--instances 3"


def test_no_prediction_is_printed_of_what_does_not_fit() -> None:
    answer = estimate(dataclasses.replace(FLEET, instance="g6e.xlarge", split=SplitRequest(), replicas=None))
    assert answer["feasible"] is False
    assert answer["serving"] is None
    assert answer["memory"]["shortfall_bytes"] > 0


def test_a_request_of_n_tokens_takes_n_less_one_steps_after_its_first() -> None:
    serving = estimate(FLEET)["serving"]
    steps = (serving["e2e_s"].mid - serving["ttft_s"].mid) / serving["tpot_s"].mid
    assert steps == pytest.approx(99.0)


def test_what_does_not_fit_at_once_queues_and_is_not_refused() -> None:
    """The engine runs what its cache holds; the other clients wait, which shows in TTFT and not as a refusal."""
    many = estimate(dataclasses.replace(FLEET, replicas=1, concurrency=5000))
    few = estimate(dataclasses.replace(FLEET, replicas=1))
    assert many["feasible"] is True
    assert many["serving"]["batch"].mid < 5000
    assert many["serving"]["ttft_s"].mid > 10.0 * few["serving"]["ttft_s"].mid


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1])
def test_a_share_of_the_memory_is_above_none_and_at_most_all(share: float) -> None:
    with pytest.raises(InputError, match="no share of the memory"):
        estimate(dataclasses.replace(FLEET, engine=dataclasses.replace(FLEET.engine, utilization=share)))


def test_sglang_runs_as_many_requests_of_a_hybrid_model_as_it_has_states_for() -> None:
    """Its cookbook measures 39.3 ms a token of Qwen3.6-27B on one H200 with 1,024 clients of 8,192 + 1,024 tokens.

    Nine nineteenths of what 0.8 of the device leaves beside 51 GiB of weights are 39 requests' states of 154 MB, five
    times each. Were the pool one, 104 would run, at 74 ms.
    """
    asked = EstimateRequest(
        model="qwen3.5-27b",
        chip="h200-sxm",
        engine=EngineRequest(engine="sglang", version="0.5.16", utilization=0.8),
        isl_tokens=8192,
        osl_tokens=1024,
        concurrency=1024,
    )
    serving = estimate(asked)["serving"]
    assert serving["batch"].mid <= 39
    assert serving["tpot_s"].mid == pytest.approx(0.0393, rel=0.3)


def test_a_plan_seats_no_more_requests_than_sglang_has_states_for() -> None:
    asked = Request(model="qwen3.5-27b", purpose="batch", engine="sglang", only=("p5en.48xlarge",))
    for option in advise(asked).options:
        assert option.performance["serving"]["batch"].mid <= option.memory["max_concurrency_at_context"]
