"""Recurrent states that an engine keeps in a part of its pool of their own, as SGLang does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from chipwise.memory import (
    ServingMemoryInput,
    cache_kinds,
    cache_layout,
    memory_profile,
    request_bytes,
    size_pool,
    size_serving,
)
from chipwise.memory.cache import CacheLayout, pool_tokens, state_limit, usable_bytes
from chipwise.model import ModelSpec
from chipwise.parallelism import Split, shard

Ask = Callable[..., ServingMemoryInput]


def laid(spec: ModelSpec, engine: str, version: str | None = None, drafts: int = 0) -> CacheLayout:
    profile = memory_profile(engine, version)
    kinds = cache_kinds(shard(spec, Split()).layers, element_bytes=2.0, profile=profile)
    return cache_layout(kinds, profile=profile, chunk_tokens=8192, draft_tokens=drafts)


def sglang(spec: ModelSpec, version: str = "0.5.16", drafts: int = 0) -> CacheLayout:
    return laid(spec, "sglang", version, drafts)


def test_sglang_sets_nine_nineteenths_of_the_pool_aside_for_states(hybrid: ModelSpec) -> None:
    """Of 19 GB states take 9: 139 of 64,389,120 bytes, five a request: 27 requests; 10 GB hold 488,281 tokens."""
    layout = sglang(hybrid)
    assert layout.states is not None
    assert layout.states.size_bytes == 30 * 2_146_304
    assert state_limit(layout, pool_bytes=19e9) == 139 // 5
    assert pool_tokens(layout, pool_bytes=19e9, context_tokens=9216, per_group=True) == 488_281
    assert usable_bytes(layout, pool_bytes=19e9) == pytest.approx(10e9 + 27 * 64_389_120)


@pytest.mark.parametrize(
    ("context", "takes"), [(9216, 5 * 64_389_120 * 19 / 9), (32768, 32768 * 20_480 * 19 / 10)], ids=["short", "long"]
)
def test_a_request_takes_what_it_takes_of_the_fuller_part(hybrid: ModelSpec, context: int, takes: float) -> None:
    layout = sglang(hybrid)
    assert request_bytes(layout, context_tokens=context) == pytest.approx(takes)


@pytest.mark.parametrize(("version", "states"), [("0.5.4", 3), ("0.5.14", 3), ("0.5.15", 5)])
def test_states_of_a_request_by_version(hybrid: ModelSpec, version: str, states: int) -> None:
    """Two more where steps overlap: MAMBA_CACHE_V2_ADDITIONAL_RATIO_OVERLAP."""
    layout = sglang(hybrid, version)
    assert state_limit(layout, pool_bytes=19e9) == 139 // states


def test_speculation_keeps_a_state_a_drafted_token_in_their_part_too(hybrid: ModelSpec) -> None:
    layout = sglang(hybrid, drafts=3)
    assert state_limit(layout, pool_bytes=19e9) == 139 // 8


def test_a_pool_without_room_runs_nobody(hybrid: ModelSpec) -> None:
    layout = sglang(hybrid)
    assert state_limit(layout, pool_bytes=-1e9) == 0
    assert usable_bytes(layout, pool_bytes=-1e9) == 0


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_no_part_is_set_aside_where_no_layer_or_every_layer_is_recurrent(
    hybrid: ModelSpec, llama8b: ModelSpec, engine: str
) -> None:
    pure = replace(hybrid, layers=(replace(hybrid.layers[0], indices=()),))
    for spec in (llama8b, pure, *([hybrid] if engine == "vllm" else [])):
        layout = laid(spec, engine)
        assert np.isinf(state_limit(layout, pool_bytes=19e9))
        assert usable_bytes(layout, pool_bytes=19e9) == 19e9


def test_states_bound_the_requests_of_sglang_whatever_the_context(hybrid: ModelSpec, ask: Ask) -> None:
    """Each data-parallel rank has its own: a replica of two runs twice as many."""
    one = ask(hybrid, engine="sglang", engine_version="0.5.16", context_tokens=1024)
    answer, pool = size_serving(one), size_pool(one)
    states = np.floor(np.floor(9 / 19 * answer.kv_pool_bytes / (30 * 2_146_304)) / 5)
    assert answer.state_limit == pool.state_limit == states
    assert states <= answer.max_concurrency_at_context < states + 1
    assert answer.kv_cache_tokens == np.floor(10 / 19 * answer.kv_pool_bytes / 20_480)
    assert answer.usable_pool_bytes == pytest.approx(10 / 19 * answer.kv_pool_bytes + states * 30 * 2_146_304)


def test_vllm_sets_no_limit_of_states(hybrid: ModelSpec, ask: Ask) -> None:
    answer = size_serving(ask(hybrid))
    assert np.isinf(answer.state_limit)
    assert answer.usable_pool_bytes == answer.kv_pool_bytes > 0


def test_it_is_said_where_states_and_not_the_context_bound_what_runs(hybrid: ModelSpec, ask: Ask) -> None:
    """A long request fills the tokens' part first: 131,072 tokens are 2.7 GB, its five states 0.3 GB."""
    short = ask(hybrid, engine="sglang", engine_version="0.5.16", context_tokens=1024)
    long = replace(short, context_tokens=131072)
    said = "the engine keeps 47% of its cache for recurrent states, 5 a request: they bound what runs at once"
    assert said in size_serving(short).warnings
    assert said not in size_serving(long).warnings
