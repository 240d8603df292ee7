"""Blocks of hybrid caches against what start-up logs of vLLM print."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.memory import (
    CacheKind,
    MemoryProfile,
    cache_bytes_per_token,
    cache_kinds,
    cache_layout,
    longest_context,
    memory_profile,
    request_bytes,
)
from chipwise.memory.cache import CacheLayout, pool_blocks, pool_tokens, request_blocks
from chipwise.model import ModelSpec
from chipwise.parallelism import Split, shard

GIB = 2.0**30


def layout_of(
    spec: ModelSpec,
    profile: MemoryProfile,
    *,
    element: float = 2.0,
    tp: int = 1,
    chunk: int = 8192,
    drafts: int = 0,
) -> CacheLayout:
    kinds = cache_kinds(shard(spec, Split(tp=tp)).layers, element_bytes=element, profile=profile)
    return cache_layout(kinds, profile=profile, chunk_tokens=chunk, draft_tokens=drafts)


def test_a_plain_model_is_one_group_of_16_token_blocks(llama8b: ModelSpec) -> None:
    layout = layout_of(llama8b, memory_profile("vllm", "0.19.0"))
    assert layout.group_count == 1
    assert layout.block_bytes == 16 * 131072
    assert request_blocks(layout, context_tokens=8192) == 512
    assert request_blocks(layout, context_tokens=8193) == 513


def test_gemma_2_prints_half_its_blocks_because_it_has_two_groups(windowed: ModelSpec) -> None:
    """On vLLM 0.19 66.47 GiB are 83,770 blocks, printed as 670,160 tokens, 81.73 requests of 8,192."""
    layout = layout_of(windowed, memory_profile("vllm", "0.19.0"))
    blocks = 83770
    pool = blocks * layout.block_bytes
    assert pool == pytest.approx(66.47 * GIB, rel=1e-4)
    assert pool_tokens(layout, pool_bytes=pool, context_tokens=8192, per_group=True) == 670160
    assert blocks / request_blocks(layout, context_tokens=8192) == pytest.approx(81.73, abs=0.005)


def test_a_recurrent_model_stretches_its_blocks_to_hold_a_state(hybrid: ModelSpec) -> None:
    """On vLLM 0.24, 8-bit cache: 5.98 GiB are 299 blocks of 2,096 tokens: 567,978 tokens, 4.33 requests."""
    layout = layout_of(hybrid, memory_profile("vllm", "0.24.0"), element=1.0)
    assert layout.block_tokens == 2096
    assert pool_blocks(layout, pool_bytes=5.98 * GIB) == 299
    assert request_blocks(layout, context_tokens=131072) == 63 + 3 * 2
    printed = pool_tokens(layout, pool_bytes=5.98 * GIB, context_tokens=131072, per_group=False)
    assert printed == 567978


def test_speculation_holds_a_state_a_token_more(hybrid: ModelSpec) -> None:
    profile = memory_profile("vllm", "0.24.0")
    plain = request_blocks(layout_of(hybrid, profile), context_tokens=1024)
    assert request_blocks(layout_of(hybrid, profile, drafts=3), context_tokens=1024) == plain + 3 * 3


def test_layers_of_nearly_equal_number_share_the_larger_group(windowed: ModelSpec) -> None:
    near, far = windowed.layers
    uneven = replace(windowed, layers=(replace(near, count=15, indices=()), replace(far, indices=())))
    layout = layout_of(uneven, memory_profile("vllm", "0.19.0"))
    assert layout.group_count == 2
    assert layout.block_bytes == 15 * 16 * 4096


def test_five_windows_to_one_full_layer_make_six_groups(windowed: ModelSpec) -> None:
    near, far = windowed.layers
    gemma3 = replace(windowed, layers=(replace(near, count=50, indices=()), replace(far, count=10, indices=())))
    layout = layout_of(gemma3, memory_profile("vllm", "0.19.0"))
    assert layout.group_count == 6
    assert layout.block_bytes == 10 * 16 * 4096


def test_before_the_hybrid_manager_windows_were_cached_in_full(windowed: ModelSpec) -> None:
    old = layout_of(windowed, memory_profile("vllm", "0.8.3"))
    assert old.group_count == 1
    assert request_bytes(old, context_tokens=131072) == 131072 * 26 * 4096


def test_a_window_bounds_what_a_long_request_holds(windowed: ModelSpec) -> None:
    layout = layout_of(windowed, memory_profile("vllm", "0.19.0"), chunk=2050)
    longer = request_blocks(layout, context_tokens=2**20) - request_blocks(layout, context_tokens=2**19)
    assert longer == 2**19 / 16
    assert request_blocks(layout, context_tokens=2**20) == 2**16 + 385 + 1  # 4,096 - 1 + 2,050 tokens


def test_old_vllm_pads_latents_and_the_oldest_knew_none(latent: ModelSpec) -> None:
    """DeepSeek-V3: 576 elements, 640 in vLLM 0.7.3, full keys and values in 0.6."""
    by_version = {
        version: request_bytes(layout_of(latent, memory_profile("vllm", version), tp=8), context_tokens=16) / 16
        for version in ("0.6.4", "0.7.3", "0.19.0")
    }
    assert by_version["0.19.0"] == 61 * 576 * 2
    assert by_version["0.7.3"] == 61 * 640 * 2
    assert by_version["0.6.4"] == 61 * (128 / 8) * 2 * 128 * 2


def test_full_keys_of_a_latent_model_are_as_wide_as_its_queries(latent: ModelSpec) -> None:
    """DeepSeek-V3 before MLA was known: 128 heads of 192, values padded from 128: 2 x 128 x 192 elements of 2 bytes."""
    layer = latent.layers[0]
    wide = replace(layer, attention=replace(layer.attention, head_dim=192, value_head_dim=128))
    profile = memory_profile("vllm", "0.6.0")
    assert not profile.mla_latent
    shards = shard(replace(latent, layers=(wide,)), Split())
    (kind,) = cache_kinds(shards.layers, element_bytes=2.0, profile=profile)
    assert kind.bytes_per_token == 2 * 128 * 192 * 2


def test_shared_layers_keep_nothing(llama8b: ModelSpec) -> None:
    layer = llama8b.layers[0]
    borrowing = replace(layer, count=16, attention=replace(layer.attention, kind="shared"), indices=())
    half = replace(llama8b, layers=(replace(layer, count=16, indices=()), borrowing))
    layout = layout_of(half, memory_profile("vllm", "0.19.0"))
    assert request_bytes(layout, context_tokens=1600) == 1600 * 131072 / 2


@given(
    context=st.integers(1, 200_000),
    more=st.integers(0, 50_000),
    version=st.sampled_from(["0.8.3", "0.19.0", "0.24.0"]),
)
def test_a_longer_request_never_holds_less(
    windowed: ModelSpec, hybrid: ModelSpec, context: int, more: int, version: str
) -> None:
    for spec in (windowed, hybrid):
        layout = layout_of(spec, memory_profile("vllm", version))
        shorter = request_bytes(layout, context_tokens=context)
        assert request_bytes(layout, context_tokens=context + more) >= shorter


@given(pool=st.floats(0, 60), concurrency=st.integers(1, 64))
def test_the_longest_context_fits_and_one_block_more_does_not(
    windowed: ModelSpec, pool: float, concurrency: int
) -> None:
    layout = layout_of(windowed, memory_profile("vllm", "0.19.0"))
    longest = int(longest_context(layout, pool_bytes=pool * GIB, concurrency=concurrency, most_tokens=131072))
    blocks = pool_blocks(layout, pool_bytes=pool * GIB)
    if longest:
        assert request_blocks(layout, context_tokens=longest) * concurrency <= blocks
    if longest < 131072:
        assert request_blocks(layout, context_tokens=longest + 1) * concurrency > blocks


def test_an_indexer_keeps_8_bit_keys_beside_the_latent(latent: ModelSpec) -> None:
    """DeepSeek-V3.2: 128 keys of 8 bits and one 32-bit scale a token and layer."""
    layer = latent.layers[0]
    sparse = replace(latent, layers=(replace(layer, attention=replace(layer.attention, indexer_dim=128)),))
    profile = memory_profile("vllm", "0.19.0")
    (plain,) = cache_kinds(shard(latent, Split()).layers, element_bytes=2.0, profile=profile)
    (indexed,) = cache_kinds(shard(sparse, Split()).layers, element_bytes=2.0, profile=profile)
    assert indexed.bytes_per_token - plain.bytes_per_token == 128 + 4


def test_a_compressed_past_is_kept_beside_its_window(windowed: ModelSpec) -> None:
    """DeepSeek-V4: a window of 128 latents of 512, and one latent and one 8-bit index key of 128 every 4 tokens."""
    near = windowed.layers[0]
    latent = replace(
        near.attention, kv_heads=1, head_dim=512, value_head_dim=512, window_tokens=128, values_cached=False
    )
    past = replace(latent, compressed_every=4, indexer_dim=128, sparse_tokens=512)
    spec = replace(windowed, layers=(replace(near, attention=past),))
    window, growing = cache_kinds(
        shard(spec, Split(tp=8)).layers, element_bytes=2.0, profile=memory_profile("vllm", "0.19.0")
    )
    assert (window.bytes_per_token, window.window_tokens) == (512 * 2, 128)
    assert (growing.bytes_per_token, growing.window_tokens) == ((512 * 2 + 128 + 4) / 4, None)
    assert (window.state_bytes, growing.state_bytes) == (0, 0)
    assert cache_bytes_per_token(shard(spec, Split()), element_bytes=2.0) == 13 * 512 * 2 / 4


def test_a_state_stretches_the_blocks_of_the_widest_attention(hybrid: ModelSpec) -> None:
    recurrent, full = hybrid.layers
    narrow = replace(full, count=5, attention=replace(full.attention, kv_heads=1))
    layout = layout_of(replace(hybrid, layers=(recurrent, full, narrow)), memory_profile("vllm", "0.19.0"))
    assert layout.block_tokens == 1056  # 2,146,304 bytes of state over 16 x 2,048 bytes a token, rounded up, times 16


def test_states_of_two_sizes_stretch_to_the_larger(hybrid: ModelSpec) -> None:
    recurrent, full = hybrid.layers
    small = replace(recurrent, count=5, attention=replace(recurrent.attention, state_bytes_per_sequence=1024))
    layout = layout_of(replace(hybrid, layers=(small, recurrent, full)), memory_profile("vllm", "0.19.0"))
    assert layout.block_tokens == layout_of(hybrid, memory_profile("vllm", "0.19.0")).block_tokens == 1056


def test_a_printed_pool_is_of_whole_tokens_and_never_more_than_there_are(hybrid: ModelSpec) -> None:
    layout = layout_of(hybrid, memory_profile("vllm", "0.24.0"))
    pool = 7.3 * layout.block_bytes
    printed = pool_tokens(layout, pool_bytes=pool, context_tokens=10000, per_group=False)
    exact = 7 / float(request_blocks(layout, context_tokens=10000)) * 10000
    assert exact - 1 < printed <= exact
    assert printed == int(printed)


def test_a_block_holds_whole_tokens_of_each_kind(hybrid: ModelSpec) -> None:
    """A page of 1,056 tokens of 2,048 bytes holds 1,126 tokens of 1,920 bytes, not 1,127."""
    recurrent, full = hybrid.layers
    odd = replace(full, attention=replace(full.attention, head_dim=240, value_head_dim=240, kv_heads=2))
    layout = layout_of(replace(hybrid, layers=(recurrent, full, odd)), memory_profile("vllm", "0.19.0"))
    assert [group.block_tokens for group in layout.groups] == [0, 1056, 1126]


def test_the_longest_context_is_found_to_the_token(llama8b: ModelSpec) -> None:
    """Blocks of one token: a pool of exactly n tokens holds a request of n, whatever n is."""
    profile = replace(memory_profile("vllm", "0.19.0"), block_tokens=1.0)
    layout = layout_of(llama8b, profile)
    for tokens in (1, 2, 3, 4095, 65535, 65537, 131071):
        found = longest_context(layout, pool_bytes=tokens * 131072.0, concurrency=1, most_tokens=131072)
        assert found == tokens


def test_a_state_on_some_splits_is_a_state() -> None:
    """A kind whose state is there on one candidate of two is recurrent on both."""
    state = CacheKind(
        count=1.0, bytes_per_token=np.array([0.0, 0.0]), state_bytes=np.array([0.0, 8.0]), window_tokens=None,
        chunked=False,
    )  # fmt: skip
    assert state.recurrent
    assert not replace(state, state_bytes=np.array([0.0, 0.0])).recurrent


def test_a_model_that_caches_nothing_has_blocks_of_nothing() -> None:
    layout = cache_layout([], profile=memory_profile("vllm", "0.19.0"), chunk_tokens=8192, draft_tokens=0)
    assert (float(layout.block_bytes), layout.groups) == (0.0, ())
