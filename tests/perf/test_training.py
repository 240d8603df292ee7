"""Training steps: worked numbers, directions, definitions."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.memory.training_job import TrainingJob, TrainingLayout, training_shards
from chipwise.model import Attention, Experts, Layer, ModelSpec, Weight
from chipwise.perf.hardware import FABRICS, Hardware
from chipwise.perf.training import (
    Rollout,
    StepTerms,
    TrainingArrays,
    TrainingInput,
    bubble_fraction,
    exposed_s,
    step_arrays,
    term_seconds,
)
from chipwise.perf.training_coefficients import NAMES, training_coefficients, training_evidence
from chipwise.perf.training_communication import strided, training_fabric
from chipwise.perf.training_prediction import efficiencies, predict_training
from chipwise.perf.training_rollout import generation_s, loop_factor, loop_spread_factor
from chipwise.perf.training_work import context_tokens, forward_work, model_flops

PEAK = 1e15


def weight(name: str, part: str, shape: tuple[int, int], units: int = 1, cut: str = "out") -> Weight:
    return Weight(name=name, part=part, out_features=shape[0], in_features=shape[1], tp_units=units, cut=cut)  # type: ignore[arg-type]  # short fixtures


def decoder(*, hidden: int = 4096, wide: int = 14336, layers: int = 32, experts: int = 0) -> ModelSpec:
    attention = (
        weight("q", "attention", (hidden, hidden), 32),
        weight("k", "attention", (1024, hidden), 8),
        weight("v", "attention", (1024, hidden), 8),
        weight("o", "attention", (hidden, hidden), 32, "in"),
    )
    part = "expert" if experts else "mlp"
    feed = (
        weight("gate", part, (wide, hidden), wide),
        weight("up", part, (wide, hidden), wide),
        weight("down", part, (hidden, wide), wide, "in"),
    )
    layer = Layer(
        count=layers,
        attention=Attention(
            kind="full", query_heads=32, kv_heads=8, head_dim=hidden // 32, value_head_dim=hidden // 32
        ),
        weights=attention + (() if experts else feed),
        experts=Experts(routed=experts, per_token=2, weights=feed) if experts else None,
    )
    return ModelSpec(
        name="test",
        model_type="llama",
        architecture="dense-llm",
        layers=(layer,),
        outer=(
            replace(weight("embedding", "embedding", (128256, hidden), 128256), gemm=False),
            weight("head", "head", (128256, hidden), 128256),
        ),
        hidden_size=hidden,
        vocab_size=128256,
        max_context_tokens=8192,
        dtype="bfloat16",
        params_source="config",
    )


LLAMA_8B = decoder()
MOE = decoder(hidden=2048, wide=1024, layers=24, experts=64)
HARDWARE = Hardware(
    gemm_flops_per_s={"bf16": PEAK, "fp8": 2 * PEAK},
    widened={},
    attention_flops_per_s=PEAK,
    memory_bandwidth_bytes_per_s=3e12,
    fabric=float(FABRICS.index("nvswitch")),
    link_bytes_per_s=450e9,
    peer_to_peer=1.0,
    node_devices=8.0,
    network_bytes_per_s=400e9,
)
JOB = TrainingJob(method="pretrain", seq_len=4096, micro_batch=1, micro_batches=16)


def question(
    model: ModelSpec = LLAMA_8B, *, layout: TrainingLayout | None = None, job: TrainingJob = JOB, trainer: str = "nemo"
) -> TrainingInput:
    known = training_coefficients(generation="hopper", precision=job.precision, trainer=trainer)
    return TrainingInput(
        model=model,
        layout=layout or TrainingLayout(),
        job=job,
        fabric=training_fabric(hardware=HARDWARE, coefficients=known, generation="hopper"),
        coefficients=known,
    )


def step(*args: ModelSpec, **kwargs: object) -> TrainingArrays:
    return step_arrays(question(*args, **kwargs))  # type: ignore[arg-type]  # passed on


def matmul_params(model: ModelSpec) -> float:
    outer = sum(one.params for one in model.outer if one.part == "head")
    return outer + sum(layer.params_active for layer in model.layers)


def test_forward_gemms_are_two_flops_a_parameter_and_token() -> None:
    work = forward_work(shards=training_shards(LLAMA_8B, TrainingLayout()), layout=TrainingLayout(), job=JOB)
    assert float(work.gemm_flops + work.head_flops) == pytest.approx(2 * matmul_params(LLAMA_8B) * 4096)
    assert float(work.attention_flops) == pytest.approx(32 * 2 * 4096 * 2048 * 32 * 256)


def test_model_flops_are_6_n_and_full_attention() -> None:
    shards = training_shards(LLAMA_8B, TrainingLayout())
    flops = float(model_flops(shards=shards, layout=TrainingLayout(), job=JOB))
    assert flops == pytest.approx(4096 * (6 * matmul_params(LLAMA_8B) + 12 * 32 * 4096 * 4096))
    split = TrainingLayout(tp=8)
    assert float(model_flops(shards=training_shards(LLAMA_8B, split), layout=split, job=JOB)) == pytest.approx(flops)


def test_model_flops_of_experts_count_the_chosen_ones() -> None:
    layout = TrainingLayout(ep=8, dp=8)
    flops = float(model_flops(shards=training_shards(MOE, layout), layout=layout, job=JOB))
    assert flops == pytest.approx(4096 * (6 * matmul_params(MOE) + 12 * 24 * 4096 * 2048))


def test_terms_add_up_and_rates_follow() -> None:
    arrays = step(layout=TrainingLayout(tp=2, pp=2, dp=4, shard="zero1"))
    assert float(np.sum([float(np.asarray(one)) for one in term_seconds(arrays.terms).values()])) == pytest.approx(
        float(arrays.step_s)
    )
    assert float(arrays.tokens_per_s) == pytest.approx(4096 * 16 * 4 / float(arrays.step_s))
    assert float(arrays.tokens_per_s_per_chip) == pytest.approx(float(arrays.tokens_per_s) / 16)
    assert float(arrays.samples_per_s) == pytest.approx(float(arrays.tokens_per_s) / 4096)


def test_mfu_by_its_definition() -> None:
    arrays = step()
    flops = 16 * 4096 * (6 * matmul_params(LLAMA_8B) + 12 * 32 * 4096 * 4096)
    assert float(arrays.mfu_fraction) == pytest.approx(flops / float(arrays.step_s) / PEAK)
    assert arrays.hfu_fraction == arrays.mfu_fraction
    again = step(job=replace(JOB, recompute="full"))
    assert float(again.hfu_fraction) == pytest.approx(float(again.mfu_fraction) * 4 / 3)
    assert 0.2 < float(arrays.mfu_fraction) < 0.75


@settings(max_examples=20, deadline=None)
@given(seq_len=st.integers(512, 16384), micro_batch=st.integers(1, 8))
def test_more_recomputation_takes_longer(seq_len: int, micro_batch: int) -> None:
    job = replace(JOB, seq_len=seq_len, micro_batch=micro_batch)
    none, selective, full = (
        float(step(job=replace(job, recompute=mode)).step_s) for mode in ("none", "selective", "full")
    )
    assert none < selective < full


@settings(max_examples=20, deadline=None)
@given(micro_batches=st.integers(1, 64), pp=st.sampled_from([2, 4, 8]))
def test_the_bubble_is_its_formula_and_interleaving_shrinks_it(micro_batches: int, pp: int) -> None:
    whole = float(bubble_fraction(pp=pp, vp=1, micro_batches=micro_batches))
    assert whole == pytest.approx((pp - 1) / (micro_batches + pp - 1))
    assert float(bubble_fraction(pp=pp, vp=2, micro_batches=micro_batches)) < whole
    job = replace(JOB, micro_batches=micro_batches)
    arrays = step(layout=TrainingLayout(pp=pp), job=job)
    assert float(arrays.pipeline_bubble_fraction) <= whole + 1e-9
    assert float(arrays.pipeline_bubble_fraction) == pytest.approx(whole, rel=0.25)


def test_frozen_weights_make_the_backward_pass_cheaper() -> None:
    full = step(job=replace(JOB, method="full-ft"))
    lora = step(job=replace(JOB, method="lora"))
    ratio = float(lora.terms.gemm_s) / float(full.terms.gemm_s)
    assert ratio == pytest.approx(2 / 3)
    assert float(lora.terms.optimizer_s) < 0.05 * float(full.terms.optimizer_s)


def test_preference_methods_run_more_passes() -> None:
    plain = step(job=replace(JOB, method="full-ft"))
    dpo, grpo, ppo = (step(job=replace(JOB, method=name)) for name in ("dpo", "grpo", "ppo"))
    assert float(plain.step_s) < float(dpo.step_s) < float(grpo.step_s) < float(ppo.step_s)


def test_rollout_in_turn_adds_and_beside_hides() -> None:
    asked = question(job=replace(JOB, method="grpo"))
    alone = float(step_arrays(asked).step_s)
    turn = float(step_arrays(replace(asked, rollout=Rollout(seconds_s=10.0))).step_s)
    assert turn == pytest.approx(alone + 10.0)
    beside = float(step_arrays(replace(asked, rollout=Rollout(seconds_s=alone / 2, overlapped=True))).step_s)
    assert beside == pytest.approx(alone)


def test_the_loop_takes_a_share_of_all_the_rest() -> None:
    asked = question(job=replace(JOB, method="grpo"))
    bare = step_arrays(replace(asked, rollout=Rollout(seconds_s=10.0)))
    looped = step_arrays(replace(asked, rollout=Rollout(seconds_s=10.0, loop_factor=1.5)))
    assert float(looped.step_s) == pytest.approx(1.5 * float(bare.step_s))
    assert float(looped.terms.loop_s) == pytest.approx(0.5 * float(bare.step_s))
    assert float(bare.terms.loop_s) == 0


@settings(max_examples=40, deadline=None)
@given(answers=st.integers(1, 4096), limit=st.integers(1, 512), longest=st.integers(1000, 8000))
def test_generation_ends_with_its_longest_answer(answers: int, limit: int, longest: int) -> None:
    def seconds(many: float, cut: float) -> float:
        return float(
            generation_s(
                answers=many, mean_tokens=1000.0, longest_tokens=cut, alone_s=0.01, full_s=0.04, limit=float(limit)
            )
        )

    assert seconds(answers, longest) >= longest * 0.01
    assert seconds(answers, longest) >= answers / limit * 1000 * 0.01
    assert seconds(answers + 1, longest) >= seconds(answers, longest)
    assert seconds(answers, longest + 100) == pytest.approx(seconds(answers, longest) + 1.0)


def test_reinforcement_is_known_more_loosely() -> None:
    assert loop_factor() > 1
    assert loop_spread_factor(mixture=True) > loop_spread_factor(mixture=False) > 1


def test_fp8_is_faster_than_bf16_but_not_twice() -> None:
    ratio = float(step().step_s) / float(step(job=replace(JOB, precision="fp8")).step_s)
    assert 1.1 < ratio < 2.0


def test_tensor_parallelism_over_the_network_is_worse_than_inside_a_node() -> None:
    inside = step(layout=TrainingLayout(tp=8)).terms.tp_s
    outside = step(layout=TrainingLayout(tp=16)).terms.tp_s
    assert float(outside) > 1.5 * float(inside) > 0


def test_groups_that_stand_apart_share_the_network() -> None:
    assert float(strided(HARDWARE, 2.0).node_devices) == 4.0
    assert float(strided(HARDWARE, 2.0).network_bytes_per_s) == 200e9
    assert float(strided(HARDWARE, 16.0).network_bytes_per_s) == 50e9


def test_sharded_weights_are_gathered_every_micro_batch() -> None:
    layout = TrainingLayout(dp=64, shard="zero3")
    assert float(step(layout=layout).terms.gather_s) > 0
    assert float(step(layout=layout).terms.dp_s) == 0
    assert float(step(layout=replace(layout, shard="zero1")).terms.dp_s) > 0


def test_gradients_are_scattered_once_a_step_and_under_zero2_every_micro_batch() -> None:
    once, every = (step(layout=TrainingLayout(dp=64, shard=name)).terms.dp_s for name in ("zero1", "zero2"))
    assert float(every) > 4 * float(once)


def test_a_frozen_base_is_gathered_as_it_is_held() -> None:
    layout, wide = TrainingLayout(dp=64, shard="zero3"), replace(JOB, method="lora")
    packed = replace(wide, base_format="nf4")
    held, unpacked = (float(step(layout=layout, job=job, trainer="hf").terms.gather_s) for job in (packed, wide))
    assert held < 0.4 * unpacked


def test_a_packed_base_is_unpacked_once_a_pass() -> None:
    assert float(step(job=replace(JOB, method="lora")).terms.unpacking_s) == 0
    twice, thrice = (
        float(step(job=replace(JOB, method="qlora", recompute=mode)).terms.unpacking_s) for mode in ("none", "full")
    )
    assert thrice == pytest.approx(1.5 * twice)


def test_recomputing_half_of_the_layers_takes_half_as_much_more() -> None:
    asked = question(job=replace(JOB, recompute="full"))
    whole, half = (step_arrays(replace(asked, recomputed_fraction=share)).terms.recompute_s for share in (1.0, 0.5))
    light = float(step(job=replace(JOB, recompute="selective")).terms.recompute_s)
    assert float(half) - light == pytest.approx((float(whole) - light) / 2)
    assert float(step_arrays(replace(asked, recomputed_fraction=0.5)).hfu_fraction) == pytest.approx(
        float(step_arrays(replace(asked, recomputed_fraction=0.5)).mfu_fraction) * 7 / 6
    )


def test_formats_of_few_bits_pay_for_casts() -> None:
    asked = question(job=replace(JOB, precision="fp8"))
    free = replace(asked, coefficients=replace(asked.coefficients, cast_factor=0.0))
    assert float(step_arrays(asked).terms.elementwise_s) > float(step_arrays(free).terms.elementwise_s)
    plain = question()
    same = replace(plain, coefficients=replace(plain.coefficients, cast_factor=9.0))
    assert float(step_arrays(plain).step_s) == float(step_arrays(same).step_s)


def test_tokens_of_a_tensor_parallel_group_are_dealt_to_its_experts() -> None:
    layouts = [TrainingLayout(tp=tp, dp=8 // tp, ep=8, shard="zero1") for tp in (1, 2, 4, 8)]
    work = [forward_work(shards=training_shards(MOE, one), layout=one, job=JOB) for one in layouts]
    whole = [float(one.expert_flops) * float(layout.tp) for one, layout in zip(work, layouts, strict=True)]
    assert whole == pytest.approx([whole[0]] * 4)
    cut = TrainingLayout(tp=4, ep=2)
    alone = forward_work(shards=training_shards(MOE, cut), layout=cut, job=JOB)
    assert float(alone.expert_flops) * 4 == pytest.approx(whole[0])


def test_the_fullest_device_decides_unless_routing_is_forced_even() -> None:
    asked = question(MOE, layout=TrainingLayout(dp=8, ep=8, shard="zero1"))
    forced = replace(asked.job, even_routing=True)
    even = step_arrays(replace(asked, job=forced)).terms
    free = step_arrays(asked).terms
    assert float(free.expert_s) == pytest.approx(float(even.expert_s) * float(asked.coefficients.imbalance_factor))
    assert float(free.gemm_s) == float(even.gemm_s)
    whole = question(MOE)
    assert float(step_arrays(whole).step_s) == float(step_arrays(replace(whole, job=forced)).step_s)


def test_recurrent_layers_scan_instead_of_attending() -> None:
    shards = training_shards(LLAMA_8B, TrainingLayout())
    layer = shards.layers[0]
    cache = replace(layer.cache, kind="mamba", state_bytes_per_sequence=4.0 * 32 * 128 * 128)
    scans = replace(shards, layers=(replace(layer, cache=cache),))
    work = forward_work(shards=scans, layout=TrainingLayout(), job=JOB)
    assert float(work.attention_flops) == 0
    assert float(work.scan_flops) == pytest.approx(32 * 2 * 4096 * (128 * 32 * 256 + 2 * 32 * 128 * 128))
    longer = forward_work(shards=scans, layout=TrainingLayout(), job=replace(JOB, seq_len=8192))
    assert float(longer.scan_flops) == pytest.approx(2 * float(work.scan_flops))


def test_experts_exchange_tokens() -> None:
    arrays = step(MOE, layout=TrainingLayout(dp=16, ep=16, shard="zero1"))
    assert float(arrays.terms.ep_s) > 0
    assert float(step(MOE, layout=TrainingLayout(dp=16, shard="zero1")).terms.ep_s) == 0


def test_one_call_predicts_many_layouts() -> None:
    tp = np.array([1.0, 2.0, 4.0, 8.0])
    many = step(layout=TrainingLayout(tp=tp, dp=8, shard="zero1"))
    each = [float(step(layout=TrainingLayout(tp=int(one), dp=8, shard="zero1")).step_s) for one in tp]
    assert np.allclose(many.step_s, each)


def test_windows_bound_the_context() -> None:
    layer = training_shards(LLAMA_8B, TrainingLayout()).layers[0]
    windowed = replace(layer, cache=replace(layer.cache, kind="sliding", window_tokens=512))
    assert context_tokens(layer, JOB) == 2048
    assert float(context_tokens(windowed, JOB)) == 512


@settings(max_examples=30, deadline=None)
@given(waited=st.floats(0, 100), busy=st.floats(0, 100), overlap=st.floats(0, 1))
def test_hidden_communication_is_never_more_than_either(waited: float, busy: float, overlap: float) -> None:
    left = float(exposed_s(communication_s=waited, compute_s=busy, overlap_fraction=overlap))
    assert max(waited - busy, 0) - 1e-9 <= left <= waited + 1e-9


def test_communication_efficiency_is_compute_over_compute_and_wait() -> None:
    seconds = {one.name: 0.0 for one in fields(StepTerms)} | {"gemm_s": 9.0, "tp_s": 1.0, "bubble_s": 5.0}
    found = efficiencies(StepTerms(**seconds), spread=1.5)
    assert found.overall.mid == pytest.approx(0.9)
    assert found.tp is not None
    assert found.tp.low < found.tp.mid < found.tp.high
    assert found.ep is None


def test_a_prediction_has_ordered_ranges() -> None:
    found = predict_training(question(layout=TrainingLayout(tp=2, dp=8, shard="zero1")))
    for one in (found.step_s, found.tokens_per_s, found.tokens_per_s_per_chip, found.samples_per_s, found.mfu_fraction):
        assert 0 < one.low < one.mid < one.high


def test_what_backs_a_prediction_and_how_wide_it_is() -> None:
    known = training_coefficients(generation="hopper", precision="bf16", trainer="nemo")
    unknown = training_coefficients(generation="unheard-of", precision="bf16", trainer="nemo")
    assert 1 < known.spread_factor < unknown.spread_factor
    assert known.spread(mixture=True) > known.spread(mixture=False)
    assert float(question(MOE).spread_factor) > float(question().spread_factor)
    assert training_evidence(generation="hopper", precision="fp8") == "calibrated"
    assert training_evidence(generation="neuroncore-v3", precision="bf16") == "transferred"


def test_coefficients_of_unknown_chips_are_the_general_ones() -> None:
    unknown = training_coefficients(generation="unheard-of", precision="fp8", trainer="nobody")
    assert 0 < unknown.gemm_fraction < 1
    assert set(NAMES) == {one.name for one in fields(unknown)}
    narrow = training_coefficients(generation="hopper", precision="fp8", trainer="nemo")
    assert (
        narrow.attention_fraction
        > training_coefficients(generation="hopper", precision="fp8", trainer="fsdp").attention_fraction
    )
