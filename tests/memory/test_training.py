"""Training memory: worked numbers, what must shrink what, refusals."""

from __future__ import annotations

import csv
from dataclasses import replace
from importlib import resources

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.errors import InputError, UnknownNameError
from chipwise.memory.training import (
    RolesInput,
    TrainingMemory,
    TrainingMemoryInput,
    generation_cache_bytes,
    shard_counts,
    state_bytes,
    training_memory,
)
from chipwise.memory.training_activations import in_flight
from chipwise.memory.training_budget import size_training, training_changes
from chipwise.memory.training_fitting import candidate_layouts, least_recompute, min_devices, training_fits
from chipwise.memory.training_job import Adapter, TrainingJob, TrainingLayout, layout_problem, training_shards
from chipwise.memory.training_recipes import fitted, optimizer_of, optimizers, recipe_named, recipe_of, recipes
from chipwise.memory.training_shapes import device_params, saved_elements
from chipwise.model import Attention, Experts, Layer, ModelSpec, Weight

GB = 1e9
A_70B_PARAMS = 70_553_706_496


def weight(name: str, part: str, shape: tuple[int, int], units: int = 1, cut: str = "out") -> Weight:
    return Weight(name=name, part=part, out_features=shape[0], in_features=shape[1], tp_units=units, cut=cut)  # type: ignore[arg-type]  # short fixtures


def decoder(*, hidden: int, wide: int, heads: tuple[int, int], layers: int, vocab: int, experts: int = 0) -> ModelSpec:
    """A Llama shape; `heads` are query and KV heads."""
    query_heads, kv_heads = heads
    head = hidden // query_heads
    attention = (
        weight("q", "attention", (hidden, hidden), query_heads),
        weight("k", "attention", (kv_heads * head, hidden), kv_heads),
        weight("v", "attention", (kv_heads * head, hidden), kv_heads),
        weight("o", "attention", (hidden, hidden), query_heads, "in"),
    )
    part = "expert" if experts else "mlp"
    feed = (
        weight("gate", part, (wide, hidden), wide),
        weight("up", part, (wide, hidden), wide),
        weight("down", part, (hidden, wide), wide, "in"),
    )
    norms = tuple(replace(weight("norm", "norm", (hidden, 1)), gemm=False) for _ in range(2))
    layer = Layer(
        count=layers,
        attention=Attention(
            kind="full", query_heads=query_heads, kv_heads=kv_heads, head_dim=head, value_head_dim=head
        ),
        weights=attention + norms + (() if experts else feed),
        experts=Experts(routed=experts, per_token=2, weights=feed) if experts else None,
    )
    return ModelSpec(
        name="test",
        model_type="llama",
        architecture="dense-llm",
        layers=(layer,),
        outer=(
            replace(weight("embedding", "embedding", (vocab, hidden), vocab), gemm=False),
            weight("head", "head", (vocab, hidden), vocab),
            replace(weight("norm", "norm", (hidden, 1)), gemm=False),
        ),
        hidden_size=hidden,
        vocab_size=vocab,
        max_context_tokens=8192,
        dtype="bfloat16",
        params_source="config",
    )


LLAMA_70B = decoder(hidden=8192, wide=28672, heads=(64, 8), layers=80, vocab=128256)
LLAMA_8B = decoder(hidden=4096, wide=14336, heads=(32, 8), layers=32, vocab=128256)
MOE = decoder(hidden=2048, wide=1024, heads=(16, 4), layers=24, vocab=32000, experts=64)
JOB = TrainingJob(method="pretrain", seq_len=4096, micro_batch=1, micro_batches=8)


def held(
    model: ModelSpec = LLAMA_8B, *, layout: TrainingLayout | None = None, job: TrainingJob = JOB
) -> TrainingMemory:
    return training_memory(TrainingMemoryInput(model=model, layout=layout or TrainingLayout(), job=job))


def states(memory: TrainingMemory) -> float:
    return float(memory.weights_bytes + memory.gradients_bytes + memory.optimizer_bytes)


def test_adamw_in_mixed_precision_takes_18_bytes_a_parameter() -> None:
    assert LLAMA_70B.params_total == A_70B_PARAMS
    assert states(held(LLAMA_70B)) == pytest.approx(18 * A_70B_PARAMS, rel=1e-9)
    sixteen = held(LLAMA_70B, job=replace(JOB, trainer="deepspeed"))
    assert states(sixteen) == pytest.approx(16 * A_70B_PARAMS, rel=1e-9)


def test_zero_1_2_and_3_cut_what_they_say() -> None:
    by_shard = {shard: held(layout=TrainingLayout(dp=8, shard=shard)) for shard in ("none", "zero1", "zero2", "zero3")}
    whole = by_shard["none"]
    assert by_shard["zero1"].optimizer_bytes == pytest.approx(float(whole.optimizer_bytes) / 8)
    assert by_shard["zero1"].gradients_bytes == whole.gradients_bytes
    assert by_shard["zero2"].gradients_bytes == pytest.approx(float(whole.gradients_bytes) / 8)
    assert by_shard["zero2"].weights_bytes == whole.weights_bytes
    assert by_shard["zero3"].weights_bytes == pytest.approx(float(whole.weights_bytes) / 8)


@settings(max_examples=25, deadline=None)
@given(power=st.integers(1, 6))
def test_fsdp_over_twice_the_devices_halves_the_states(power: int) -> None:
    one = states(held(layout=TrainingLayout(dp=2**power, shard="zero3")))
    two = states(held(layout=TrainingLayout(dp=2 ** (power + 1), shard="zero3")))
    assert two == pytest.approx(one / 2)


def test_routed_tokens_count_for_every_expert_and_more_on_the_busiest_device() -> None:
    even = replace(JOB, even_routing=True, fused_loss=True)
    uneven = replace(even, even_routing=False)
    # top 2, sent once: what enters (2048), gate and up (2 x 1024), product (1024), 2 bytes each
    routed = 4096 * 24 * 2 * (2048 + 3 * 1024) * 2
    more = float(held(MOE, job=uneven).activations_bytes) - float(held(MOE, job=even).activations_bytes)
    assert more == pytest.approx(routed * (fitted().hot_expert_factor - 1.0) * fitted().fused_factor)
    split = TrainingLayout(tp=2, ep=8, dp=4)
    shared = float(held(MOE, layout=split, job=uneven).activations_bytes)
    shared -= float(held(MOE, layout=split, job=even).activations_bytes)
    assert shared == pytest.approx(more / 2)


def test_adapters_are_tiny_and_the_base_has_no_states() -> None:
    job = replace(JOB, method="lora", trainer="hf", adapter=Adapter(rank=16, targets="all-linear"))
    memory = held(LLAMA_70B, job=job)
    assert memory.gradients_bytes == 0.0
    assert memory.optimizer_bytes == 0.0
    assert float(memory.weights_bytes) == pytest.approx(2 * A_70B_PARAMS, rel=1e-9)
    # per layer: q, o 2 x 16384; k, v 2 x 9216; gate, up, down 3 x 36864 -> x 16 x 80 layers x 16 bytes
    assert float(memory.adapters_bytes) == pytest.approx((2 * 16384 + 2 * 9216 + 3 * 36864) * 16 * 80 * 16)
    assert float(memory.adapters_bytes) < 0.03 * float(memory.weights_bytes)


def test_qlora_holds_the_layers_in_4_bits_and_embeddings_in_16() -> None:
    job = replace(JOB, method="qlora", trainer="hf")
    outer = 2 * 128256 * 8192 + 8192
    layers = A_70B_PARAMS - outer
    assert float(held(LLAMA_70B, job=job).weights_bytes) == pytest.approx(layers * 4.5 / 8 + outer * 2, rel=0.01)


def test_optimizers_differ_as_they_should() -> None:
    def of(name: str) -> float:
        return float(held(job=replace(JOB, optimizer=name)).optimizer_bytes)

    assert of("sgd") < of("adafactor") < of("adamw-8bit") < of("muon") < of("adamw")
    assert of("paged-adamw") == 0.0
    assert held(job=replace(JOB, offload="optimizer")).optimizer_bytes == 0.0


def test_experts_are_shared_out_over_data_parallel_devices() -> None:
    alone = held(MOE, layout=TrainingLayout(dp=8, shard="zero1"))
    dealt = held(MOE, layout=TrainingLayout(dp=8, ep=8, shard="zero1"))
    experts = 24 * 64 * 3 * 2048 * 1024 * 2
    assert float(alone.weights_bytes) - float(dealt.weights_bytes) == pytest.approx(experts * 7 / 8)


def test_reinforcement_learning_holds_the_other_models() -> None:
    roles = RolesInput(frozen=(LLAMA_8B, LLAMA_8B), trained=(LLAMA_8B,), generation_tp=1, generation_cache_bytes=5e9)
    question = TrainingMemoryInput(model=LLAMA_8B, layout=TrainingLayout(), job=replace(JOB, method="ppo"), roles=roles)
    memory = training_memory(question)
    alone = held(job=replace(JOB, method="ppo"))
    assert float(memory.weights_bytes) == pytest.approx(5 * float(alone.weights_bytes))
    assert float(memory.optimizer_bytes) == pytest.approx(2 * float(alone.optimizer_bytes))
    assert memory.cache_bytes == 5e9


def test_one_call_sizes_many_layouts() -> None:
    tp = np.array([1.0, 2.0, 4.0, 8.0])
    many = held(LLAMA_70B, layout=TrainingLayout(tp=tp, dp=8, shard="zero1"))
    each = [held(LLAMA_70B, layout=TrainingLayout(tp=int(one), dp=8, shard="zero1")) for one in tp]
    assert np.allclose(many.total_bytes, [float(one.total_bytes) for one in each])


def test_the_budget_adds_up_to_the_capacity() -> None:
    for capacity in (40e9, 800e9):
        question = TrainingMemoryInput(model=LLAMA_8B, layout=TrainingLayout(), job=JOB)
        answer = size_training(question, capacity_bytes=capacity)
        terms = sum(float(np.asarray(term)) for term in answer.budget.terms().values())
        assert terms + float(answer.budget.free_bytes) == pytest.approx(capacity + float(answer.shortfall_bytes))
        assert answer.fits == (answer.shortfall_bytes == 0.0)
        assert not (float(answer.budget.free_bytes) > 0 and float(answer.shortfall_bytes) > 0)


def test_an_8b_full_fine_tune_does_not_fit_one_80_gb_chip_but_adapters_do() -> None:
    full = TrainingMemoryInput(model=LLAMA_8B, layout=TrainingLayout(), job=replace(JOB, method="full-ft"))
    assert not training_fits(full, 80 * GB)
    lora = replace(full, job=replace(JOB, method="lora", seq_len=2048))
    assert training_fits(lora, 80 * GB)
    changes = training_changes(full, capacity_bytes=80 * GB)
    assert all(change.frees_bytes > 0 for change in changes)
    assert any(change.enough for change in changes if "adapters" in change.change)


def test_the_least_recomputation_that_fits_is_taken() -> None:
    question = TrainingMemoryInput(model=LLAMA_8B, layout=TrainingLayout(dp=64, shard="zero3"), job=JOB)
    assert least_recompute(question, 80e9).job.recompute == "none"
    assert least_recompute(question, 20e9).job.recompute == "full"


def test_candidate_layouts_are_legal_and_use_every_device() -> None:
    found = candidate_layouts(model=LLAMA_70B, job=JOB, devices=64, node_devices=8)
    assert {float(one.devices) for one in found} == {64.0}
    assert {one.tp for one in found} == {1, 2, 4, 8}
    assert all(layout_problem(LLAMA_70B, one) is None for one in found)
    assert {one.ep for one in candidate_layouts(model=MOE, job=JOB, devices=16, node_devices=8)} >= {8}


def test_pieces() -> None:
    assert shard_counts("zero3", 4) == (4, 4, 4)
    assert float(in_flight(pp=8, vp=1, micro_batches=2)) == 2.0
    pieces = state_bytes(
        params=1.0, recipe=recipes()["megatron"], optimizer=optimizers()["adamw"], shards=(1.0, 1.0, 1.0)
    )
    assert (pieces.weights_bytes, pieces.gradients_bytes, pieces.optimizer_bytes) == (2.0, 4.0, 12.0)


def test_trainers_are_known_by_the_names_sources_print() -> None:
    assert recipe_named("Megatron-Bridge (NeMo)") == "nemo"
    assert recipe_named("Megatron-DeepSpeed") == "megatron-deepspeed"
    assert recipe_named("HF PEFT 0.19.2.dev0") == "hf"
    assert recipe_of(replace(JOB, method="qlora")).name == "hf"
    with pytest.raises(UnknownNameError):
        recipe_named("abacus")


@pytest.mark.parametrize("change", [{"seq_len": 0}, {"micro_batch": -1}, {"micro_batches": 0}])
def test_a_step_without_tokens_is_refused(change: dict[str, int]) -> None:
    with pytest.raises(InputError):
        replace(JOB, **change)  # type: ignore[arg-type]  # parametrised


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnknownNameError):
        replace(JOB, method="pre-train")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(UnknownNameError):
        optimizer_of(replace(JOB, optimizer="adamz"))


def test_layouts_that_cannot_be_say_why() -> None:
    assert "mixture-of-experts" in str(layout_problem(LLAMA_8B, TrainingLayout(ep=8, dp=8)))
    assert "does not divide" in str(layout_problem(MOE, TrainingLayout(ep=7, dp=7)))
    assert "layers" in str(layout_problem(LLAMA_8B, TrainingLayout(pp=16, vp=4)))
    assert "tp x cp x dp" in str(layout_problem(MOE, TrainingLayout(ep=8, dp=4)))


def test_a_generation_engine_s_cache_by_hand() -> None:
    # 32 layers x 2 x 8 KV heads x 128 x 2 bytes = 131,072 bytes a token, halved by tp 2
    whole = generation_cache_bytes(LLAMA_8B, tp=1, sequences=16, tokens=2048)
    assert float(whole) == 131072 * 16 * 2048
    assert float(generation_cache_bytes(LLAMA_8B, tp=2, sequences=16, tokens=2048)) == float(whole) / 2


def test_the_fewest_devices_hold_the_states_over_them() -> None:
    # 8.03 G x 18 bytes = 144.5 GB of states: two devices hold 72.3 each beside their activations, 60 GB need four
    full = TrainingMemoryInput(
        model=LLAMA_8B, layout=TrainingLayout(), job=replace(JOB, recompute="full", seq_len=2048)
    )
    assert min_devices(full, capacity_bytes=80 * GB, node_devices=8) == 2
    assert min_devices(full, capacity_bytes=60 * GB, node_devices=8) == 4
    assert min_devices(full, capacity_bytes=200 * GB, node_devices=8) == 1
    assert min_devices(full, capacity_bytes=1 * GB, node_devices=8) is None
    four = replace(full, job=replace(full.job, micro_batch=4))
    halved = {one.change: one.frees_bytes for one in training_changes(four, capacity_bytes=GB)}["halve the micro-batch"]
    freed = held(job=four.job, layout=four.layout).activations_bytes / 2
    assert halved == pytest.approx(freed * (1 + fitted().slack_fraction))
    lora = replace(full, job=replace(full.job, method="lora", trainer="hf"))
    assert min_devices(lora, capacity_bytes=40 * GB, node_devices=8) == 1


def test_every_trainer_has_one_name_and_a_recipe() -> None:
    text = resources.files("chipwise.memory").joinpath("data/training_trainers.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    names = [row["alias"] for row in rows]
    assert len(set(names)) == len(names)
    assert {row["recipe"] for row in rows} <= set(recipes())
    assert {one.family for one in recipes().values()} <= set(recipes())
    assert recipe_named("LLaMA-Factory 0.9") == "hf-amp"
    assert recipe_named("Unsloth 2025.1 (TRL)") == "unsloth"


def test_what_passes_between_the_matrices_by_hand() -> None:
    passed = saved_elements(training_shards(LLAMA_8B, TrainingLayout()), TrainingLayout())
    # two norms in and out; query, key, value and the output's input; gate, up and what the last matrix takes
    assert float(passed.stream) == 32 * 4 * 4096
    assert float(passed.inner) == 32 * (2 * 4096 + 2 * 1024 + 3 * 14336)
    assert float(passed.scores) == 32 * 32
    assert float(passed.routed) == 0.0
    split = TrainingLayout(tp=2)
    halved = saved_elements(training_shards(LLAMA_8B, split), split)
    assert (halved.stream, halved.inner) == (passed.stream / 2, passed.inner / 2)
    whole = TrainingLayout(tp=2, sequence_parallel=False)
    assert saved_elements(training_shards(LLAMA_8B, whole), whole).stream == passed.stream
    # two experts a token: sent and joined (2 x 2048), gate, up and product (3 x 1024)
    mixed = saved_elements(training_shards(MOE, TrainingLayout()), TrainingLayout())
    assert float(mixed.stream) == 24 * 4 * 2048
    assert float(mixed.routed) == 24 * 2 * (2 * 2048 + 3 * 1024)


def test_degrees_that_a_model_s_heads_forbid_are_not_tried() -> None:
    odd = decoder(hidden=1920, wide=5760, heads=(15, 5), layers=24, vocab=32000)
    found = candidate_layouts(model=odd, job=JOB, devices=8, node_devices=8)
    assert {one.tp for one in found} == {1}
    assert {one.pp for one in found} == {1, 2, 4, 8}
    few = candidate_layouts(model=odd, job=replace(JOB, micro_batches=2), devices=8, node_devices=8)
    assert {one.pp for one in few} == {1, 2}
    assert {(one.dp > 1, one.pp > 1, one.shard) for one in found} == {
        (True, False, "zero1"), (True, False, "zero3"), (True, True, "zero1"), (False, True, "none"),
    }  # fmt: skip


def test_every_term_of_a_chip_is_that_of_its_devices() -> None:
    roles = RolesInput(frozen=(LLAMA_8B,), generation_tp=1, generation_cache_bytes=3e9)
    for job in (JOB, replace(JOB, method="lora", trainer="hf")):
        question = TrainingMemoryInput(model=LLAMA_8B, layout=TrainingLayout(), job=job, roles=roles)
        one = size_training(question, capacity_bytes=1e12).budget.terms()
        two = size_training(question, capacity_bytes=1e12, devices_per_chip=2).budget.terms()
        assert {name: 2 * float(value) for name, value in one.items() if name != "reserved_bytes"} == {
            name: float(value) for name, value in two.items() if name != "reserved_bytes"
        }
        assert float(one["reserved_bytes"]) == float(two["reserved_bytes"])
        assert float(one["reserved_bytes"]) == pytest.approx((1.0 - fitted().usable_fraction) * 1e12)


def test_changes_are_tried_on_every_device_of_a_chip() -> None:
    full = TrainingMemoryInput(model=LLAMA_8B, layout=TrainingLayout(dp=8), job=replace(JOB, micro_batch=4))
    one = {change.change: change for change in training_changes(full, capacity_bytes=200 * GB)}
    two = {change.change: change for change in training_changes(full, capacity_bytes=400 * GB, devices_per_chip=2)}
    assert set(one) == {
        "fuse the loss with the head", "recompute selectively", "recompute every layer", "halve the micro-batch",
        "shard the weights (FSDP)", "8-bit optimizer states", "hold optimizer states on the host",
        "train adapters only (LoRA)",
    }  # fmt: skip
    for name, change in one.items():
        assert two[name].frees_bytes == pytest.approx(2 * change.frees_bytes)
        assert two[name].enough == change.enough
    lora = replace(full, job=replace(full.job, method="lora", trainer="hf", micro_batch=1, recompute="full"))
    assert "hold the base in 4 bits (QLoRA)" in {one.change for one in training_changes(lora, capacity_bytes=GB)}
    sharded = replace(full, layout=TrainingLayout(dp=8, shard="zero3"))
    names = {one.change for one in training_changes(sharded, capacity_bytes=GB)}
    assert "shard the weights (FSDP)" not in names
    staged = replace(full, layout=TrainingLayout(dp=8, pp=2))
    assert "shard the weights (FSDP)" not in {one.change for one in training_changes(staged, capacity_bytes=GB)}


def test_copies_of_embedding_and_head_are_trained_in_16_bits() -> None:
    plain = replace(JOB, method="lora", trainer="hf", adapter=Adapter(rank=16))
    both = replace(plain, adapter=Adapter(rank=16, train_embeddings=True))
    layout = TrainingLayout(dp=4, shard="zero2")
    more = float(held(job=both, layout=layout).adapters_bytes) - float(held(job=plain, layout=layout).adapters_bytes)
    assert more == pytest.approx(2 * 128256 * 4096 * (2 + 2 / 4 + 8 / 4))


def test_experts_are_updated_where_they_are() -> None:
    short = replace(JOB, method="full-ft", trainer="hf", seq_len=1, micro_batches=1)
    layout = TrainingLayout(dp=8, ep=4, shard="zero1")
    experts = 24 * 64 * 3 * 2048 * 1024
    dense = MOE.params_total - experts
    found = float(held(MOE, layout=layout, job=short).activations_bytes)
    assert found == pytest.approx(2 * (dense / 8 + experts / 4 / 2))


def test_adapters_are_sharded_only_without_stages() -> None:
    job = replace(JOB, method="lora", trainer="hf")
    found = candidate_layouts(model=LLAMA_8B, job=job, devices=8, node_devices=4)
    assert {(float(one.pp) > 1, one.shard) for one in found if float(one.dp) > 1} == {
        (False, "none"), (False, "zero3"), (True, "none"),
    }  # fmt: skip
    assert {one.shard for one in found if float(one.dp) == 1} == {"none"}
    assert {float(one.tp) for one in found} == {1, 2, 4}


def test_a_layout_s_problem_names_its_number() -> None:
    assert "= 4" in str(layout_problem(MOE, TrainingLayout(ep=8, dp=4)))
    assert "= 8" in str(layout_problem(MOE, TrainingLayout(ep=64, dp=2, tp=2, cp=2)))
    assert layout_problem(MOE, TrainingLayout(ep=8, dp=4, tp=2)) is None
    assert layout_problem(LLAMA_8B, TrainingLayout(pp=8, vp=4)) is None
    assert "33" not in str(layout_problem(LLAMA_8B, TrainingLayout(pp=32)))
    assert "= 64 stages" in str(layout_problem(LLAMA_8B, TrainingLayout(pp=32, vp=2)))


def test_a_stage_holds_its_own_end_of_the_model() -> None:
    ends = 128256 * 4096
    whole = device_params(training_shards(LLAMA_8B, TrainingLayout()))
    stage = device_params(training_shards(LLAMA_8B, TrainingLayout(pp=2)))
    assert float(whole.outer) == 2 * ends + 4096
    assert float(stage.outer) == ends + 4096  # the last stage: head and final norm
    assert float(stage.dense) == float(whole.dense) / 2


def test_adapters_have_a_usual_rank() -> None:
    assert Adapter().rank == 16
    assert Adapter().targets == "all-linear"
    assert not Adapter().train_embeddings


def test_muon_leaves_embedding_and_head_to_adamw() -> None:
    """Master and one moment of 4 bytes a parameter; of embedding, head and final norm a second moment."""
    ends = 2 * 128256 * 4096 + 4096
    found = float(held(job=replace(JOB, optimizer="muon")).optimizer_bytes)
    assert found == pytest.approx(8 * LLAMA_8B.params_total + 4 * ends, rel=1e-9)


@pytest.mark.parametrize(("shard", "over"), [("none", (1, 1)), ("zero3", (8, 2))])
def test_a_frozen_base_is_cut_only_under_full_sharding(shard: str, over: tuple[int, int]) -> None:
    """Over 8 copies with ep 4 an expert's device shares it with one other."""
    job = replace(JOB, method="lora", trainer="hf")
    layout = TrainingLayout(dp=8, ep=4, shard=shard)  # type: ignore[arg-type]  # a word of the parameters
    experts = 24 * 64 * 3 * 2048 * 1024
    found = float(held(MOE, layout=layout, job=job).weights_bytes)
    assert found == pytest.approx(2 * ((MOE.params_total - experts) / over[0] + experts / 4 / over[1]))


def test_optimizers_are_known_as_transformers_spells_them() -> None:
    assert optimizer_of(replace(JOB, optimizer="paged_adamw_8bit")) == optimizers()["paged-adamw-8bit"]
    with pytest.raises(UnknownNameError) as refused:
        optimizer_of(replace(JOB, optimizer="zzz"))
    assert refused.value.fix.startswith("known: adamw, adam, ")


def test_a_change_that_fills_the_chip_to_the_share_that_can_be_used_is_enough() -> None:
    full = TrainingMemoryInput(model=LLAMA_8B, layout=TrainingLayout(), job=replace(JOB, method="full-ft"))
    host = training_memory(replace(full, job=replace(full.job, offload="optimizer")))
    exactly = float(host.total_bytes) / fitted().usable_fraction
    for capacity, enough in ((exactly * (1 + 1e-12), True), (exactly * 0.999, False)):
        found = {one.change: one.enough for one in training_changes(full, capacity_bytes=capacity)}
        assert found["hold optimizer states on the host"] is enough


def test_many_layouts_fit_only_where_all_do() -> None:
    """18 bytes a parameter of 8B over 1 and 8 devices: the first does not fit 80 GB, so not all do."""
    both = TrainingMemoryInput(model=LLAMA_8B, layout=TrainingLayout(dp=np.array([1, 8]), shard="zero3"), job=JOB)
    answer = size_training(both, capacity_bytes=80 * GB)
    assert list(np.asarray(answer.shortfall_bytes) > 0) == [True, False]
    assert not answer.fits
    assert size_training(both, capacity_bytes=400 * GB).fits


def test_a_run_that_lacks_one_byte_does_not_fit() -> None:
    question = TrainingMemoryInput(model=LLAMA_8B, layout=TrainingLayout(), job=JOB)
    exactly = float(training_memory(question).total_bytes) / fitted().usable_fraction
    assert size_training(question, capacity_bytes=exactly * (1 + 1e-12)).fits
    assert not size_training(question, capacity_bytes=exactly - 2.0).fits


def test_the_budget_of_a_chip_of_two_devices_adds_up() -> None:
    question = TrainingMemoryInput(model=LLAMA_8B, layout=TrainingLayout(), job=JOB)
    for capacity in (100e9, 1e12):
        answer = size_training(question, capacity_bytes=capacity, devices_per_chip=2)
        terms = sum(float(value) for value in answer.budget.terms().values())
        assert terms + float(answer.budget.free_bytes) == pytest.approx(capacity + float(answer.shortfall_bytes))
        assert answer.fits is (capacity > 1e11)
