"""What a training step keeps and gathers: worked numbers of one Llama layer, kernel by kernel."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.memory.training import TrainingMemory, TrainingMemoryInput, training_memory
from chipwise.memory.training_activations import kernels_of
from chipwise.memory.training_job import Adapter, TrainingJob, TrainingLayout, training_shards
from chipwise.memory.training_recipes import fitted, recipes
from chipwise.memory.training_shapes import device_params, saved_by
from chipwise.model import ModelSpec, Tower, load_model

LLAMA_8B = load_model("llama-3.1-8b")
"""32 layers of h = 4,096, 32 query and 8 KV heads of 128, an MLP of 14,336; 128,256 words, untied."""
JOB = TrainingJob(method="pretrain", seq_len=4096, micro_batch=1, micro_batches=8)


def held(
    model: ModelSpec = LLAMA_8B, *, layout: TrainingLayout | None = None, job: TrainingJob = JOB
) -> TrainingMemory:
    return training_memory(TrainingMemoryInput(model=model, layout=layout or TrainingLayout(), job=job))


@settings(max_examples=25, deadline=None)
@given(seq_len=st.integers(512, 16384), micro_batch=st.integers(1, 8), pp=st.sampled_from([1, 2, 4]))
def test_more_recomputation_never_takes_more(seq_len: int, micro_batch: int, pp: int) -> None:
    job = replace(JOB, seq_len=seq_len, micro_batch=micro_batch)
    layout = TrainingLayout(pp=pp)
    none, selective, full = (
        float(held(layout=layout, job=replace(job, recompute=mode)).total_bytes)
        for mode in ("none", "selective", "full")
    )
    assert full < selective < none


@settings(max_examples=25, deadline=None)
@given(seq_len=st.integers(512, 8192), micro_batch=st.integers(1, 8))
def test_memory_grows_with_sequence_micro_batch_and_layers(seq_len: int, micro_batch: int) -> None:
    job = replace(JOB, seq_len=seq_len, micro_batch=micro_batch)
    base = float(held(job=job).total_bytes)
    assert float(held(job=replace(job, seq_len=seq_len + 64)).total_bytes) > base
    assert float(held(job=replace(job, micro_batch=micro_batch + 1)).total_bytes) > base
    deeper = replace(LLAMA_8B, layers=(replace(LLAMA_8B.layers[0], count=33),))
    assert float(held(deeper, job=job).total_bytes) > base


def test_a_tensor_parallel_device_keeps_half_of_a_layers_activations() -> None:
    one = held(layout=TrainingLayout(tp=1))
    two = held(layout=TrainingLayout(tp=2))
    assert float(two.activations_bytes) == pytest.approx(float(one.activations_bytes) / 2, rel=0.01)
    apart = held(layout=TrainingLayout(tp=2, sequence_parallel=False))
    assert float(apart.activations_bytes) > float(two.activations_bytes)


def test_saved_activations_of_a_layer_by_hand() -> None:
    # h = 4096, KV 1024, MLP 14336: two norms in and out 4 h, query to output 2 h + 2 x 1024, gate, up, product
    elements = 4 * 4096 + (2 * 4096 + 2 * 1024) + 3 * 14336
    logits = 4096 * 128256 * 10
    expected = 4096 * 32 * elements * 2 * fitted().fused_factor + logits
    assert float(held().activations_bytes) == pytest.approx(expected, rel=1e-6)


def test_kernels_of_one_operation_keep_more_by_hand() -> None:
    # norms: 4 + 2 bytes in, 2 out; keys and values repeated for 32 query heads; the gate's output beside its input
    elements = 2 * 4096 * 3 + 2 * 4096 + 4 * 4096 + 4 * 14336
    expected = 4096 * 32 * elements * 2 * fitted().eager_factor + 4096 * 128256 * 12
    job = replace(JOB, method="full-ft", trainer="hf")
    assert float(held(job=job).activations_bytes) == pytest.approx(expected, rel=1e-6)


def test_a_frozen_base_keeps_no_inputs_but_the_adapters_do() -> None:
    def of(targets: str) -> float:
        adapter = Adapter(rank=16, targets=targets)  # type: ignore[arg-type]  # parametrised below
        job = replace(JOB, method="lora", trainer="hf", adapter=adapter)
        return float(held(job=job).activations_bytes)

    # 32-bit copies of what enters q and v, 2 x 4096; of all seven matrices: 6 x 4096 + 14336
    frozen = (2 * 4096 * 4 + 2 * 4 * 4096 + 2 * 3 * 14336) * 4096 * 32
    alone = of("query-value") - 4096 * 128256 * 12
    assert alone == pytest.approx((frozen + 4 * 2 * 4096 * 4096 * 32) * fitted().eager_factor)
    more = 4 * (6 * 4096 + 14336 - 2 * 4096) * 4096 * 32
    assert of("all-linear") - of("query-value") == pytest.approx(more * fitted().eager_factor)


def test_full_recomputation_keeps_layer_inputs_and_one_layer_or_the_logits() -> None:
    job = replace(JOB, recompute="full")
    inputs = 4096 * 32 * 4096 * 2
    logits = 4096 * 128256 * 10
    assert float(held(job=job).activations_bytes) == pytest.approx(inputs * fitted().fused_factor + logits)
    layer = 4096 * 2 * (6 * 4096 + 2 * 1024 + 3 * 14336)
    fused = float(held(job=replace(job, fused_loss=True)).activations_bytes)
    assert fused == pytest.approx((inputs + layer) * fitted().fused_factor)
    host = replace(job, method="lora", trainer="unsloth", adapter=Adapter(targets="query-value"))
    frozen = 4096 * 2 * (2 * 4096 + 2 * 4096 + 2 * 1024 + 2 * 14336 + 4096)
    assert float(held(job=host).activations_bytes) == pytest.approx(frozen * fitted().fused_factor)


@pytest.mark.parametrize(
    ("module", "elements"), [("core_attn", 0), ("layernorm", 2 * 4096), ("mlp_act", 14336), ("mlp", 3 * 14336)]
)
def test_a_part_that_is_recomputed_is_not_kept(module: str, elements: int) -> None:
    job = replace(JOB, recompute="selective", recompute_modules=(module,))
    freed = float(held().activations_bytes) - float(held(job=job).activations_bytes)
    assert freed == pytest.approx(4096 * 32 * 2 * elements * fitted().fused_factor)


def test_eight_bits_halve_what_enters_trained_matrices() -> None:
    saved = float(held().activations_bytes) - float(held(job=replace(JOB, precision="fp8")).activations_bytes)
    assert saved == pytest.approx(4096 * 32 * (2 * 4096 + 14336) * fitted().fused_factor)


def test_an_update_that_needs_more_than_the_passes_sets_the_peak() -> None:
    short = replace(JOB, method="full-ft", trainer="hf", seq_len=1, micro_batches=1)
    params = LLAMA_8B.params_total
    assert float(held(job=short).activations_bytes) == pytest.approx(2 * params)
    assert float(held(job=replace(short, trainer="torchtune")).activations_bytes) < 0.1 * 2 * params


def test_a_checkpoint_read_whole_sets_the_peak_of_sharded_adapters() -> None:
    layout = TrainingLayout(dp=8, shard="zero3")
    job = replace(JOB, method="lora", trainer="litgpt", seq_len=16)
    params = LLAMA_8B.params_total
    assert float(held(layout=layout, job=job).activations_bytes) == pytest.approx(2 * params)
    alone = replace(layout, dp=1, shard="none")
    assert float(held(layout=alone, job=job).activations_bytes) < 0.1 * params


def test_adapters_are_sharded_with_the_rest() -> None:
    job = replace(JOB, method="lora", trainer="hf")
    whole = float(held(job=job).adapters_bytes)
    by_shard = {
        shard: float(held(job=job, layout=TrainingLayout(dp=8, shard=shard)).adapters_bytes)
        for shard in ("zero1", "zero2", "zero3")
    }
    assert by_shard["zero1"] == pytest.approx(whole / 16 * (4 + 4 + 8 / 8))
    assert by_shard["zero2"] == pytest.approx(whole / 16 * (4 + 4 / 8 + 8 / 8))
    assert by_shard["zero3"] == pytest.approx(whole / 8)


def test_devices_together_take_buffers_that_one_does_not() -> None:
    alone = float(held(job=replace(JOB, trainer="deepspeed")).overhead_bytes)
    two = float(held(job=replace(JOB, trainer="deepspeed"), layout=TrainingLayout(dp=2, shard="zero1")).overhead_bytes)
    assert two - alone == pytest.approx(fitted().group_bytes + recipes()["deepspeed"].bucket_bytes)


def test_sharded_weights_are_gathered_two_layers_at_a_time_with_one_gradient() -> None:
    layout = TrainingLayout(dp=8, shard="zero3")
    layer = 2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 14336 * 4096 + 2 * 4096
    outer = 2 * 128256 * 4096 + 4096
    memory = held(layout=layout, job=replace(JOB, trainer="fsdp"))
    known = fitted().process_bytes + fitted().group_bytes + fitted().slack_fraction * float(memory.activations_bytes)
    assert float(memory.overhead_bytes) - known == pytest.approx((2 * layer + outer) * 2 + layer * 2, rel=1e-6)
    frozen = held(layout=layout, job=replace(JOB, method="lora", trainer="fsdp"))
    known = fitted().process_bytes + fitted().group_bytes + fitted().slack_fraction * float(frozen.activations_bytes)
    assert float(frozen.overhead_bytes) - known == pytest.approx((2 * layer + outer) * 2, rel=1e-6)


def test_a_fused_loss_holds_no_logits() -> None:
    freed = float(held().activations_bytes) - float(held(job=replace(JOB, fused_loss=True)).activations_bytes)
    assert freed == pytest.approx(4096 * 128256 * 10)


def test_scores_are_kept_only_without_a_fused_attention_kernel() -> None:
    plain = held(job=replace(JOB, flash_attention=False))
    extra = float(plain.activations_bytes) - float(held().activations_bytes)
    # softmax, dropout and mask of 32 heads in 32 layers, gradients of one layer instead of the smaller logits
    scores = 4096 * 4096 * 32
    logits = 4096 * 128256 * 10
    assert extra == pytest.approx(scores * 32 * 5 + max(scores * 10, logits) - logits, rel=1e-6)
    full = replace(JOB, recompute="full", fused_loss=True)
    extra = float(held(job=replace(full, flash_attention=False)).activations_bytes)
    extra -= float(held(job=full).activations_bytes)
    assert extra == pytest.approx(scores * 15, rel=1e-6)


def test_what_dora_scales_is_kept_beside_the_adapters() -> None:
    lora = replace(JOB, method="lora", trainer="hf", fused_loss=True)
    dora = replace(lora, method="dora")
    more = float(held(job=dora).activations_bytes) - float(held(job=lora).activations_bytes)
    given_out = 4096 + 2 * 1024 + 4096 + 2 * 14336 + 4096
    assert more == pytest.approx(4096 * 32 * 2 * given_out * fitted().eager_factor)


def test_adapters_that_copy_nothing_share_what_enters_alike_matrices() -> None:
    job = replace(JOB, method="lora", trainer="unsloth", recompute="none", adapter=Adapter(targets="attention"))
    none = replace(job, adapter=Adapter(targets="query-value"))
    # query, key and value read one input; the output projection its own
    more = float(held(job=job).activations_bytes) - float(held(job=none).activations_bytes)
    assert more == pytest.approx(4096 * 32 * 2 * 4096 * fitted().fused_factor)


def test_one_device_gathers_nothing() -> None:
    sharded = held(layout=TrainingLayout(shard="zero3"), job=replace(JOB, trainer="fsdp"))
    alone = held(layout=TrainingLayout(shard="none"), job=replace(JOB, trainer="fsdp"))
    assert float(sharded.total_bytes) == float(alone.total_bytes)


@settings(max_examples=20, deadline=None)
@given(power=st.integers(0, 4), tokens=st.sampled_from([2048, 8192]))
def test_context_parallel_devices_share_a_sequence(power: int, tokens: int) -> None:
    job = replace(JOB, seq_len=tokens)
    one = float(held(job=job, layout=TrainingLayout(cp=2**power)).activations_bytes)
    two = float(held(job=job, layout=TrainingLayout(cp=2 ** (power + 1))).activations_bytes)
    assert two == pytest.approx(one / 2)


def test_updates_in_the_backward_pass_leave_the_gradients_of_one_layer() -> None:
    job = replace(JOB, method="full-ft", trainer="torchtune")
    whole, in_turn = held(job=job), held(job=replace(job, update_in_backward=True))
    # embedding and head, 2 x 128,256 x 4,096, are more than a layer's 218 M
    assert float(whole.gradients_bytes) == 2 * LLAMA_8B.params_total
    assert float(in_turn.gradients_bytes) == pytest.approx(2 * (2 * 128256 * 4096 + 4096))


def test_states_on_the_host_leave_the_adapters_and_their_gradients() -> None:
    job = replace(JOB, method="lora", trainer="hf")
    paged = float(held(job=replace(job, optimizer="paged-adamw")).adapters_bytes)
    assert paged == pytest.approx(float(held(job=job).adapters_bytes) / 2)


def test_two_devices_gather_as_eight_do() -> None:
    def gathered(dp: int) -> float:
        memory = held(layout=TrainingLayout(dp=dp, shard="zero3"), job=replace(JOB, trainer="fsdp"))
        return float(memory.overhead_bytes) - fitted().slack_fraction * float(memory.activations_bytes)

    assert gathered(2) == pytest.approx(gathered(8))
    assert gathered(1) < gathered(2)


def test_gradients_of_their_own_are_there_from_the_first_micro_batch() -> None:
    first = held(job=replace(JOB, micro_batches=1))
    assert float(first.activations_bytes) == float(held().activations_bytes)
    filling = replace(JOB, trainer="fsdp", method="full-ft")
    long = replace(filling, seq_len=32768)
    alone, more = (float(held(job=replace(long, micro_batches=count)).activations_bytes) for count in (1, 2))
    assert more - alone == pytest.approx(4 * LLAMA_8B.params_total)


def test_logits_are_as_many_as_the_head_gives() -> None:
    narrow = tuple(replace(one, out_features=1000) if one.part == "head" else one for one in LLAMA_8B.outer)
    freed = held().activations_bytes - held(replace(LLAMA_8B, outer=narrow)).activations_bytes
    assert float(freed) == pytest.approx(4096 * (128256 - 1024) * 10, rel=1e-3)  # a head is padded to 64 rows


def test_a_total_that_is_stated_and_layers_that_are_shared_scale_what_is_held() -> None:
    stated = replace(LLAMA_8B, params_stated=2 * LLAMA_8B.params_total)
    assert float(held(stated).weights_bytes) == pytest.approx(2 * float(held().weights_bytes))
    once = replace(LLAMA_8B, layers=(replace(LLAMA_8B.layers[0], stored_count=8),))
    layers = float(held().weights_bytes) - 2 * (2 * 128256 * 4096 + 4096)
    assert float(held().weights_bytes) - float(held(once).weights_bytes) == pytest.approx(layers * 3 / 4)


def test_a_checkpoint_read_whole_by_a_full_fine_tune_finds_no_gradients_yet() -> None:
    """Over 8 devices: all weights in 16 bits, less what gradients (2 bytes) and states (4) will take of a device."""
    recipe = replace(recipes()["litgpt"], whole_at_load=1.0, master_bytes=0.0, moment_bytes=2.0, gather_bytes=2.0)
    job = replace(JOB, method="full-ft", trainer="litgpt", seq_len=1, micro_batches=1)
    question = TrainingMemoryInput(model=LLAMA_8B, layout=TrainingLayout(dp=8, shard="zero3"), job=job, recipe=recipe)
    share = LLAMA_8B.params_total / 8
    whole = 2 * LLAMA_8B.params_total
    assert float(training_memory(question).activations_bytes) == pytest.approx(whole - share * (2 + 2 * 2), rel=1e-6)


def test_what_comes_out_of_a_latent_may_be_brought_back() -> None:
    """DeepSeek-V3: q_b gives 128 x 192 and kv_b 128 x 256 elements a token and layer, all of it recomputed."""
    model = load_model("deepseek-v3")
    named = replace(JOB, recompute="selective", fused_loss=True, even_routing=True)
    kept, brought = (
        float(held(model, job=replace(named, recompute_modules=modules)).activations_bytes)
        for modules in ((), ("mla_up_proj",))
    )
    elements = 128 * 192 + 128 * 256
    layers = sum(layer.count for layer in model.layers)
    assert kept - brought == pytest.approx(4096 * (layers - 1) * elements * 2 * fitted().fused_factor, rel=1e-6)


def test_what_latent_attention_keeps_by_hand() -> None:
    """DeepSeek-V3's q_a and kv_a give 1,536 and 576 elements, what enters o has 16,384; q_b and kv_b count apart."""
    layer = training_shards(load_model("deepseek-v3"), TrainingLayout()).layers[0]
    kernels = kernels_of(JOB, recipes()["megatron"])
    saved = saved_by(layer, hidden=7168, layout=TrainingLayout(), kernels=kernels)
    assert saved.attention == 2 * (1536 + 576 + 128 * 128)
    assert saved.up_projected == 2 * (128 * 192 + 128 * 256)
    plain = training_shards(LLAMA_8B, TrainingLayout()).layers[0]
    assert saved_by(plain, hidden=4096, layout=TrainingLayout(), kernels=kernels).up_projected == 0


def test_towers_are_held_layer_by_layer() -> None:
    """Three layers of a tower are three times the parameters of one, beside the ends of the model."""
    layer = replace(LLAMA_8B.layers[0], count=3)
    seeing = replace(LLAMA_8B, towers=(Tower(name="vision", layers=(layer,)),))
    more = device_params(training_shards(seeing, TrainingLayout())).outer
    plain = device_params(training_shards(LLAMA_8B, TrainingLayout())).outer
    assert more - plain == pytest.approx(3 * LLAMA_8B.layers[0].params / 32)


def test_a_stated_total_scales_layers_and_ends_alike() -> None:
    whole = device_params(training_shards(LLAMA_8B, TrainingLayout()))
    twice = replace(training_shards(LLAMA_8B, TrainingLayout()), stated_fraction=2.0)
    found = device_params(twice)
    assert (found.dense, found.outer) == (2 * whole.dense, 2 * whole.outer)


def test_an_activation_without_a_gate_leaves_no_output_of_its_own() -> None:
    """BERT: up gives 3,072 elements of 2 bytes and no more; Llama 3.1 8B: gate and up give 14,336 each, then one."""
    apart = replace(kernels_of(JOB, recipes()["hf"]), fused_activation=False)
    for name, hidden, elements in (("bert-base", 768, 3072), ("llama-3.1-8b", 4096, 3 * 14336)):
        layer = training_shards(load_model(name), TrainingLayout()).layers[0]
        saved = saved_by(layer, hidden=hidden, layout=TrainingLayout(), kernels=apart)
        assert float(saved.mlp) == 2 * elements
