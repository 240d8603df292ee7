"""Training on samples: counts by hand, published rates, parts that add up, and what nobody knows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import KnowledgeError
from chipwise.memory.training import TrainingMemoryInput, training_memory
from chipwise.memory.training_fitting import min_devices
from chipwise.memory.training_job import TrainingJob, TrainingLayout
from chipwise.memory.training_recipes import fitted
from chipwise.memory.training_samples import SampleCounts
from chipwise.model import load_model
from chipwise.perf.hardware import Hardware
from chipwise.perf.other.passes import Item
from chipwise.perf.training_coefficients import training_coefficients
from chipwise.perf.training_operators import Extra, Seconds
from chipwise.perf.training_samples import Sampled, sample_flops, sample_seconds, sample_spread_factor, sampled

IMAGE = Item(preset="vision", unit="image", image_px=224)
AMPERE = training_coefficients(generation="ampere", precision="bf16", trainer="hf")
COUNTS = SampleCounts(
    params=1e9, table_params=0.0, adapter_params_per_rank=1e5, saved_bytes=1e8, matrices=100.0,
)  # fmt: skip


def device(flops_per_s: float, bytes_per_s: float) -> Hardware:
    return Hardware(
        gemm_flops_per_s={"bf16": flops_per_s}, attention_flops_per_s=flops_per_s,
        memory_bandwidth_bytes_per_s=bytes_per_s, fabric=0.0, link_bytes_per_s=1.0, peer_to_peer=1.0, node_devices=1.0,
        network_bytes_per_s=0.0,
    )  # fmt: skip


RTX_3090 = device(71e12, 936e9)
A100_40, A100_80 = device(312e12, 1555e9), device(312e12, 2039e9)


def job(**changes: Any) -> TrainingJob:
    return TrainingJob(**{"method": "pretrain", "seq_len": 1, "micro_batch": 1, "trainer": "ddp", **changes})


def seconds(sample: Sampled, batch: float, hardware: Hardware, **changes: Any) -> Seconds:
    run = job(micro_batch=batch, **changes)
    return sample_seconds(sample=sample, job=run, hardware=hardware, coefficients=AMPERE, extra=Extra())


def rate(name: str, item: Item, batch: float, hardware: Hardware) -> float:
    return batch / float(seconds(sampled(load_model(name), item), batch, hardware).total_s)


@pytest.mark.parametrize(
    ("model", "item", "batch", "hardware", "measured"),
    [
        # NVIDIA/DeepLearningExamples PyTorch/Classification/ConvNets/resnet50v1.5: 1 x A100 80GB, mixed precision
        ("resnet-50", IMAGE, 256, A100_80, 2470),
        # NVIDIA/DeepLearningExamples MxNet/Classification/RN50v1.5: the same chip, fused kernels
        ("resnet-50", IMAGE, 512, A100_80, 3410),
        # huggingface/pytorch-image-models results/benchmark-train-amp-nhwc-pt112-cu113-rtx3090.csv
        ("resnet-50", IMAGE, 512, RTX_3090, 1218),
        ("vit-base", IMAGE, 192, RTX_3090, 393),
        # mosaicml/diffusion README: the U-Net of Stable Diffusion 2 on 8 A100, latents made before
        ("stable-diffusion-2.1", Item(preset="diffusion", unit="image", image_px=256, denoising_steps=1), 64, A100_40,
         1100 / 8),
        ("stable-diffusion-2.1", Item(preset="diffusion", unit="image", image_px=512, denoising_steps=1), 16, A100_40,
         290 / 8),
    ],
)  # fmt: skip
def test_published_rates_lie_within_the_range(
    model: str, item: Item, batch: float, hardware: Hardware, measured: float
) -> None:
    spread = sample_spread_factor("nvidia")
    assert measured / spread <= rate(model, item, batch, hardware) <= measured * spread


def test_an_image_of_resnet_50_takes_three_times_its_forward_pass() -> None:
    sample = sampled(load_model("resnet-50"), IMAGE)
    assert sample_flops(sample, job(micro_batch=2)) == pytest.approx(2 * 3 * 8.178e9)
    assert sample.once.moved_bytes == pytest.approx(2 * 2 * 11.1e6, rel=0.01)  # timm's model cards: 11.1M activations
    assert sample.counts.params == 25_557_032


def test_a_denoiser_sees_a_sample_once_and_without_guidance() -> None:
    """The U-Net of SDXL takes 5.98 TFLOPs a step and sequence (Podell et al., 2023, count 2.6B parameters)."""
    picture = Item(preset="diffusion", unit="image", image_px=1024, denoising_steps=50)
    sample = sampled(load_model("sdxl"), picture)
    assert sample.once.gemm_flops == pytest.approx(5.98e12, rel=0.01)
    assert sample.once.gemm_flops == sampled(load_model("sdxl"), replace(picture, denoising_steps=1)).once.gemm_flops


def test_a_known_answer_goes_through_the_decoder_at_once() -> None:
    sample = sampled(load_model("whisper-large-v3"), Item(preset="transcribe", unit="audio-second", audio_s=30))
    assert sample.once.weights == pytest.approx(1.54e9, rel=0.01)  # each weight once, not once a token
    assert sample.counts.params == 1_543_490_560
    assert sample.passes.cache_bytes == 0


def test_a_head_that_makes_sound_sees_each_token_once(shared: Path) -> None:
    speaker = load_model(str(shared / "truth" / "configs" / "microsoft__VibeVoice-1.5B.json"))
    sample = sampled(speaker, Item(preset="tts", unit="audio-second", tokens=100, audio_s=10))
    assert all(one.passes == 1 for one in sample.passes.forwards)
    assert sample.once.gemm_flops == pytest.approx(2 * 175 * sample.once.weights, rel=0.3)  # 100 + 10 x 7.5 tokens


def test_text_and_image_towers_are_both_trained() -> None:
    both, image = (sampled(load_model(name), IMAGE) for name in ("clip-vit-base", "vit-base"))
    assert both.once.gemm_flops > 1.1 * image.once.gemm_flops
    assert both.counts.params == pytest.approx(149.6e6, rel=0.001)


def test_tables_are_looked_up_not_averaged() -> None:
    sample = sampled(load_model("dlrm"), Item(preset="recommend", unit="request"))
    assert sample.counts.table_params == pytest.approx(26.1e9, rel=0.01)
    assert sample.counts.trained_params(job()) < 3e6
    assert sample.looked_up_elements == 26 * 128


def test_trees_are_not_guessed() -> None:
    counted: dict[str, Any] = {"trees": 100, "nodes": 1000}
    trees = replace(load_model("dlrm"), extra=counted)
    with pytest.raises(KnowledgeError, match="how fast its trees are grown"):
        sampled(trees, Item(preset="tabular", unit="row"))


@given(batch=st.floats(1, 4096), more=st.floats(1, 64))
def test_a_larger_batch_takes_longer_and_each_sample_less(batch: float, more: float) -> None:
    sample = sampled(load_model("vit-base"), IMAGE)
    small, large = (float(seconds(sample, size, A100_80).total_s) for size in (batch, batch * more))
    assert small <= large * (1 + 1e-9)
    assert large / (batch * more) <= small / batch * (1 + 1e-9)


def test_adapters_have_no_gradients_of_frozen_weights() -> None:
    sample = sampled(load_model("vit-base"), IMAGE)
    full, lora = seconds(sample, 64, A100_80), seconds(sample, 64, A100_80, method="lora")
    assert float(lora.gemm_s) == pytest.approx(float(full.gemm_s) * 2 / 3)
    assert float(lora.attention_s) == float(full.attention_s)


def memory(layout: TrainingLayout, counts: SampleCounts = COUNTS, **changes: Any) -> dict[str, float]:
    asked = TrainingMemoryInput(model=load_model("vit-base"), layout=layout, job=job(**changes), sample=counts)
    found = training_memory(asked)
    names = ("weights_bytes", "gradients_bytes", "optimizer_bytes", "activations_bytes", "adapters_bytes")
    return {name: float(getattr(found, name)) for name in names} | {"total": float(found.total_bytes)}


def test_states_by_hand() -> None:
    """Fp32 weights, gradients and two moments: 16 bytes a parameter; 8 samples of 100 MB."""
    held = memory(TrainingLayout(dp=4), micro_batch=8)
    assert [held[name] for name in ("weights_bytes", "gradients_bytes", "optimizer_bytes")] == [4e9, 4e9, 8e9]
    assert held["activations_bytes"] == 8e8
    cut = memory(TrainingLayout(dp=4, shard="zero3"), micro_batch=8)
    assert [cut[name] for name in ("weights_bytes", "gradients_bytes", "optimizer_bytes")] == [1e9, 1e9, 2e9]


def test_recomputation_keeps_two_segments_of_ten() -> None:
    assert memory(TrainingLayout(), recompute="full")["activations_bytes"] == pytest.approx(1e8 * 2 / 10)


def test_adapters_hold_their_own_states_and_a_frozen_base() -> None:
    held = memory(TrainingLayout(), method="lora", trainer="hf")
    assert held["weights_bytes"] == 2e9  # bf16
    assert held["adapters_bytes"] == 16 * 1e5 * 16  # rank 16, fp32 weight, gradient and two moments
    assert held["gradients_bytes"] == held["optimizer_bytes"] == 0


def test_tables_are_dealt_over_all_devices() -> None:
    tables = replace(COUNTS, params=0.0, table_params=8e9)
    held = memory(TrainingLayout(dp=8), tables, optimizer="sgd")
    assert held["weights_bytes"] == 4e9
    assert held["gradients_bytes"] == held["optimizer_bytes"] == 0


def test_the_fewest_devices_share_the_states() -> None:
    asked = TrainingMemoryInput(model=load_model("vit-base"), layout=TrainingLayout(), job=job(), sample=COUNTS)
    capacity = 12e9 / fitted().usable_fraction  # 16 GB of states on one device, 8 and what more a group takes on two
    assert min_devices(asked, capacity_bytes=capacity, node_devices=8) == 2
    assert min_devices(asked, capacity_bytes=1e9, node_devices=8) is None
