"""Prompts found in the prefix cache: the search counts them as the option that it gives does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise import Request, advise
from chipwise.advisor import estimate
from chipwise.advisor.request import EngineRequest, EstimateRequest, SplitRequest

RAG = Request(model="llama-3.3-70b", purpose="rag", rate_per_s=12.0, only=("p5.48xlarge",))


def test_prompts_that_are_cached_take_less_of_an_instance() -> None:
    """12 prompts of 4,096 tokens a second are 49,000 tokens to prefill; of them 4,900 are new where 0.9 is cached."""
    whole = advise(RAG).options[0]
    cached = advise(replace(RAG, prefix_hit_fraction=0.9)).options[0]
    assert (whole.instances, cached.instances) == (3, 2)
    assert cached.performance["serving"]["ttft_s"].mid < whole.performance["serving"]["ttft_s"].mid / 3


def test_an_option_is_as_fast_as_the_search_and_the_estimate_say() -> None:
    option = advise(replace(RAG, prefix_hit_fraction=0.9)).options[0]
    again = estimate(
        EstimateRequest(
            model=RAG.model,
            instance=option.instance,
            instances=option.instances,
            replicas=option.replicas,
            split=SplitRequest(tp=option.parallelism.tp),
            engine=EngineRequest(
                precision=option.precision.weights,
                kv_precision=option.precision.kv,
                max_num_seqs=option.settings["max_num_seqs"],
                prefix_hit_fraction=0.9,
            ),
            isl_tokens=4096,
            osl_tokens=512,
            context_tokens=16384,
            rate_per_s=12.0,
        )
    )["serving"]
    assert option.performance["serving"]["tpot_s"].mid == pytest.approx(again["tpot_s"].mid, rel=0.02)
    assert option.performance["serving"]["ttft_s"].mid == pytest.approx(again["ttft_s"].mid, rel=0.02)
