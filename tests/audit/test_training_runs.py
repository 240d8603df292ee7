"""A training row's words become method, trainer, layout and batches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chipwise.audit.items import Context, SkipError
from chipwise.audit.table import Row
from chipwise.audit.training import peak_gib
from chipwise.audit.training_cases import asked_of, coefficients_of
from chipwise.audit.training_layouts import holds, least_recompute
from chipwise.audit.training_runs import (
    balanced,
    batches_of,
    case_of,
    chips_of,
    copies_of,
    layout_of,
    mean_tokens,
    method_of,
    precision_of,
    trainer_of,
)
from chipwise.catalog import load_catalog
from chipwise.perf.training import step_arrays

CONTEXT = Context(file=Path("training.csv"))
BASE = {"model": "llama-3.1-8b", "method": "pretrain", "hardware": "h100-sxm", "seq_len": "8192", "framework": "NeMo"}


def row(**cells: Any) -> Row:
    return Row(number=2, cells={name: str(value) for name, value in (BASE | cells).items()})


@pytest.mark.parametrize(
    ("text", "method"), [("rlhf-ppo", "ppo"), ("peft-boft", "lora"), ("full_ft", "full-ft"), ("QLoRA", "qlora")]
)
def test_methods_are_named_in_many_ways(text: str, method: str) -> None:
    assert method_of(row(method=text)) == method


@pytest.mark.parametrize(("text", "code"), [("", "conditions-missing:method"), ("distil", "load-kind-not-covered")])
def test_a_method_nobody_covers_says_so(text: str, code: str) -> None:
    with pytest.raises(SkipError, match=code):
        method_of(row(method=text))


@pytest.mark.parametrize(
    ("framework", "version", "recipe"),
    [
        ("PyTorch NVIDIA Release 23.09", "MLPerf Training v4.1", "nemo"),
        ("AWS Neuron (torch-neuronx / NxD / NeMo-Megatron)", "Neuron 2.18.0", "neuron"),
        ("llm-foundry (Composer FSDP1)", "", "composer"),
        ("Optimized DeepSpeed-Chat (Hybrid Engine)", "", "deepspeed"),
        ("LLaMA-Factory 0.9", "", "hf-amp"),
        ("torchtune 0.5", "", "torchtune"),
        ("Megatron-DeepSpeed", "2022-02", "megatron-deepspeed"),
        ("a framework of nobody", "", "megatron"),
    ],
)
def test_a_framework_is_known_by_its_words(framework: str, version: str, recipe: str) -> None:
    assert trainer_of(row(framework=framework, framework_version=version), "pretrain").recipe == recipe


def test_adapters_of_an_unknown_framework_are_trained_as_peft_does() -> None:
    assert trainer_of(row(framework="?"), "lora").recipe == "hf"


def test_sharded_full_fine_tuning_under_transformers_is_deepspeed() -> None:
    assert trainer_of(row(framework="HF PEFT", fsdp_or_zero="DeepSpeed ZeRO-3"), "full-ft").recipe == "deepspeed"


@pytest.mark.parametrize(
    ("words", "shard", "over"),
    [
        ("DDP (distributed optimizer)", "zero1", None),
        ("FSDP FULL_SHARD, mp=PURE", "zero3", None),
        ("FSDP SHARD_GRAD_OP, mp=DEFAULT", "zero2", None),
        ("FSDP shard=4", "zero3", 4.0),
        ("DDP", "none", None),
        ("", "zero1", None),
    ],
)
def test_sharding_is_read_or_the_trainers_default(words: str, shard: str, over: float | None) -> None:
    found = layout_of(row(fsdp_or_zero=words), 8.0, trainer_of(row(), "pretrain"))
    assert (found.shard, found.sharded_over, found.dp) == (shard, over, 8.0)


def test_what_degrees_leave_is_data_parallel() -> None:
    found = layout_of(row(tp=2, pp=4, cp=2, ep=8, vp=2), 64.0, trainer_of(row(), "pretrain"))
    assert (found.tp, found.pp, found.cp, found.ep, found.vp, found.dp) == (2, 4, 2, 8, 2, 4)


def test_one_copy_shards_nothing() -> None:
    assert layout_of(row(tp=8), 8.0, trainer_of(row(), "pretrain")).shard == "none"


@pytest.mark.parametrize(
    ("cells", "batches"),
    [
        ({"micro_batch": 2, "global_batch": 64}, (2.0, 4.0)),
        ({"global_batch": 64, "note": "grad_accum=2"}, (4.0, 2.0)),
        ({"micro_batch": 1, "note": "gradient accumulation 8"}, (1.0, 8.0)),
        ({}, (1.0, 1.0)),
    ],
)
def test_batches(cells: dict[str, Any], batches: tuple[float, float]) -> None:
    assert batches_of(row(**cells), 8.0) == batches


@pytest.mark.parametrize(
    ("cells", "precision"),
    [
        ({"precision": "mxfp8"}, "mxfp8"),
        ({"note": "config file: config_8x4_cg_fp4.sh"}, "nvfp4"),
        ({"framework_version": "MLPerf Training v5.1"}, "fp8"),
        ({"framework_version": "MLPerf Training v5.1", "hardware": "a100-sxm-80"}, "bf16"),
        ({}, "bf16"),
    ],
)
def test_precision_is_stated_configured_or_usual(cells: dict[str, Any], precision: str) -> None:
    one = row(**cells)
    assert precision_of(one, load_catalog().chips[one.text("hardware")]) == precision


def test_chips_are_printed_or_what_the_degrees_need() -> None:
    chips = load_catalog().chips
    assert chips_of(row(n_devices=16), chips["h100-sxm"]) == 16
    assert chips_of(row(tp=32, pp=2), chips["trainium1"]) == 32
    with pytest.raises(SkipError, match="conditions-missing:n_devices"):
        chips_of(row(), chips["h100-sxm"])


def test_padding_is_left_out_where_the_row_tells_the_mean() -> None:
    assert mean_tokens(row(note="avg seq len=3,258; x"), 8.0) == 3258.0
    assert mean_tokens(row(tokens_s_per_device=1000, step_s=2, global_batch=4), 1.0) == 500.0
    assert mean_tokens(row(tokens_s_per_device=16384, step_s=2, global_batch=4), 1.0) is None
    assert mean_tokens(row(), 1.0) is None


def test_a_layout_nobody_states_is_one_that_fits() -> None:
    case = case_of(row(model="llama-3.3-70b", n_devices=64, n_nodes=8, global_batch=128, micro_batch=1), CONTEXT)
    assert float(case.layout.devices) == 64
    assert float(case.layout.tp * case.layout.pp) > 1 or case.layout.shard == "zero3"


def test_more_copies_than_sequences_share_a_sequence() -> None:
    case = case_of(row(n_devices=64, n_nodes=8, global_batch=16), CONTEXT)
    assert float(case.layout.dp) * float(case.job.micro_batch) <= 16


def test_accumulation_says_how_many_copies_there_are_at_most() -> None:
    assert copies_of(row(global_batch=2048, note="grad_accum=128")) == 16
    assert copies_of(row(global_batch=2048, micro_batch=2, note="grad_accum=128")) == 8
    assert copies_of(row(global_batch=2048)) is None
    case = case_of(
        row(model="llama-3.3-70b", n_devices=64, n_nodes=8, global_batch=64, precision="fp8", note="grad_accum=16"),
        CONTEXT,
    )
    assert float(case.layout.dp) <= 4
    assert float(case.job.micro_batches) == 16


def test_an_open_layout_is_no_slower_than_another_that_fits() -> None:
    case = case_of(row(model="llama-3.3-70b", n_devices=64, n_nodes=8, global_batch=128, micro_batch=1), CONTEXT)
    own = float(step_arrays(asked_of(case, coefficients_of(case))).step_s)
    for tp, pp in ((8, 1), (8, 2), (4, 4), (2, 8)):
        layout = replace(case.layout, tp=tp, pp=pp, cp=1, dp=64 // (tp * pp))
        job = replace(case.job, micro_batches=128 / layout.dp)
        other = least_recompute(replace(case, layout=layout, job=job))
        if holds(other):
            assert own <= float(step_arrays(asked_of(other, coefficients_of(other))).step_s) * 1.0001


def test_no_more_layers_are_recomputed_than_memory_asks_for() -> None:
    cells = {"model": "llama-3.3-70b", "method": "lora", "n_devices": 8, "tp": 2, "micro_batch": 1, "global_batch": 8}
    case = case_of(row(**cells), CONTEXT)
    assert case.job.recompute == "full"
    assert 0 < float(case.recomputed_fraction) < 1
    stated = case_of(row(**cells, activation_recompute="full"), CONTEXT)
    assert float(stated.recomputed_fraction) == 1.0


def test_weights_too_large_for_a_device_are_sharded_where_nobody_says_otherwise() -> None:
    cells = {"model": "llama-3.3-70b", "n_devices": 64, "tp": 1, "pp": 1, "micro_batch": 1, "global_batch": 64}
    assert case_of(row(**cells), CONTEXT).layout.shard == "zero3"
    assert case_of(row(**cells, fsdp_or_zero="distributed optimizer"), CONTEXT).layout.shard == "zero1"


@pytest.mark.parametrize(
    ("cells", "even"),
    [
        ({"note": "MoE forced-balance routing"}, True),
        ({"note": "forced load balancing"}, True),
        ({"model": "Qwen3 (tokendrop)"}, True),
        ({"note": "NOT force-balanced: expert-capacity-factor routing"}, False),
        ({}, False),
    ],
)
def test_even_routing_is_said(cells: dict[str, Any], even: bool) -> None:  # noqa: FBT001  # a table's column
    assert balanced(row(**cells)) is even


def test_a_base_that_is_multiplied_in_8_bits_is_held_in_them() -> None:
    cells = {"model": "llama-2-70b", "method": "lora", "n_devices": 8, "global_batch": 8}
    assert case_of(row(**cells, framework_version="MLPerf Training v5.1"), CONTEXT).job.base_format == "fp8"
    assert case_of(row(**cells), CONTEXT).job.base_format is None


def test_peak_memory_is_in_gib_whatever_is_printed() -> None:
    assert peak_gib(row(peak_mem_gib=70)) == 70.0
    assert peak_gib(row(peak_mem_gb=70)) == pytest.approx(65.19, abs=0.01)
    assert peak_gib(row(total_mem_gb_all_gpus=140, n_devices=2)) == pytest.approx(65.19, abs=0.01)
    assert peak_gib(row()) is None


@pytest.mark.parametrize(
    ("note", "modules", "even"),
    [
        ("recompute_modules=`layernorm`, `moe_act`; outcome", ("layernorm", "moe_act"), False),
        ("config string 'tp1, recompute=moe'; forced load balancing", ("moe",), True),
        ("recompute_modules=`[]`; x", None, False),
        ("MoE forced-balance routing", None, True),
    ],
)
def test_parts_that_are_recomputed_and_forced_routing_are_read(
    note: str, modules: tuple[str, ...] | None, *, even: bool
) -> None:
    job = case_of(row(n_devices=8, tp=1, note=note), CONTEXT).job
    assert (job.recompute_modules, job.even_routing) == (modules, even)


def test_updates_in_the_backward_pass_are_read() -> None:
    assert case_of(row(n_devices=1, note="optimizer_in_bwd=True"), CONTEXT).job.update_in_backward
    assert not case_of(row(n_devices=1), CONTEXT).job.update_in_backward


def test_a_frozen_base_is_held_as_narrow_as_it_is_multiplied() -> None:
    lora = {"method": "lora", "n_devices": 8, "tp": 1, "framework_version": "MLPerf Training v5.1"}
    assert case_of(row(**lora), CONTEXT).job.base_format == "fp8"
    assert case_of(row(**lora, hardware="a100-sxm-80"), CONTEXT).job.base_format is None


def test_stages_of_2022_cut_no_sequences() -> None:
    old = case_of(row(framework="Megatron-DeepSpeed", n_devices=8, tp=8), CONTEXT)
    assert not old.layout.sequence_parallel
    assert case_of(row(n_devices=8, tp=8), CONTEXT).layout.sequence_parallel


def test_degrees_that_a_splitting_trainer_s_row_leaves_out_are_found() -> None:
    words = {"fsdp_or_zero": "ZeRO-1", "n_devices": 8, "micro_batch": 1, "global_batch": 64, "method": "sft"}
    split = case_of(row(model="llama-3.3-70b", framework="Megatron-LM", **words | {"n_devices": 64}), CONTEXT)
    assert float(split.layout.tp * split.layout.pp) > 1
    whole = case_of(row(model="llama-3.1-8b", framework="DeepSpeed", **words), CONTEXT)
    assert float(whole.layout.tp * whole.layout.pp) == 1
