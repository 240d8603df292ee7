"""The budget of a chip: its terms add up, and it reproduces budgets that engines printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chipwise.errors import UnknownNameError
from chipwise.memory import MemoryAnswer, ServingMemoryInput, memory_profile, size_serving
from chipwise.model import ModelSpec, Tower
from chipwise.parallelism import Split, shard
from chipwise.precision import with_precision

GIB = 2.0**30
Ask = Callable[..., ServingMemoryInput]


def adds_up(answer: MemoryAnswer) -> None:
    budget = answer.budget
    terms = sum(np.asarray(term, dtype=float) for term in budget.terms().values())
    left = terms + budget.free_bytes
    right = np.asarray(budget.capacity_bytes) + answer.shortfall_bytes
    assert left == pytest.approx(right, rel=1e-12)
    assert np.all(np.minimum(budget.free_bytes, answer.shortfall_bytes) == 0)
    assert np.all(np.asarray(budget.free_bytes) >= 0)


def test_llama_8b_on_vllm_019_is_what_its_log_says(llama8b: ModelSpec, ask: Ask) -> None:
    """H100 at 0.95: weights 14.99, activations 1.89, KV 58.11 GiB, 476,016 tokens, 58.11 requests."""
    answer = size_serving(ask(llama8b))
    assert answer.budget.weights_bytes / GIB == pytest.approx(14.99, abs=0.01)
    assert answer.budget.activations_bytes / GIB == pytest.approx(1.89, abs=0.02)
    assert answer.kv_pool_bytes / GIB == pytest.approx(58.11, abs=0.05)
    assert answer.kv_cache_tokens == pytest.approx(476016, rel=2e-3)
    assert answer.max_concurrency_at_context == pytest.approx(58.11, rel=2e-3)
    adds_up(answer)


def test_an_eight_bit_cache_doubles_the_tokens_not_the_pool(llama8b: ModelSpec, ask: Ask) -> None:
    wide, narrow = size_serving(ask(llama8b)), size_serving(ask(llama8b, kv_format="fp8"))
    assert narrow.kv_pool_bytes == wide.kv_pool_bytes
    assert narrow.kv_cache_tokens == pytest.approx(2 * wide.kv_cache_tokens, abs=32)


def test_tokens_are_of_the_replica_bytes_of_a_chip(llama8b: ModelSpec, ask: Ask) -> None:
    """At tp 2 of the same log: 63.76 GiB a GPU are 1,044,688 tokens, not half of that and not twice."""
    answer = size_serving(ask(llama8b, Split(tp=2)))
    assert answer.kv_pool_bytes / GIB == pytest.approx(63.76, abs=0.1)
    assert answer.kv_cache_tokens == pytest.approx(1044688, rel=3e-3)


def test_the_fullest_stage_decides(llama8b: ModelSpec, ask: Ask) -> None:
    """At pp 2: 1,075,312 tokens, of the stage that samples."""
    assert size_serving(ask(llama8b, Split(pp=2))).kv_cache_tokens == pytest.approx(1075312, rel=3e-3)


def test_the_sampler_of_old_versions_takes_more(llama8b: ModelSpec, ask: Ask) -> None:
    """On vLLM 0.11, 16,000 context at 0.9: activations 4.76, KV 51.38 GiB of 79.18."""
    answer = size_serving(
        ask(
            llama8b,
            capacity_bytes=79.18 * GIB,
            utilization=0.9,
            context_tokens=16000,
            engine_version="0.11.0",
        )
    )
    assert answer.budget.activations_bytes / GIB == pytest.approx(4.76, abs=0.02)
    assert answer.kv_pool_bytes / GIB == pytest.approx(51.38, abs=0.05)


def test_graphs_count_within_the_utilization_since_021(llama8b: ModelSpec, ask: Ask) -> None:
    before = size_serving(ask(llama8b, engine_version="0.20.0"))
    after = size_serving(ask(llama8b, engine_version="0.21.0"))
    assert before.budget.graphs_bytes == 0
    assert after.budget.graphs_bytes == after.graphs_total_bytes == before.graphs_total_bytes > 0
    assert after.kv_pool_bytes == pytest.approx(before.kv_pool_bytes - after.graphs_total_bytes)
    eager = size_serving(ask(llama8b, engine_version="0.21.0", eager=True))
    assert eager.graphs_total_bytes == eager.budget.graphs_bytes == 0


def test_graphs_that_the_reserve_cannot_hold_count(llama8b: ModelSpec, ask: Ask) -> None:
    tight = size_serving(ask(llama8b, utilization=0.995))
    assert tight.budget.graphs_bytes > 0
    adds_up(tight)


def test_pcie_takes_smaller_buffers_than_nvlink(llama8b: ModelSpec, ask: Ask) -> None:
    linked = size_serving(ask(llama8b, Split(tp=4)))
    apart = size_serving(ask(llama8b, Split(tp=4), nvlink=False))
    assert apart.budget.overhead_bytes < linked.budget.overhead_bytes
    alone = size_serving(ask(llama8b)).budget.overhead_bytes
    assert alone == memory_profile("vllm", "0.19.0").single_bytes


def test_sglang_s_fraction_is_of_weights_and_cache(llama8b: ModelSpec, ask: Ask) -> None:
    """Its pool: fraction x free memory at the start - weights; activations work in the rest."""
    answer = size_serving(ask(llama8b, engine="sglang", engine_version="0.5.0", utilization=0.85))
    context = memory_profile("sglang", "0.5.0").single_bytes
    expected = 0.85 * (79.19 * GIB - context) - answer.budget.weights_bytes
    assert answer.kv_pool_bytes == pytest.approx(expected)
    assert answer.budget.activations_bytes == 0
    adds_up(answer)


def test_tensorrt_llm_s_fraction_is_of_what_is_left(llama8b: ModelSpec, ask: Ask) -> None:
    answer = size_serving(ask(llama8b, engine="tensorrt-llm", engine_version="1.0.0", utilization=0.5))
    assert answer.kv_pool_bytes == pytest.approx(answer.budget.reserved_bytes)
    assert answer.evidence == "physics"
    assert answer.warnings
    adds_up(answer)


def _pair(chip: ServingMemoryInput) -> tuple[ServingMemoryInput, ServingMemoryInput]:
    return chip, replace(chip, capacity_bytes=chip.capacity_bytes / 4, devices_per_chip=1)


def test_a_chip_of_several_cores_is_the_sum_of_its_devices(llama8b: ModelSpec, ask: Ask) -> None:
    chip = ask(
        llama8b,
        Split(tp=4),
        engine="neuron",
        engine_version=None,
        capacity_bytes=96 * GIB,
        devices_per_chip=4,
    )
    answer = size_serving(chip)
    assert answer.budget.capacity_bytes == 96 * GIB
    one = size_serving(replace(chip, capacity_bytes=24 * GIB, devices_per_chip=1))
    assert answer.budget.weights_bytes == pytest.approx(4 * one.budget.weights_bytes)
    assert answer.kv_cache_tokens == one.kv_cache_tokens
    assert answer.kv_pool_bytes == pytest.approx(4 * one.kv_pool_bytes)
    assert answer.low_fraction == pytest.approx(one.low_fraction)
    adds_up(answer)
    graphs = [size_serving(replace(one_or_more, engine="vllm")) for one_or_more in _pair(chip)]
    assert graphs[0].graphs_total_bytes == graphs[0].budget.graphs_bytes
    assert graphs[0].graphs_total_bytes == pytest.approx(4 * graphs[1].graphs_total_bytes)
    half = size_serving(replace(chip, shards=shard(llama8b, Split(tp=2))))
    assert half.budget.capacity_bytes == 48 * GIB


def test_data_parallel_ranks_have_a_pool_each(latent: ModelSpec, ask: Ask) -> None:
    narrow = with_precision(latent, "mxfp4")
    asked = ask(narrow, Split(tp=1, dp=8, ep=8), concurrency=64, capacity_bytes=139.81 * GIB)
    answer = size_serving(asked)
    rank = size_serving(replace(asked, shards=replace(asked.shards, split=Split(tp=8, ep=8)), concurrency=8))
    assert answer.budget.cache_bytes == pytest.approx(rank.budget.cache_bytes)
    assert answer.kv_cache_tokens == pytest.approx(8 * rank.kv_cache_tokens)


def test_adapters_and_draft_come_out_of_the_pool(llama70b: ModelSpec, llama8b: ModelSpec, ask: Ask) -> None:
    split = Split(tp=4)
    plain = size_serving(ask(llama70b, split))
    more = size_serving(
        ask(llama70b, split, lora_adapters=4, lora_rank=64, draft=shard(llama8b, split), draft_tokens=3)
    )
    taken = more.budget.adapters_bytes + more.budget.draft_bytes
    assert more.budget.draft_bytes == pytest.approx(2 * llama8b.params_total / 4)
    assert more.kv_pool_bytes == pytest.approx(plain.kv_pool_bytes - taken)
    assert more.budget.cache_bytes == pytest.approx(plain.budget.cache_bytes * (80 + 32) / 80)


def test_prediction_layers_are_loaded_only_to_speculate(llama8b: ModelSpec, ask: Ask) -> None:
    extra = replace(llama8b, mtp=(replace(llama8b.layers[0], count=1, indices=(32,)),))
    assert size_serving(ask(extra)).budget.draft_bytes == 0
    speculating = size_serving(ask(extra, draft_tokens=1))
    assert speculating.budget.draft_bytes == pytest.approx(2 * llama8b.layers[0].params / 32)
    assert speculating.budget.cache_bytes == pytest.approx(size_serving(ask(extra)).budget.cache_bytes * 33 / 32)


def test_an_engine_that_is_not_known_is_refused(llama8b: ModelSpec, ask: Ask) -> None:
    with pytest.raises(UnknownNameError):
        size_serving(ask(llama8b, engine="vlllm"))
    with pytest.raises(UnknownNameError):
        size_serving(ask(llama8b, kv_format="int4-g128"))


LAYOUTS = st.builds(Split, tp=st.sampled_from([1, 2, 4, 8, 16]), pp=st.integers(1, 4))
LOADS = st.fixed_dictionaries(
    {
        "context_tokens": st.integers(1, 131072),
        "concurrency": st.integers(1, 512),
        "utilization": st.floats(0.3, 0.99),
        "capacity_bytes": st.floats(8 * GIB, 300 * GIB),
    }
)
ENGINES = st.sampled_from([("vllm", "0.8.5"), ("vllm", "0.19.0"), ("vllm", None), ("sglang", None), ("neuron", None)])


CAPPED_AND_SHORT = {"context_tokens": 4096, "concurrency": 1, "utilization": 0.99, "capacity_bytes": 41 * GIB}
"""A cache with a ceiling leaves room that what works beside the engine's share then takes."""


@example(engine=("neuron", None), split=Split(tp=16), load=CAPPED_AND_SHORT)
@given(engine=ENGINES, split=LAYOUTS, load=LOADS)
def test_terms_add_up(
    llama70b: ModelSpec, ask: Ask, *, engine: tuple[str, str | None], split: Split, load: dict[str, float]
) -> None:
    answer = size_serving(ask(llama70b, split, engine=engine[0], engine_version=engine[1], **load))
    adds_up(answer)
    assert answer.fits == (float(answer.shortfall_bytes) == 0)
    if engine[0] == "vllm":
        reserved = (1 - load["utilization"]) * load["capacity_bytes"]
        assert answer.budget.reserved_bytes == pytest.approx(reserved)


@given(
    context=st.integers(1, 65536),
    concurrency=st.integers(1, 64),
    more_context=st.integers(0, 65536),
    more_requests=st.integers(0, 64),
)
def test_longer_and_more_never_need_less(
    windowed: ModelSpec, ask: Ask, *, context: int, concurrency: int, more_context: int, more_requests: int
) -> None:
    less = size_serving(ask(windowed, context_tokens=context, concurrency=concurrency))
    more = size_serving(ask(windowed, context_tokens=context + more_context, concurrency=concurrency + more_requests))
    assert more.budget.cache_bytes >= less.budget.cache_bytes
    assert more.shortfall_bytes >= less.shortfall_bytes


@given(count=st.integers(1, 100), more=st.integers(1, 40))
def test_more_layers_take_more_of_everything_they_touch(llama8b: ModelSpec, ask: Ask, count: int, more: int) -> None:
    def of(layers: int) -> MemoryAnswer:
        layer = replace(llama8b.layers[0], count=layers, indices=tuple(range(layers)))
        return size_serving(ask(replace(llama8b, layers=(layer,))))

    small, large = of(count), of(count + more)
    assert large.budget.weights_bytes > small.budget.weights_bytes
    assert large.budget.cache_bytes > small.budget.cache_bytes
    assert large.graphs_total_bytes > small.graphs_total_bytes


def test_many_candidates_are_answered_like_one(llama70b: ModelSpec, ask: Ask) -> None:
    tp, pp = np.array([1, 2, 4, 8, 8]), np.array([1, 1, 2, 1, 4])
    capacity, share = np.array([80, 141, 24, 48, 180]) * GIB, np.array([0.9, 0.95, 0.8, 0.9, 0.92])
    many = size_serving(ask(llama70b, Split(tp=tp, pp=pp), capacity_bytes=capacity, utilization=share))
    for index in range(5):
        split = Split(tp=int(tp[index]), pp=int(pp[index]))
        one = size_serving(ask(llama70b, split, capacity_bytes=capacity[index], utilization=share[index]))
        for name in ("kv_pool_bytes", "kv_cache_tokens", "max_concurrency_at_context", "longest_context"):
            assert np.broadcast_to(getattr(many, name), 5)[index] == pytest.approx(getattr(one, name)), name
        assert np.asarray(many.fits)[index] == one.fits


def test_a_model_that_caches_nothing_needs_room_for_its_weights_only(llama8b: ModelSpec, ask: Ask) -> None:
    layer = llama8b.layers[0]
    blind = replace(llama8b, layers=(replace(layer, attention=replace(layer.attention, kind="none")),))
    answer = size_serving(ask(blind, context_tokens=512, concurrency=64))
    assert answer.fits
    assert answer.budget.cache_bytes == 0
    assert answer.kv_cache_tokens == 0
    assert answer.max_concurrency_at_context == 1024
    assert answer.longest_context == 131072
    adds_up(answer)
    tight = size_serving(ask(blind, capacity_bytes=8 * GIB))
    assert (tight.fits, tight.longest_context, tight.max_concurrency_at_context) == (False, 0, 0)


def test_a_tower_s_output_is_held_beside_the_sampler(llama8b: ModelSpec, ask: Ask) -> None:
    tower = Tower(name="vision", weights=(llama8b.outer[0],))
    seeing = replace(llama8b, towers=(tower,))
    more = size_serving(ask(seeing)).budget.activations_bytes - size_serving(ask(llama8b)).budget.activations_bytes
    assert more == 8192 * 4096 * 2


def test_recurrent_layers_work_on_more_copies(hybrid: ModelSpec, ask: Ask) -> None:
    profile = memory_profile("vllm", "0.19.0")
    answer = size_serving(ask(hybrid, chunk_tokens=65536, max_num_seqs=8))
    projections, values, hidden = 3 * 4096 + 2 * 2048 - 4096, 32 * 128, 3 * 2048
    expected = 65536 * 2 * (projections + profile.recurrent_copies * values + hidden)
    assert answer.budget.activations_bytes - profile.fixed_bytes == expected


@pytest.mark.parametrize("version", ["0.8.5", "0.19.0", "0.33.0"])
def test_the_range_surrounds_the_prediction(llama8b: ModelSpec, ask: Ask, version: str) -> None:
    answer = size_serving(ask(llama8b, engine_version=version))
    assert 0.5 < answer.low_fraction < 1 < answer.high_fraction < 1.5
    nothing = size_serving(ask(llama8b, engine_version=version, capacity_bytes=4 * GIB))
    assert (nothing.low_fraction, nothing.high_fraction) == (1, 1)
    assert nothing.room_bytes < 0 < nothing.error_bytes


def test_versions_nobody_logged_say_that_they_are_transferred(llama8b: ModelSpec, ask: Ask) -> None:
    assert size_serving(ask(llama8b)).evidence == "calibrated"
    assert size_serving(ask(llama8b, engine_version=None)).evidence == "transferred"
    odd = size_serving(ask(llama8b, engine_version="0.999"))
    assert odd.warnings


def test_the_range_is_made_of_shares_of_what_is_fitted(llama8b: ModelSpec, ask: Ask) -> None:
    profile = memory_profile("vllm", "0.19.0")
    answer = size_serving(ask(llama8b))
    shares = (
        profile.weights_error * answer.budget.weights_bytes,
        profile.activations_error * answer.budget.activations_bytes,
        profile.overhead_error * answer.budget.overhead_bytes,
        profile.capacity_error * answer.budget.capacity_bytes,
    )
    off = sum(share**2 for share in shares) ** 0.5
    assert answer.high_fraction - 1 == pytest.approx(off / answer.kv_pool_bytes)
    assert 1 - answer.low_fraction == pytest.approx(off / answer.kv_pool_bytes)
    later, newer = memory_profile("vllm", "0.24.0"), size_serving(ask(llama8b, engine_version="0.24.0"))
    parts = (
        later.weights_error * newer.budget.weights_bytes,
        later.activations_error * newer.budget.activations_bytes,
        later.overhead_error * newer.budget.overhead_bytes,
        later.graphs_error * newer.budget.graphs_bytes,
        later.capacity_error * newer.budget.capacity_bytes,
    )
    assert newer.error_bytes == pytest.approx(sum(part**2 for part in parts) ** 0.5)


def test_context_parallel_devices_share_a_request(llama8b: ModelSpec, ask: Ask) -> None:
    alone, shared = size_serving(ask(llama8b)), size_serving(ask(llama8b, Split(cp=2)))
    assert shared.budget.cache_bytes == alone.budget.cache_bytes / 2
    assert shared.kv_cache_tokens == pytest.approx(2 * alone.kv_cache_tokens)
    assert shared.max_concurrency_at_context == pytest.approx(2 * alone.max_concurrency_at_context)


def test_graphs_go_with_layers_and_batch_sizes(llama8b: ModelSpec, ask: Ask) -> None:
    profile = memory_profile("vllm", "0.19.0")
    one = profile.graph_size_bytes + 32 * profile.graph_layer_bytes
    assert size_serving(ask(llama8b)).graphs_total_bytes == pytest.approx(51 * one)
    assert size_serving(ask(llama8b, max_num_seqs=2)).graphs_total_bytes == pytest.approx(3 * one)
    assert size_serving(ask(llama8b, graph_max_batch=8)).graphs_total_bytes == pytest.approx(4 * one)


def test_expert_buffers_outlive_their_layer_since_017(latent: ModelSpec, ask: Ask) -> None:
    old, new = (memory_profile("vllm", version) for version in ("0.16.0", "0.17.0"))
    experts = 8192 * 8 * (7168 + 2048) * 2
    for profile, kept in ((old, 0), (new, experts)):
        asked = ask(latent, engine_version=profile.basis if kept else "0.16.0", max_num_seqs=2048)
        sampler = 2048 * 129280 * (2 + 4 * profile.sampler_copies)
        expected = profile.fixed_bytes + 8192 * 7168 * 2 + sampler + kept
        assert size_serving(asked).budget.activations_bytes == pytest.approx(expected)


def test_what_does_not_fit_on_a_chip_of_cores_adds_up(llama8b: ModelSpec, ask: Ask) -> None:
    split = Split(tp=4)
    chip = ask(
        llama8b, split, capacity_bytes=48 * GIB, devices_per_chip=4, concurrency=500, lora_adapters=2,
        draft=shard(llama8b, split), draft_tokens=2,
    )  # fmt: skip
    answer = size_serving(chip)
    assert answer.shortfall_bytes > 0
    assert answer.budget.draft_bytes == pytest.approx(2 * llama8b.params_total)
    adds_up(answer)


def test_work_that_sglang_s_reserve_cannot_hold_counts_beside_its_pool(llama8b: ModelSpec, ask: Ask) -> None:
    """`pool = fraction x (device - overhead) - weights` whatever works in the rest, as its logs say."""
    asked = ask(llama8b, engine="sglang", engine_version="0.5.0", utilization=0.99)
    tight, roomy = size_serving(asked), memory_profile("sglang", "0.5.0")
    hidden, sampler = 8192 * 4096 * 2, 1024 * 128256 * (2 + 4 * roomy.sampler_copies)
    graphs = 51 * (roomy.graph_size_bytes + 32 * roomy.graph_layer_bytes)
    assert tight.graphs_total_bytes == pytest.approx(graphs)
    lacking = roomy.fixed_bytes + hidden + sampler + graphs + 0.01 * roomy.single_bytes - 0.01 * 79.19 * GIB
    assert tight.budget.activations_bytes == pytest.approx(lacking)
    assert tight.reserve_room_bytes == pytest.approx(-lacking)
    pool = 0.99 * (79.19 * GIB - roomy.single_bytes) - tight.budget.weights_bytes
    assert tight.kv_pool_bytes == pytest.approx(pool)
    assert tight.budget.free_bytes == pytest.approx(pool - lacking - tight.budget.cache_bytes)
    adds_up(tight)


def test_sglang_on_four_l4_is_what_its_log_says(ask: Ask, llama8b: ModelSpec) -> None:
    """22.05 GiB, 21.63 free at start, fraction 0.85, 15.54 GiB taken by the weights: 2.84 GiB of cache."""
    asked = ask(
        llama8b, engine="sglang", engine_version="0.4.3", utilization=0.85, capacity_bytes=22.05 * GIB, nvlink=False,
        chunk_tokens=2048,
    )  # fmt: skip
    answer = size_serving(replace(asked, shards=replace(asked.shards, stated_fraction=15.29 / 14.96)))
    assert answer.kv_pool_bytes / GIB == pytest.approx(2.84 + 0.25 * 0.15, abs=0.25)
    assert answer.reserve_room_bytes > 0


def test_a_pool_is_taken_even_where_graphs_will_not_fit(llama8b: ModelSpec, ask: Ask) -> None:
    roomy, tight = (size_serving(ask(llama8b, utilization=share)) for share in (0.95, 0.99))
    assert tight.kv_pool_bytes - roomy.kv_pool_bytes == pytest.approx(0.04 * 79.19 * GIB)
    profile = memory_profile("vllm", "0.19.0")
    beside = 0.01 * 79.19 * GIB - profile.context_bytes - tight.graphs_total_bytes
    assert tight.reserve_room_bytes == pytest.approx(beside)
    assert beside < 0 < roomy.reserve_room_bytes
    assert tight.budget.graphs_bytes == pytest.approx(-beside)
    assert roomy.budget.graphs_bytes == 0
    adds_up(tight)


def test_what_an_overrun_takes_is_not_free(llama8b: ModelSpec, ask: Ask) -> None:
    """A request that fills all but the overrun fits; one block more does not."""
    asked = ask(llama8b, utilization=0.99)
    answer = size_serving(asked)
    left = float(answer.kv_pool_bytes + answer.reserve_room_bytes)
    tokens = left // 131072 // 16 * 16
    assert size_serving(replace(asked, context_tokens=tokens)).fits
    assert not size_serving(replace(asked, context_tokens=tokens + 16)).fits


def test_all_reduces_of_old_versions_keep_their_hidden_states(llama70b: ModelSpec, ask: Ask) -> None:
    """Llama-2-70B on 4 A100: 38.6 GiB of cache on vLLM 0.2.4, 25.5 on 0.2.5."""
    asked = ask(
        llama70b, Split(tp=4), capacity_bytes=79.15 * GIB, utilization=0.9, context_tokens=4096, chunk_tokens=4096,
        max_num_seqs=256,
    )  # fmt: skip
    old, kept = (size_serving(replace(asked, engine_version=version)) for version in ("0.2.4", "0.2.5"))
    grown = float(kept.activations_total_bytes - old.activations_total_bytes)
    assert grown == pytest.approx(2.25 * 80 * 4096 * 8192 * 2)
    lost = float(old.kv_pool_bytes - kept.kv_pool_bytes) / GIB
    assert lost == pytest.approx(38.6 - 25.5, rel=0.12)
    alone = size_serving(replace(asked, shards=shard(llama70b, Split()), engine_version="0.2.5"))
    alone_before = size_serving(replace(asked, shards=shard(llama70b, Split()), engine_version="0.2.4"))
    assert alone.activations_total_bytes == alone_before.activations_total_bytes


def test_an_image_larger_than_a_step_is_encoded_whole(llama8b: ModelSpec, ask: Ask) -> None:
    """Qwen2.5-VL: 16,384 tokens of 4 patches; a layer holds gate, up, down and 14 hidden states of each."""
    layer = replace(llama8b.layers[0], count=32)
    seeing = replace(llama8b, towers=(Tower(name="visual", layers=(layer,)),), model_type="qwen2_5_vl")
    answer = size_serving(ask(seeing, chunk_tokens=2048, max_num_seqs=2))
    profile = memory_profile("vllm", "0.19.0")
    held = 16384 * 4 * 2 * (3 * 14336 + 14 * 4096)
    assert answer.activations_total_bytes == pytest.approx(profile.fixed_bytes + held)


def test_a_family_may_capture_larger_batches(llama8b: ModelSpec, ask: Ask) -> None:
    usual = size_serving(ask(llama8b)).graphs_total_bytes
    more = size_serving(ask(replace(llama8b, model_type="gpt_oss"))).graphs_total_bytes
    assert more == pytest.approx(usual * 83 / 51)


def test_formats_are_held_as_the_version_holds_them(llama8b: ModelSpec, ask: Ask) -> None:
    narrow = with_precision(llama8b, "nf4")
    packed, undone = (size_serving(ask(narrow, engine_version=version)) for version in ("0.9.1", "0.9.2"))
    assert packed.budget.weights_bytes < undone.budget.weights_bytes
    assert undone.error_bytes > size_serving(ask(llama8b, engine_version="0.9.2")).error_bytes


def test_ranks_without_a_cache_serve_their_share(llama8b: ModelSpec, ask: Ask) -> None:
    layer = llama8b.layers[0]
    blind = replace(llama8b, layers=(replace(layer, attention=replace(layer.attention, kind="none")),))
    assert size_serving(ask(blind, Split(dp=2))).max_concurrency_at_context == 1024


def test_data_parallel_ranks_share_the_requests(latent: ModelSpec, ask: Ask) -> None:
    """Two requests over two ranks reach as far as one request on one."""
    split = Split(tp=4, dp=2, ep=8)
    asked = ask(latent, split, capacity_bytes=400 * GIB)
    two, one = size_serving(replace(asked, concurrency=64)), size_serving(replace(asked, concurrency=32))
    alone = size_serving(replace(asked, shards=replace(asked.shards, split=Split(tp=4)), concurrency=32))
    assert two.longest_context == alone.longest_context < one.longest_context
    assert two.budget.cache_bytes == alone.budget.cache_bytes
    assert two.kv_cache_tokens == pytest.approx(2 * alone.kv_cache_tokens)
    assert two.max_concurrency_at_context == pytest.approx(2 * alone.max_concurrency_at_context)


def test_the_range_of_a_chip_of_cores_is_of_the_chip(llama8b: ModelSpec, ask: Ask) -> None:
    answer = size_serving(ask(llama8b, Split(tp=4), capacity_bytes=96 * GIB, devices_per_chip=4, engine="neuron"))
    assert answer.error_bytes / answer.kv_pool_bytes == pytest.approx(answer.high_fraction - 1)
    assert answer.room_bytes == pytest.approx(answer.kv_pool_bytes)
    assert answer.need_bytes == answer.budget.cache_bytes


def test_families_whose_tower_is_not_cut_hold_it_whole(llama8b: ModelSpec, ask: Ask) -> None:
    seeing = replace(llama8b, towers=(Tower(name="vision", layers=llama8b.layers, weights=()),))
    cut, whole = (
        float(size_serving(ask(replace(seeing, model_type=family), Split(tp=2))).budget.weights_bytes)
        for family in ("llava", "pixtral")
    )
    assert whole - cut == pytest.approx(llama8b.layers[0].params)


def test_prompts_that_are_not_cut_make_a_step_as_long_as_the_context(llama8b: ModelSpec, ask: Ask) -> None:
    def activations(context: int, chunk: int, *, whole: bool, version: str = "0.7.3") -> float:
        asked = ask(
            llama8b, context_tokens=context, chunk_tokens=chunk, whole_prompts=whole, engine_version=version,
            max_num_seqs=1,
        )  # fmt: skip
        return float(size_serving(asked).activations_total_bytes)

    assert activations(32768, 2048, whole=True) == activations(2048, 32768, whole=False)
    assert activations(1024, 2048, whole=True) == activations(1024, 2048, whole=False)
    assert activations(32769, 2048, whole=True) == activations(2048, 2048, whole=False)
    assert activations(65536, 2048, whole=True, version="0.4.0") > activations(32768, 2048, whole=True, version="0.4.0")


def test_a_model_with_a_tower_is_never_cut_by_itself(llama8b: ModelSpec, ask: Ask) -> None:
    seeing = replace(llama8b, towers=(Tower(name="vision", layers=llama8b.layers, weights=()),))
    long = ask(seeing, context_tokens=65536, chunk_tokens=2048, whole_prompts=True, engine_version="0.7.3")
    cut = replace(long, whole_prompts=False)
    assert size_serving(long).activations_total_bytes > size_serving(cut).activations_total_bytes


def test_tokens_that_nothing_drafts_are_told(llama8b: ModelSpec, ask: Ask) -> None:
    """An n-gram drafter takes no memory; a draft model or prediction layers do, and need no word."""
    extra = replace(llama8b, mtp=(replace(llama8b.layers[0], count=1, indices=(32,)),))
    silent = (
        ask(llama8b),
        ask(llama8b, draft=shard(llama8b, Split()), draft_tokens=3),
        ask(extra, draft_tokens=3),
    )
    assert [size_serving(one).warnings for one in silent] == [(), (), ()]
    (said,) = size_serving(ask(llama8b, draft_tokens=3)).warnings
    assert "n-gram" in said
