"""Mistakes that memory calculators are known to make: each test holds the right figure beside the mistake."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from chipwise.catalog import load_catalog
from chipwise.memory import (
    ServingMemoryInput,
    cache_bytes_per_token,
    min_chips,
    min_split,
    request_bytes,
    size_serving,
    ways_of,
    weights_bytes,
)
from chipwise.memory.cache import cache_kinds, cache_layout
from chipwise.memory.profile import memory_profile
from chipwise.model import ModelSpec
from chipwise.parallelism import Split, shard
from chipwise.precision import with_precision

GIB = 2.0**30
Ask = Callable[..., ServingMemoryInput]


def catalogued(chip: str) -> float:
    return float(load_catalog().chips[chip].memory_bytes or 0)


# Context in tokens, requests, GB: 2 x 80 layers x 8 heads x 128 x 2 bytes, K = 1,024 (errata of the guide).
TABLE = [
    (4, 1, 1.342), (4, 16, 21.475), (4, 64, 85.899), (4, 128, 171.799),
    (8, 1, 2.684), (8, 16, 42.950), (8, 64, 171.799), (8, 128, 343.597),
    (32, 1, 10.737), (32, 16, 171.799), (32, 64, 687.195), (32, 128, 1374.390),
    (128, 1, 42.950), (128, 16, 687.195), (128, 64, 2748.779), (128, 128, 5497.558),
]  # fmt: skip


@pytest.mark.parametrize(("context_k", "requests", "gigabytes"), TABLE)
def test_the_guide_s_table_with_all_80_layers(
    llama70b: ModelSpec, ask: Ask, *, context_k: int, requests: int, gigabytes: float
) -> None:
    answer = size_serving(ask(llama70b, context_tokens=context_k * 1024, concurrency=requests))
    assert answer.budget.cache_bytes == 327680 * context_k * 1024 * requests
    assert answer.budget.cache_bytes / 1e9 == pytest.approx(gigabytes, abs=5e-4)
    of_64_layers = gigabytes * 64 / 80
    assert answer.budget.cache_bytes / 1e9 != pytest.approx(of_64_layers, rel=0.1)


def test_the_guide_s_219_gb_are_236(llama70b: ModelSpec, ask: Ask) -> None:
    """140 GB of weights, 85.9 GB of cache for 32 x 8K, 10 GB beside; four H100, not 219 / 80 = 3."""
    answer = size_serving(ask(llama70b, context_tokens=8192, concurrency=32))
    total = 2 * 70e9 + float(answer.budget.cache_bytes) + 10e9
    assert total / 1e9 == pytest.approx(235.9, abs=0.05)
    on_h100 = ask(llama70b, concurrency=32, utilization=0.9)
    assert min_split(ways_of(llama70b, on_h100)) == Split(tp=4, pp=1)
    on_h200 = replace(on_h100, capacity_bytes=load_catalog().chips["h200-sxm"].memory_bytes or 0.0)
    assert min_chips(ways_of(llama70b, on_h200)) == 2
    on_b200 = replace(on_h100, capacity_bytes=load_catalog().chips["b200"].memory_bytes or 0.0)
    assert min_chips(ways_of(llama70b, on_b200)) == 2


def test_grouped_queries_share_keys(llama70b: ModelSpec) -> None:
    found = cache_bytes_per_token(shard(llama70b, Split()), element_bytes=2.0)
    ignoring_groups = 2 * 80 * 64 * 128 * 2
    assert found == 2 * 80 * 8 * 128 * 2 == ignoring_groups / 8


def test_latents_are_not_divided_by_tp(latent: ModelSpec, ask: Ask) -> None:
    per_token = {
        tp: size_serving(ask(latent, Split(tp=tp), context_tokens=4096)).budget.cache_bytes / 4096 for tp in (1, 2, 4)
    }
    assert set(per_token.values()) == {61 * 576 * 2}


def test_blocks_of_one_device_are_not_multiplied_by_tp(llama70b: ModelSpec, ask: Ask) -> None:
    answer = size_serving(ask(llama70b, Split(tp=4)))
    of_one_device = float(answer.kv_pool_bytes) / 81920
    assert answer.kv_cache_tokens == pytest.approx(of_one_device, abs=16)
    assert answer.kv_cache_tokens != pytest.approx(4 * of_one_device, rel=0.1)


def test_windowed_layers_are_neither_dropped_nor_unbounded(windowed: ModelSpec) -> None:
    profile = memory_profile("vllm", "0.19.0")
    kinds = cache_kinds(shard(windowed, Split()).layers, element_bytes=2.0, profile=profile)
    layout = cache_layout(kinds, profile=profile, chunk_tokens=2048, draft_tokens=0)
    held = float(request_bytes(layout, context_tokens=65536))
    dropped, unbounded = 13 * 4096 * 65536, 26 * 4096 * 65536
    assert dropped < held < unbounded
    assert held - dropped == pytest.approx(13 * 4096 * (4096 + 2048), rel=0.01)


def test_all_experts_are_held_not_only_those_a_token_meets(latent: ModelSpec) -> None:
    held = weights_bytes(shard(latent, Split()))
    assert held == 2 * latent.params_total
    assert held > 10 * 2 * latent.params_active


def test_sixteen_bit_weights_of_a_four_bit_checkpoint_stay_sixteen(llama8b: ModelSpec) -> None:
    """AWQ keeps embedding and head: 5.3 GiB of Llama-3.1-8B, not 8.03e9 x 4.16 bits = 3.9 GiB."""
    held = weights_bytes(shard(with_precision(llama8b, "int4-g128"), Split())) / GIB
    assert held == pytest.approx(5.33, abs=0.02)
    assert held - llama8b.params_total * 4.15625 / 8 / GIB > 1.4


def test_the_head_is_part_of_the_model(llama8b: ModelSpec) -> None:
    headless = replace(llama8b, outer=llama8b.outer[:1])
    missing = weights_bytes(shard(llama8b, Split())) - weights_bytes(shard(headless, Split()))
    assert missing == 2 * 128256 * 4096


def test_terms_are_of_one_chip(llama70b: ModelSpec, ask: Ask) -> None:
    """The budget of a chip of four: a quarter of the weights against one capacity."""
    budget = size_serving(ask(llama70b, Split(tp=4))).budget
    assert budget.capacity_bytes == 79.19 * GIB
    assert budget.weights_bytes == pytest.approx(2 * llama70b.params_total / 4, rel=2e-3)


def test_a_model_that_does_not_fit_has_no_pool(llama70b: ModelSpec, ask: Ask) -> None:
    answer = size_serving(ask(llama70b))
    assert not answer.fits
    assert answer.kv_pool_bytes == answer.kv_cache_tokens == answer.max_concurrency_at_context == 0
    assert answer.longest_context == 0
    assert answer.shortfall_bytes > 2 * llama70b.params_total - 79.19 * GIB


def test_a_batch_beyond_the_pool_is_a_shortfall_not_a_smaller_pool(llama8b: ModelSpec, ask: Ask) -> None:
    """The engine would queue it: what it can hold stands beside."""
    small, large = size_serving(ask(llama8b, concurrency=8)), size_serving(ask(llama8b, concurrency=800))
    assert large.kv_pool_bytes == small.kv_pool_bytes
    assert large.max_concurrency_at_context == small.max_concurrency_at_context
    assert large.shortfall_bytes > 0


def test_141_gb_of_the_box_are_not_141e9_bytes() -> None:
    found = catalogued("h200-sxm") or 0
    assert found == pytest.approx(139.81 * GIB)
    assert found > 1.06 * 141e9
