"""What one device of a replica holds."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.engines import SpareLayers
from chipwise.model import Attention, Experts, Layer, ModelSpec, Tower, Weight
from chipwise.parallelism import GemmShard, Split, ceil_div, shard, tp_share
from chipwise.parallelism.stages import fullest_stage, stage_sizes

FULL = Attention(kind="full", query_heads=32, kv_heads=8, head_dim=128, value_head_dim=128)
Q = Weight(name="q", part="attention", out_features=4096, in_features=4096, tp_units=32)
K = Weight(name="k", part="attention", out_features=1024, in_features=4096, tp_units=8)
O = Weight(name="o", part="attention", out_features=4096, in_features=4096, tp_units=32, cut="in")
UP = Weight(name="up", part="mlp", out_features=14336, in_features=4096, tp_units=14336)
DOWN = Weight(name="down", part="mlp", out_features=4096, in_features=14336, tp_units=14336, cut="in")
NORM = Weight(name="norm", part="norm", out_features=4096, in_features=1, gemm=False)
EMBED = Weight(name="embed", part="embedding", out_features=32003, in_features=4096, tp_units=32003, gemm=False)
HEAD = replace(EMBED, name="head", part="head", gemm=True)
EXPERT = Experts(routed=64, per_token=4, weights=(replace(UP, part="expert"), replace(DOWN, part="expert")))


def model_of(*layers: Layer, outer: tuple[Weight, ...] = (EMBED, HEAD), towers: tuple[Tower, ...] = ()) -> ModelSpec:
    return ModelSpec(
        name="by hand",
        model_type="llama",
        architecture="dense-llm",
        layers=layers,
        outer=outer,
        hidden_size=4096,
        vocab_size=32003,
        max_context_tokens=8192,
        dtype="bfloat16",
        params_source="user",
        towers=towers,
    )


DENSE = Layer(count=32, attention=FULL, weights=(Q, K, O, UP, DOWN, NORM), indices=tuple(range(32)))
LLAMA = model_of(DENSE)


def gemms(split: Split, spec: ModelSpec = LLAMA) -> dict[str, GemmShard]:
    return {gemm.name: gemm for gemm in shard(spec, split).layers[0].gemms}


def test_tp_cuts_rows_of_the_first_and_columns_of_the_last() -> None:
    held = gemms(Split(tp=4))
    assert (held["q"].rows_out, held["q"].cols_in) == (1024, 4096)
    assert (held["o"].rows_out, held["o"].cols_in) == (4096, 1024)
    assert (held["up"].rows_out, held["down"].cols_in) == (3584, 3584)
    assert held["norm"].rows_out == 4096


def test_kv_heads_are_repeated_not_split() -> None:
    assert gemms(Split(tp=8))["k"].rows_out == 128
    assert gemms(Split(tp=16))["k"].rows_out == 128
    cache = shard(LLAMA, Split(tp=16)).layers[0].cache
    assert cache.kv_heads == 1
    assert cache.elements_per_token == 256


def test_the_vocabulary_is_padded_to_64_and_cut() -> None:
    embed, head = shard(LLAMA, Split(tp=4)).outer
    assert embed.rows_out == 32064 / 4
    assert head.rows_out == 32064 / 4


def test_partial_sums_are_reduced_once_a_part() -> None:
    assert shard(LLAMA, Split(tp=2)).layers[0].all_reduces == 2
    routed = model_of(replace(DENSE, weights=(Q, K, O), experts=EXPERT))
    assert shard(routed, Split(tp=2)).layers[0].all_reduces == 2
    bare = model_of(replace(DENSE, weights=(Q, K)))
    assert shard(bare, Split(tp=2)).layers[0].all_reduces == 0


def test_experts_are_cut_without_ep_and_dealt_out_with_it() -> None:
    routed = model_of(replace(DENSE, experts=EXPERT))
    cut = shard(routed, Split(tp=4)).layers[0].experts
    dealt = shard(routed, Split(tp=4, ep=4)).layers[0].experts
    mixed = shard(routed, Split(tp=4, dp=2, ep=4)).layers[0].experts
    assert cut is not None
    assert dealt is not None
    assert mixed is not None
    assert (cut.local, cut.gemms[0].rows_out) == (64, 3584)
    assert (dealt.local, dealt.gemms[0].rows_out) == (16, 14336)
    assert (mixed.local, mixed.gemms[0].rows_out) == (16, 7168)


def test_latents_are_whole_and_states_are_shared_out() -> None:
    mla = replace(FULL, kind="mla", kv_lora_rank=512, rope_head_dim=64)
    state = replace(FULL, kind="mamba", state_bytes_per_sequence=1024)
    spec = model_of(replace(DENSE, attention=mla), replace(DENSE, attention=state, indices=()))
    for tp in (1, 8):
        latent, recurrent = shard(spec, Split(tp=tp)).layers
        assert latent.cache.elements_per_token == 576
        assert recurrent.cache.elements_per_token == 0
        assert recurrent.cache.state_bytes_per_sequence == 1024 / tp


def test_towers_stand_on_every_stage() -> None:
    tower = Tower(name="vision", layers=(replace(DENSE, count=2),), weights=(NORM,))
    held = shard(model_of(DENSE, towers=(tower,)), Split(pp=4)).towers
    assert [(gemm.name, count) for gemm, count in held if gemm.name in {"q", "norm"}] == [
        ("q", 2.0),
        ("norm", 2.0),
        ("norm", 1.0),
    ]


def test_layers_that_share_their_weights_say_so() -> None:
    albert = model_of(replace(DENSE, stored_count=1))
    assert shard(albert, Split()).layers[0].stored_fraction == 1 / 32


@given(layers=st.integers(1, 200), pp=st.integers(1, 16))
def test_stages_hold_every_layer_once(layers: int, pp: int) -> None:
    sizes = stage_sizes(layers, pp)
    assert (len(sizes), sum(sizes)) == (pp, layers)
    assert max(sizes) - min(sizes) <= 1
    if pp > 1 and layers % pp:
        assert sizes[-1] == layers // pp


@given(layers=st.integers(1, 200), pp=st.integers(1, 16), spare=st.sampled_from(get_args(SpareLayers)))
def test_every_engine_s_stages_hold_every_layer(layers: int, pp: int, spare: SpareLayers) -> None:
    sizes = stage_sizes(layers, pp, spare)
    assert (len(sizes), sum(sizes), min(sizes)) == (pp, layers, layers // pp)


@pytest.mark.parametrize(
    ("spare", "sizes"),
    [
        ("before-last", [7, 7, 8, 8, 8, 8, 8, 7]),
        ("last", [7, 7, 7, 7, 7, 7, 7, 12]),
        ("last-each", [7, 7, 7, 8, 8, 8, 8, 8]),
        ("first-each", [8, 8, 8, 8, 8, 7, 7, 7]),
    ],
)
def test_61_layers_over_8_stages_as_each_engine_deals_them(spare: SpareLayers, sizes: list[int]) -> None:
    """The example of vLLM's pull request 13839 and SGLang's 6666 and 13282."""
    assert stage_sizes(61, 8, spare) == sizes


def test_where_the_last_stage_takes_what_is_left_over_it_is_the_fullest() -> None:
    """31 of 61 layers and the head, where vLLM of today leaves it 30."""
    deep = model_of(replace(DENSE, count=61, indices=tuple(range(61))))
    old, new = (shard(deep, Split(pp=2, spare_layers=rule)) for rule in ("last", "before-last"))
    assert (old.layers[0].count, old.outer_copies) == (31.0, (0.0, 1.0))
    assert (new.layers[0].count, new.outer_copies) == (31.0, (1.0, 0.0))


def test_what_is_not_stored_has_no_parameters() -> None:
    """A tied head multiplies and is held as the embedding."""
    tied = model_of(DENSE, outer=(EMBED, replace(HEAD, stored=False)))
    assert [gemm.params for gemm in shard(tied, Split()).outer] == [32064 * 4096, 0]


def test_a_model_without_layers_has_an_empty_stage() -> None:
    stage = fullest_stage(model_of(outer=(EMBED,)), 1)
    assert (stage.layer_counts, stage.outer_copies) == ((), (1.0,))


def test_a_device_has_a_head_where_its_layer_has_any() -> None:
    """Over 32 and over 64 devices one of 32; a layer without attention has none."""
    assert [shard(LLAMA, Split(tp=tp)).layers[0].cache.query_heads for tp in (16, 32, 64)] == [2, 1, 1]
    blind = replace(DENSE, attention=replace(FULL, kind="none", query_heads=0, kv_heads=0))
    assert shard(model_of(blind), Split(tp=2)).layers[0].cache.query_heads == 0


def test_two_pieces_are_enough_to_be_a_partial_sum() -> None:
    two, one = (replace(O, tp_units=units) for units in (2, 1))
    held = gemms(Split(tp=2), model_of(replace(DENSE, weights=(Q, two))))
    assert held["o"].reduced
    assert not gemms(Split(tp=2), model_of(replace(DENSE, weights=(Q, one))))["o"].reduced


def test_the_ends_of_a_model_weigh_what_their_stage_holds() -> None:
    """A head of 40 layers' bytes makes the last of two stages the fullest, though the first has more layers."""
    heavy = replace(HEAD, out_features=40 * sum(weight.out_features for weight in (Q, K, O, UP)))
    odd = replace(DENSE, count=33, indices=tuple(range(33)), weights=(Q, K, O, UP))
    assert fullest_stage(model_of(odd, outer=(replace(EMBED, out_features=64), heavy)), 2).layer_counts == (16.0,)
    light = replace(HEAD, out_features=64)
    assert fullest_stage(model_of(odd, outer=(replace(EMBED, out_features=64), light)), 2).layer_counts == (17.0,)


def test_a_model_without_weights_is_not_scaled() -> None:
    assert shard(model_of(outer=()), Split()).stated_fraction == 1.0


def test_the_fullest_stage_of_a_deep_model_is_the_one_with_most_experts() -> None:
    """As DeepSeek-V3: 3 dense layers, then 58 with experts; of 31 and 30 the second stage is heavier."""
    first = replace(DENSE, count=3, indices=(0, 1, 2))
    rest = replace(DENSE, count=58, experts=EXPERT, indices=tuple(range(3, 61)))
    stage = fullest_stage(model_of(first, rest), 2)
    assert stage.layer_counts == (0.0, 30.0)
    assert stage.outer_copies == (0.0, 1.0)


def test_interleaved_layers_keep_their_share_of_a_stage() -> None:
    even = replace(DENSE, count=16, indices=tuple(range(0, 32, 2)))
    odd = replace(
        DENSE,
        count=16,
        attention=replace(FULL, kind="sliding", window_tokens=4096),
        indices=tuple(range(1, 32, 2)),
    )
    assert fullest_stage(model_of(even, odd), 4).layer_counts == (4.0, 4.0)
    unplaced = model_of(replace(even, indices=()), replace(odd, indices=()))
    assert sorted(fullest_stage(unplaced, 4).layer_counts) == [0.0, 8.0]


def test_a_tied_head_is_stored_again_on_the_last_stage() -> None:
    tied = model_of(DENSE, outer=(EMBED, replace(HEAD, stored=False)))
    assert fullest_stage(tied, 1).outer_copies == (1.0, 0.0)
    assert fullest_stage(tied, 2).outer_copies == (0.0, 1.0)


def test_stages_of_many_splits_come_at_once() -> None:
    stage = fullest_stage(LLAMA, np.array([[1, 2], [4, 3]]))
    assert np.array_equal(stage.layer_counts[0], [[32, 16], [8, 11]])
    assert np.shape(stage.outer_copies[0]) == (2, 2)


@given(tp=st.lists(st.sampled_from([1, 2, 4, 8, 16, 32]), min_size=1, max_size=4))
def test_many_splits_are_sharded_like_one(tp: list[int]) -> None:
    many = shard(LLAMA, Split(tp=np.array(tp))).layers[0]
    for index, one in enumerate(tp):
        alone = shard(LLAMA, Split(tp=one)).layers[0]
        for left, right in zip(many.gemms, alone.gemms, strict=True):
            assert np.broadcast_to(left.params, len(tp))[index] == right.params
        assert np.broadcast_to(many.cache.elements_per_token, len(tp))[index] == alone.cache.elements_per_token


def test_shares_and_ceilings() -> None:
    assert tp_share(8, 3) == pytest.approx(3 / 8)
    assert tp_share(1, 8) == 1
    assert ceil_div(7, 2) == 4


def test_a_large_embedding_makes_the_first_stage_the_fullest() -> None:
    wide = replace(EMBED, out_features=1_048_576, tp_units=1_048_576)
    first = fullest_stage(model_of(DENSE, outer=(wide, HEAD, NORM)), 4)
    assert first.outer_copies == (1.0, 0.0, 0.0)
    last = fullest_stage(model_of(DENSE, outer=(EMBED, replace(wide, name="head", part="head", gemm=True), NORM)), 4)
    assert last.outer_copies == (0.0, 1.0, 1.0)


def test_state_of_layers_without_heads_is_whole() -> None:
    bare = Attention(kind="mamba", query_heads=0, kv_heads=0, head_dim=0, value_head_dim=0, state_bytes_per_sequence=64)
    cache = shard(model_of(replace(DENSE, attention=bare)), Split(tp=4)).layers[0].cache
    assert cache.state_bytes_per_sequence == 64
    assert cache.query_heads == 0


def test_a_model_without_layers_is_one_stage() -> None:
    stage = fullest_stage(model_of(outer=(EMBED,)), 1)
    assert (stage.layer_counts, stage.outer_copies) == ((), (1.0,))


def test_a_vocabulary_of_two_is_padded_and_one_that_is_not_cut_is_not() -> None:
    """Vocabularies that are cut are padded to 64 rows; a score of one row stands whole."""
    for rows, padded in ((2, 64), (1, 1)):
        head = replace(HEAD, out_features=rows, tp_units=rows)
        found = next(one for one in shard(model_of(DENSE, outer=(head,)), Split()).outer if one.name == "head")
        assert float(found.rows_out) == padded
