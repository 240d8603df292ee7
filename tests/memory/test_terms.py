"""Weights, cache and working memory of one device against worked figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.memory import (
    ServingMemoryInput,
    adapters_bytes,
    cache_bytes_per_sequence,
    cache_bytes_per_token,
    layer_peak_bytes,
    sampler_peak_bytes,
    size_serving,
    weights_bytes,
)
from chipwise.memory.terms import Storage, encoder_peak_bytes, experts_peak_bytes, graph_sizes, rotary_bytes
from chipwise.model import ModelSpec, Tower
from chipwise.parallelism import Split, shard
from chipwise.precision import with_precision

GIB = 2.0**30


def test_weights_are_two_bytes_a_parameter_whole_on_one_device(llama70b: ModelSpec) -> None:
    assert weights_bytes(shard(llama70b, Split())) == 2 * llama70b.params_total


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_every_weight_of_llama_divides_by_tp(llama70b: ModelSpec, tp: int) -> None:
    assert weights_bytes(shard(llama70b, Split(tp=tp))) == pytest.approx(2 * llama70b.params_total / tp)


def test_beyond_its_kv_heads_a_model_repeats_them(llama70b: ModelSpec) -> None:
    extra = weights_bytes(shard(llama70b, Split(tp=16))) - 2 * llama70b.params_total / 16
    assert extra == pytest.approx(2 * 80 * 2 * 1024 * 8192 * (1 / 8 - 1 / 16))


def test_eight_bit_weights_leave_embedding_and_head_at_sixteen(llama70b: ModelSpec) -> None:
    outer = 2 * 128256 * 8192
    layers = llama70b.params_total - outer
    rows = 80 * (8192 * 2 + 1024 * 2 + 28672 * 2 + 8192)
    found = weights_bytes(shard(with_precision(llama70b, "fp8-channel"), Split()))
    assert found == pytest.approx(layers + rows * 4 + 2 * outer)


def test_a_tied_head_is_held_once_and_again_on_a_stage_of_its_own(windowed: ModelSpec) -> None:
    whole = weights_bytes(shard(windowed, Split()))
    assert whole == 2 * windowed.params_total
    assert weights_bytes(shard(windowed, Split(pp=2))) == pytest.approx((whole + 2 * 256000 * 2304) / 2)


def test_a_stated_total_scales_the_weights(llama8b: ModelSpec) -> None:
    stated = replace(llama8b, params_stated=2 * llama8b.params_total)
    assert weights_bytes(shard(stated, Split())) == pytest.approx(2 * weights_bytes(shard(llama8b, Split())))


def test_mxfp4_experts_are_padded_to_the_kernel_s_width(latent: ModelSpec) -> None:
    narrow = shard(with_precision(latent, "mxfp4"), Split(tp=8))
    plain = weights_bytes(narrow)
    assert weights_bytes(narrow, storage=Storage(expert_multiple={"mxfp4": 192})) > plain
    assert weights_bytes(narrow, storage=Storage(expert_multiple={"mxfp4": 256})) == plain
    assert weights_bytes(narrow, storage=Storage(expert_multiple={"fp8": 192})) == plain


def test_both_sides_of_an_expert_are_padded(latent: ModelSpec) -> None:
    """7,168 hidden to multiples of 3,000 are 9,000; 2,048 wide over 4 devices to multiples of 300 are 600 of 512."""
    narrow = shard(with_precision(latent, "mxfp4"), Split(tp=4))
    experts = 61 * 256 * 3 * 7168 * 512 * 4.25 / 8
    plain = weights_bytes(narrow)
    both = Storage(expert_multiple={"mxfp4": 300}, expert_hidden_multiple={"mxfp4": 3000})
    assert weights_bytes(narrow, storage=both) - plain == pytest.approx(experts * (600 / 512 * 9000 / 7168 - 1))
    hidden = Storage(expert_hidden_multiple={"mxfp4": 3000})
    assert weights_bytes(narrow, storage=hidden) - plain == pytest.approx(experts * (9000 / 7168 - 1))


def test_experts_are_dealt_out_whole_or_cut(latent: ModelSpec) -> None:
    cut = weights_bytes(shard(latent, Split(tp=8)))
    dealt = weights_bytes(shard(latent, Split(tp=8, ep=8)))
    assert dealt == pytest.approx(cut)
    spread = weights_bytes(shard(latent, Split(tp=1, dp=8, ep=8)))
    experts = 2 * 61 * 256 * 3 * 2048 * 7168
    assert spread == pytest.approx(2 * latent.params_total - experts * 7 / 8)


def test_the_cache_of_llama_70b_is_327680_bytes_a_token(llama70b: ModelSpec) -> None:
    assert cache_bytes_per_token(shard(llama70b, Split()), element_bytes=2.0) == 327680
    assert cache_bytes_per_token(shard(llama70b, Split(tp=4)), element_bytes=2.0) == 81920
    assert cache_bytes_per_token(shard(llama70b, Split()), element_bytes=1.0) == 163840


def test_the_latent_cache_is_whole_on_every_device(latent: ModelSpec) -> None:
    for tp in (1, 2, 8):
        assert cache_bytes_per_token(shard(latent, Split(tp=tp)), element_bytes=2.0) == 61 * 576 * 2


def test_windows_and_states_count_per_sequence(windowed: ModelSpec, hybrid: ModelSpec) -> None:
    assert cache_bytes_per_token(shard(windowed, Split()), element_bytes=2.0) == 13 * 4096
    assert cache_bytes_per_sequence(shard(windowed, Split()), element_bytes=2.0) == 13 * 4096 * 4096
    state = 32 * 128 * 128 * 4 + 8192 * 3 * 2
    assert cache_bytes_per_sequence(shard(hybrid, Split()), element_bytes=2.0) == 30 * state
    assert cache_bytes_per_sequence(shard(hybrid, Split(tp=2)), element_bytes=2.0) == 15 * state


def test_sampler_peak_has_one_copy_in_the_model_s_type() -> None:
    assert sampler_peak_bytes(rows=1024, vocab_size=1000, element_bytes=2, float_copies=3) == 1024 * 1000 * 14
    assert sampler_peak_bytes(rows=1, vocab_size=1000, element_bytes=4, float_copies=9) == 1000 * 40


def test_layer_peak_is_gate_up_and_down_of_the_mlp(llama8b: ModelSpec) -> None:
    peak = layer_peak_bytes(shard(llama8b, Split()), tokens=8192, element_bytes=2, hidden_copies=3, recurrent_copies=0)
    assert peak == 8192 * 2 * (3 * 14336 + 3 * 4096)
    halved = layer_peak_bytes(
        shard(llama8b, Split(tp=2)), tokens=8192, element_bytes=2, hidden_copies=3, recurrent_copies=0
    )
    assert halved == 8192 * 2 * (3 * 14336 / 2 + 3 * 4096)


def test_expert_buffers_grow_with_what_a_token_chooses(latent: ModelSpec) -> None:
    shards = shard(latent, Split())
    peak = experts_peak_bytes(shards, tokens=100, element_bytes=2)
    assert peak == 100 * 8 * (7168 + 2048) * 2
    freed = experts_peak_bytes(shards, tokens=100, element_bytes=2, freed_formats=frozenset({"bf16"}))
    assert freed == 0


def test_a_lora_slot_holds_both_sides_of_every_adapted_weight(llama8b: ModelSpec) -> None:
    sides = 32 * (2 * (4096 + 4096) + 2 * (1024 + 4096) + 3 * (14336 + 4096))
    found = adapters_bytes(shard(llama8b, Split()), adapters=4, rank=16, element_bytes=2)
    assert found == 4 * 16 * sides * 2
    assert adapters_bytes(shard(llama8b, Split()), adapters=0, rank=16, element_bytes=2) == 0


def test_graph_sizes_are_those_vllm_lists() -> None:
    listed = [1, 2, 4, *range(8, 256, 8), *range(256, 513, 16)]
    for seqs in (1, 2, 3, 4, 5, 7, 8, 9, 100, 123, 124, 127, 128, 131, 137, 200, 256, 1024):
        assert graph_sizes(seqs) == sum(size <= min(2 * seqs, 512) for size in listed)
    assert graph_sizes(1024, largest=256) == sum(size <= 256 for size in listed)


def test_the_rotary_table_goes_with_the_longest_context(llama8b: ModelSpec) -> None:
    assert rotary_bytes(shard(llama8b, Split()), element_bytes=2) == 131072 * 128 * 2
    unknown = replace(llama8b, max_context_tokens=None)
    assert rotary_bytes(shard(unknown, Split()), element_bytes=2) == 0


@given(tp=st.sampled_from([1, 2, 4, 8, 16]), pp=st.integers(1, 4), element=st.sampled_from([1.0, 2.0]))
def test_arrays_give_what_scalars_give(llama70b: ModelSpec, tp: int, pp: int, element: float) -> None:
    spec = llama70b
    many = shard(spec, Split(tp=np.array([1, tp]), pp=np.array([1, pp])))
    one = shard(spec, Split(tp=tp, pp=pp))
    assert np.asarray(weights_bytes(many))[1] == pytest.approx(weights_bytes(one))
    assert np.asarray(cache_bytes_per_token(many, element_bytes=element))[1] == pytest.approx(
        cache_bytes_per_token(one, element_bytes=element)
    )


def test_an_encoder_works_on_patches_at_the_width_of_its_layer(llama8b: ModelSpec) -> None:
    small = replace(llama8b.layers[0], count=24)
    seeing = replace(llama8b, towers=(Tower(name="vision", layers=(small,), weights=llama8b.outer),))
    shards = shard(seeing, Split(tp=2))
    peak = encoder_peak_bytes(shards, tokens=250, patches_per_token=4, element_bytes=2, hidden_copies=3)
    assert peak == 1000 * 2 * (3 * 14336 / 2 + 3 * 4096)
    none = shard(llama8b, Split())
    assert encoder_peak_bytes(none, tokens=250, patches_per_token=4, element_bytes=2, hidden_copies=3) == 0


def test_a_tower_is_cut_with_the_model_or_whole_on_every_device(llama8b: ModelSpec) -> None:
    seeing = replace(llama8b, towers=(Tower(name="vision", layers=llama8b.layers, weights=()),))
    shards, blind = shard(seeing, Split(tp=4)), weights_bytes(shard(llama8b, Split(tp=4)))
    tower = 2 * llama8b.layers[0].params
    assert weights_bytes(shards) - blind == pytest.approx(tower / 4)
    assert weights_bytes(shards, whole_towers=True) - blind == pytest.approx(tower)


def test_projections_of_attention_count_where_they_are_wider_than_the_mlp(llama8b: ModelSpec) -> None:
    layer = llama8b.layers[0]
    slim = replace(llama8b, layers=(replace(layer, weights=layer.weights[:4]),))
    peak = layer_peak_bytes(shard(slim, Split()), tokens=10, element_bytes=2, hidden_copies=0, recurrent_copies=0)
    assert peak == 10 * 2 * (4096 + 2 * 1024 + 4096)


def test_shared_layers_are_stored_as_often_as_they_say(llama8b: ModelSpec) -> None:
    outer = 2 * 2 * 128256 * 4096
    once = replace(llama8b, layers=(replace(llama8b.layers[0], stored_count=1),))
    layers = weights_bytes(shard(llama8b, Split())) - outer
    assert weights_bytes(shard(once, Split())) == pytest.approx(layers / 32 + outer)


def test_every_expert_of_a_device_has_its_lora_slots(latent: ModelSpec) -> None:
    attention = 4 * (128 * 128 + 7168)
    experts = 256 * 3 * (2048 + 7168)
    found = adapters_bytes(shard(latent, Split()), adapters=1, rank=1, element_bytes=2)
    assert found == 61 * (attention + experts) * 2


def test_a_format_may_be_held_as_another(llama8b: ModelSpec) -> None:
    """bitsandbytes: 32 bits a scale of 64 weights, or 8 and an eighth of them where statistics are compressed."""
    matrices = 32 * sum(weight.params for weight in llama8b.layers[0].weights)
    four_bit = shard(with_precision(llama8b, "nf4"), Split())
    packed = weights_bytes(four_bit, storage=Storage(held_as={"nf4": "nf4-dq"}))
    assert weights_bytes(four_bit) - packed == pytest.approx(matrices * (32 - 8.125) / 64 / 8)
    assert weights_bytes(four_bit, storage=Storage(held_as={"fp8": "nf4-dq"})) == weights_bytes(four_bit)


def test_what_joins_several_hidden_states_holds_them(llama8b: ModelSpec) -> None:
    joint = replace(llama8b.outer[1], name="projector", part="other", out_features=4096, in_features=7680, tp_units=1)
    seeing = replace(llama8b, towers=(Tower(name="vision", weights=(joint,)),))
    peak = encoder_peak_bytes(
        shard(seeing, Split()), tokens=6404, patches_per_token=1, element_bytes=2, hidden_copies=5
    )
    assert peak == 6404 * 2 * 2 * 7680


def test_expert_buffers_hold_gate_and_up_where_these_are_wider(latent: ModelSpec) -> None:
    """Mixtral: 2 x 14,336 columns of gate and up are wider than 4,096 hidden, and 14,336 go into down."""
    layer = latent.layers[0]
    assert layer.experts is not None
    wide = tuple(
        replace(w, out_features=14336) if w.cut == "out" else replace(w, in_features=14336)
        for w in layer.experts.weights
    )
    broad = replace(latent, layers=(replace(layer, experts=replace(layer.experts, per_token=2, weights=wide)),))
    peak = experts_peak_bytes(shard(broad, Split()), tokens=100, element_bytes=2)
    assert peak == 100 * 2 * (2 * 14336 + 14336) * 2


def test_the_rotary_table_is_as_wide_as_the_widest_head(hybrid: ModelSpec) -> None:
    """131,072 positions of 256, not of 128."""
    assert rotary_bytes(shard(hybrid, Split()), element_bytes=2) == 131072 * 256 * 2
    headless = replace(shard(hybrid, Split()), layers=())
    assert rotary_bytes(headless, element_bytes=2) == 0


def test_a_part_holds_what_its_widest_last_matrix_takes(llama8b: ModelSpec) -> None:
    """Two matrices that give partial sums, of 14,336 and of 1,024 columns: the wider one counts."""
    layer = llama8b.layers[0]
    narrow = replace(next(one for one in layer.weights if one.name == "down"), name="side", in_features=1024)
    more = replace(llama8b, layers=(replace(layer, weights=(*layer.weights, narrow)),))
    each = [
        layer_peak_bytes(shard(one, Split()), tokens=1, element_bytes=2.0, hidden_copies=0, recurrent_copies=0)
        for one in (llama8b, more)
    ]
    assert each == [2 * 3 * 14336, 2 * 3 * 14336]


def test_a_ceiling_of_the_cache_is_said(llama8b: ModelSpec, ask: Callable[..., ServingMemoryInput]) -> None:
    """On Neuron 0.21: the cache takes at most 30 % of the budget."""
    held = ask(llama8b, Split(tp=2), engine="vllm-neuron", utilization=0.9)
    capped = size_serving(held)
    assert capped.kv_pool_bytes == pytest.approx(0.30 * 0.9 * float(capped.budget.capacity_bytes))
    assert any("at most 30%" in one for one in capped.warnings)
    full = size_serving(replace(held, capacity_bytes=14 * GIB))
    assert not any("at most" in one for one in full.warnings)
