"""Videos, windows, detectors: tokens and FLOPs by hand or as published, from configs written here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chipwise.errors import KnowledgeError
from chipwise.model import ModelSpec, load_model
from chipwise.perf.other.build import passes_of
from chipwise.perf.other.encoders import native_image_px
from chipwise.perf.other.facts import Video, pipeline_of
from chipwise.perf.other.passes import Item

WAN = {
    "_class_name": "WanTransformer3DModel", "attention_head_dim": 128, "num_attention_heads": 40, "num_layers": 40,
    "ffn_dim": 13824, "in_channels": 16, "out_channels": 16, "patch_size": [1, 2, 2], "text_dim": 4096,
    "freq_dim": 256, "qk_norm": "rms_norm_across_heads", "cross_attn_norm": True,
}  # fmt: skip
SAM = {
    "model_type": "sam", "architectures": ["SamModel"],
    "vision_config": {
        "hidden_size": 1280, "num_hidden_layers": 32, "num_attention_heads": 16, "image_size": 1024, "patch_size": 16,
        "mlp_dim": 5120, "output_channels": 256, "window_size": 14, "global_attn_indexes": [7, 15, 23, 31],
    },
    "prompt_encoder_config": {"hidden_size": 256}, "mask_decoder_config": {"hidden_size": 256},
}  # fmt: skip
B0 = {
    "model_type": "efficientnet", "architectures": ["EfficientNetForImageClassification"], "hidden_dim": 1280,
    "in_channels": [32, 16, 24, 40, 80, 112, 192], "out_channels": [16, 24, 40, 80, 112, 192, 320],
    "kernel_sizes": [3, 3, 5, 3, 5, 5, 3], "strides": [1, 2, 2, 2, 1, 2, 1], "num_block_repeats": [1, 2, 2, 3, 3, 4, 1],
    "expand_ratios": [1, 6, 6, 6, 6, 6, 6], "width_coefficient": 1.0, "depth_coefficient": 1.0, "num_labels": 1000,
    "depth_divisor": 8, "squeeze_expansion_ratio": 0.25,
}  # fmt: skip
DETR = {
    "model_type": "detr", "architectures": ["DetrForObjectDetection"], "backbone": "resnet50", "d_model": 256,
    "encoder_layers": 6, "decoder_layers": 6, "encoder_attention_heads": 8, "decoder_attention_heads": 8,
    "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048, "num_queries": 100, "num_labels": 91,
}  # fmt: skip


def model(folder: Path, config: dict[str, Any]) -> ModelSpec:
    file = folder / "config.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    return load_model(str(file))


@pytest.mark.parametrize(("frames", "patches"), [(1, 1), (2, 2), (5, 2), (81, 21), (129, 33)])
def test_the_first_frame_is_a_latent_of_its_own(frames: int, patches: int) -> None:
    assert Video(frames=81, image_px=632, latent_frames=4, patch_frames=1).patches(frames) == patches
    assert Video(frames=81, image_px=632, latent_frames=4, patch_frames=2).patches(frames) == -(-patches // 2)


def test_a_video_by_hand(tmp_path: Path) -> None:
    """Wan 14B, one step of 81 frames of 640 x 640: 40 x 40 x 21 tokens, 512 of text that cross-attention reads."""
    wan = model(tmp_path, WAN)
    item = Item(preset="diffusion", unit="video", image_px=640, denoising_steps=1, frames=81)
    tokens, text, width, wide, layers, sequences = 40 * 40 * 21, 512, 5120, 13824, 40, 2
    on_video = 6 * width**2 + 2 * width * wide
    on_text = 2 * width**2
    matrices = 2 * layers * sequences * (tokens * on_video + text * on_text)
    looking = layers * sequences * 4 * width * (tokens**2 + tokens * text)
    step = passes_of(wan, item).forwards[0]
    assert step.gemm_flops == pytest.approx(matrices, rel=0.005)
    assert step.attention_flops == pytest.approx(looking, rel=1e-6)


def test_more_frames_are_more_tokens_and_fewer_steps_less_work(tmp_path: Path) -> None:
    wan = model(tmp_path, WAN)

    def flops(frames: float, steps: float) -> float:
        item = Item(preset="diffusion", unit="video", image_px=640, denoising_steps=steps, frames=frames)
        return passes_of(wan, item).flops

    assert flops(81, 50) > 2 * flops(33, 50)
    assert flops(81, 50) == pytest.approx(50 * flops(81, 1))


def test_who_takes_other_latents_is_another_pipeline(tmp_path: Path) -> None:
    """Image-to-video gives the first image beside the noise; a third set of channels belongs to no pipeline known."""
    found = [pipeline_of(model(tmp_path, {**WAN, "in_channels": channels})) for channels in (16, 36, 48)]
    assert [one.latent_channels if one else None for one in found] == [16, 36, None]


def test_an_image_pipeline_makes_no_video() -> None:
    item = Item(preset="diffusion", unit="image", image_px=1024, denoising_steps=28, frames=16)
    with pytest.raises(KnowledgeError, match="how a video becomes tokens"):
        passes_of(load_model("flux.1-dev"), item)


def test_windows_bound_what_a_patch_of_sam_sees(tmp_path: Path) -> None:
    """ViT-H at 1024: 4,096 patches, 28 layers in windows of 14 x 14, 4 over all; published 2.97 T multiplications."""
    sam = model(tmp_path, SAM)
    assert native_image_px(sam) == 1024
    found = passes_of(sam, Item(preset="vision", unit="image", image_px=1024))
    stack = 32 * 2 * 4096 * (4 * 1280**2 + 2 * 1280 * 5120)
    looking = 4 * 1280 * 4096 * (28 * 14**2 + 4 * 4096)
    assert found.flops == pytest.approx(stack + looking, rel=0.02)
    assert found.flops == pytest.approx(2 * 2.97e12, rel=0.08)


@pytest.mark.parametrize(("config", "flops", "image_px"), [(B0, 0.8e9, 224), (DETR, 172e9, 923)])
def test_networks_are_known_by_their_parameters(
    tmp_path: Path, config: dict[str, Any], flops: float, image_px: int
) -> None:
    known = model(tmp_path, config)
    assert native_image_px(known) == image_px
    item = Item(preset="vision", unit="image", image_px=image_px)
    assert passes_of(known, item).flops == pytest.approx(flops)


def test_a_network_of_other_parameters_is_not_known(tmp_path: Path) -> None:
    item = Item(preset="vision", unit="image", image_px=224)
    with pytest.raises(KnowledgeError, match="what an image costs"):
        passes_of(model(tmp_path, {**B0, "hidden_dim": 1281}), item)
