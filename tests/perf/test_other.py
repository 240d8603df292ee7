"""Work that is no token stream: published FLOPs, parts that add up, loads that behave, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import KnowledgeError
from chipwise.model import Attention, Layer, ModelSpec, Tower, Weight, load_model
from chipwise.model.blocks import Heads, conv, encoder_layers, table
from chipwise.perf.other.build import passes_of
from chipwise.perf.other.diffusion import diffusion_passes
from chipwise.perf.other.encoders import native_image_px
from chipwise.perf.other.facts import convolutions_of, pipeline_of, processor_of, sound_of
from chipwise.perf.other.layers import attended, layer_stack
from chipwise.perf.other.load import Arrival, Outcome, outcome
from chipwise.perf.other.passes import Forward, Item, Passes
from chipwise.perf.other.seconds import Device, batch_seconds, terms_of

FAST = Device(
    gemm_flops_per_s=100e12, attention_flops_per_s=50e12, bytes_per_s=1e12, weight_bytes=2.0, first_kernel_s=20e-6,
    graphed_kernel_s=3e-6, pass_s=500e-6, request_s=10e-3,
)  # fmt: skip
IMAGE = Item(preset="vision", unit="image", image_px=224)
TEXT = Item(preset="embed", unit="request", tokens=512)
PICTURE = Item(preset="diffusion", unit="image", image_px=1024, denoising_steps=28)
SOUND = Item(preset="transcribe", unit="audio-second", audio_s=30)


YOLOS = {
    "architectures": ["YolosForObjectDetection"],
    "model_type": "yolos",
    "hidden_size": 192,
    "num_hidden_layers": 12,
    "num_attention_heads": 3,
    "intermediate_size": 768,
    "image_size": [800, 1333],
    "patch_size": 16,
    "num_channels": 3,
    "num_detection_tokens": 100,
    "qkv_bias": True,
    "use_mid_position_embeddings": False,
    "num_labels": 91,
}


def spec(**changes: Any) -> ModelSpec:
    base = ModelSpec(
        name="toy", model_type="toy", architecture="vision", layers=(), outer=(), hidden_size=0, vocab_size=0,
        max_context_tokens=None, dtype="float32", params_source="config",
    )  # fmt: skip
    return replace(base, **changes)


def test_vit_base_takes_the_published_flops() -> None:
    """Torchvision prints 17.564 billion multiplications with additions for ViT-B/16 at 224."""
    assert passes_of(load_model("vit-base"), IMAGE).flops == pytest.approx(2 * 17.564e9, rel=0.01)


def test_clip_sees_as_its_image_tower_does() -> None:
    clip, vit = (passes_of(load_model(name), IMAGE) for name in ("clip-vit-base", "vit-base"))
    assert clip.flops == pytest.approx(vit.flops, rel=0.01)


def test_a_text_costs_two_flops_a_weight_and_token_and_its_attention() -> None:
    model = load_model("bge-m3")
    stack = sum(
        layer.count * weight.out_features * weight.in_features
        for layer in model.layers
        for weight in layer.weights
        if weight.gemm
    )
    one = passes_of(model, TEXT)
    pooled = 2 * 1024 * 1024
    assert one.forwards[0].gemm_flops == pytest.approx(2 * 512 * stack + pooled)
    assert one.forwards[0].attention_flops == pytest.approx(24 * 4 * 16 * 64 * 512**2)


def test_the_unet_of_sdxl_takes_its_known_flops() -> None:
    """A step of SDXL at 1024: 2.99 billion million multiplications a sequence, attention scores aside."""
    step = passes_of(load_model("sdxl"), replace(PICTURE, denoising_steps=1)).forwards[0]
    assert step.gemm_flops / 2 == pytest.approx(2 * 2.99e12, rel=0.02)


def test_flux_counts_streams_and_modulation_apart() -> None:
    """Blocks of FLUX by hand: 4,096 image and 512 text tokens, width 3,072, 19 joint and 38 single blocks."""
    width, image, text = 3072, 4096, 512
    stream = 12 * width**2
    joint = 19 * 2 * stream * (image + text)
    single = 38 * 2 * stream * (image + text)
    step = passes_of(load_model("flux.1-dev"), replace(PICTURE, denoising_steps=1)).forwards[0]
    assert step.gemm_flops == pytest.approx(joint + single, rel=0.005)
    assert step.attention_flops == pytest.approx(57 * 4 * width * (image + text) ** 2)


@pytest.mark.parametrize("name", ["stable-diffusion-3-medium", "flux.1-dev", "sdxl", "stable-diffusion-2.1"])
def test_a_picture_costs_by_its_steps(name: str) -> None:
    model = load_model(name)
    few, many = (passes_of(model, replace(PICTURE, denoising_steps=steps)).flops for steps in (4, 28))
    assert many == pytest.approx(7 * few)


def test_larger_images_cost_more_than_their_pixels() -> None:
    model = load_model("stable-diffusion-3-medium")
    small, large = (passes_of(model, replace(PICTURE, image_px=px)).flops for px in (512, 1024))
    assert 3.0 < large / small < 16.0


def test_schnell_takes_fewer_steps_than_dev() -> None:
    dev, schnell = (pipeline_of(load_model(name)) for name in ("flux.1-dev", "flux.1-schnell"))
    assert dev is not None
    assert schnell is not None
    assert (dev.denoising_steps, schnell.denoising_steps, schnell.guided_passes) == (28, 4, 1)


def test_whisper_pads_to_its_window() -> None:
    model = load_model("whisper-large-v3")
    short, full, longer = (passes_of(model, replace(SOUND, audio_s=seconds)) for seconds in (1, 30, 31))
    assert short.forwards[0].gemm_flops == full.forwards[0].gemm_flops
    assert longer.forwards[0].gemm_flops == pytest.approx(2 * full.forwards[0].gemm_flops)
    sound = sound_of("whisper")
    assert sound is not None
    assert full.forwards[1].passes == pytest.approx(30 * sound.answer_tokens_per_s)
    assert full.units == 30


def test_whisper_keeps_what_it_heard() -> None:
    """1,500 frames and 120 tokens, K and V of 1,280 in 32 layers, 2 bytes."""
    found = passes_of(load_model("whisper-large-v3"), SOUND)
    assert found.cache_bytes == pytest.approx((1500 + 120) * 2 * 1280 * 32 * 2)


def test_a_language_model_that_hears_reads_a_prompt_first() -> None:
    names = [one.name for one in passes_of(load_model("voxtral-mini-3b"), SOUND).forwards]
    assert names == ["encoder", "prompt", "decoder"]


def test_speech_is_a_prompt_then_tokens_and_a_head_for_each() -> None:
    """Ten seconds at 7.5 tokens; the head runs 20 steps for each, twice with guidance."""
    heads = Heads(hidden=64, query=4, kv=4, dim=16)
    layers = tuple(replace(one, attention=replace(one.attention, causal=True)) for one in encoder_layers(2, heads, 256))
    tower = Tower(name="prediction_head", weights=(Weight(name="up", part="mlp", out_features=8, in_features=64),))
    model = spec(model_type="vibevoice", architecture="audio", layers=layers, towers=(tower,))
    found = passes_of(model, Item(preset="tts", unit="audio-second", tokens=64, audio_s=10))
    assert [(one.name, one.passes) for one in found.forwards] == [("prompt", 1), ("decoder", 75), ("head", 3000)]
    assert found.forwards[2].gemm_flops == 2 * 8 * 64
    assert found.cache_bytes == 2 * 2 * 64 * (64 + 75) * 2
    assert found.units == 10


def test_native_size_of_images() -> None:
    assert native_image_px(load_model("vit-base")) == 224
    assert native_image_px(load_model("bge-m3")) is None


def test_places_that_are_no_square_stand_for_one_of_as_many(tmp_path: Path) -> None:
    """800 x 1,333 in patches of 16: 50 x 83 = 4,150 places, and 100 of detections: 65 x 65 at the most."""
    (tmp_path / "config.json").write_text(json.dumps(YOLOS), encoding="utf-8")
    assert native_image_px(load_model(str(tmp_path))) == 65 * 16


def resnet18(classes: int) -> ModelSpec:
    backbone = Weight(name="conv", part="other", out_features=64, in_features=174_633)
    head = Weight(name="classifier", part="head", out_features=classes, in_features=512)
    return spec(model_type="resnet", architecture="cnn", outer=(backbone, head))


def test_convolutions_are_known_by_their_parameters_whatever_the_head() -> None:
    assert resnet18(3).outer[0].params == 11_176_512
    for classes in (3, 1000):
        assert passes_of(resnet18(classes), IMAGE).flops == pytest.approx(2 * 1.814e9)
    assert passes_of(resnet18(3), replace(IMAGE, image_px=448)).flops == pytest.approx(8 * 1.814e9)


def test_another_network_is_not_taken_for_a_known_one() -> None:
    other = spec(model_type="resnet", architecture="cnn", outer=conv("conv", (64, 3), 49))
    assert convolutions_of(other) is None
    with pytest.raises(KnowledgeError, match="what an image costs"):
        passes_of(other, IMAGE)


def test_a_recommender_looks_up_one_row_of_every_table() -> None:
    tables = tuple(table(f"embedding_tables.{place}", 1000, 64) for place in range(3))
    top = Weight(name="top", part="mlp", out_features=10, in_features=192)
    model = spec(architecture="recommender", outer=(*tables, top))
    found = passes_of(model, Item(preset="recommend", unit="request", batch=256)).forwards[0]
    assert found.gemm_flops == 2 * 256 * 1920
    assert found.moved_bytes == 256 * 3 * 64 * 2 + 256 * (10 + 192) * 2
    assert found.weights == 1920


def test_trees_are_walked_to_their_depth() -> None:
    model = load_model("sklearn:GradientBoostingClassifier")
    trees, nodes = int(model.extra["trees"]), int(model.extra["nodes"])
    depth = np.log2((nodes / trees + 1) / 2)
    found = passes_of(model, Item(preset="tabular", unit="row", batch=10))
    assert found.forwards[0].moved_bytes == pytest.approx(10 * trees * depth * 16)
    assert found.flops == 0


@pytest.mark.parametrize(
    ("name", "item"),
    [
        ("bge-m3", replace(IMAGE, preset="vision")),
        ("whisper-large-v3", replace(SOUND, preset="tts")),
        ("flux.1-dev", replace(PICTURE, frames=16)),
        ("vit-base", PICTURE),
        ("bge-m3", SOUND),
        ("vit-base", replace(TEXT, tokens=None)),
        ("bge-m3", replace(TEXT, preset="chat")),
    ],
)
def test_what_is_not_known_is_refused(name: str, item: Item) -> None:
    with pytest.raises(KnowledgeError):
        passes_of(load_model(name), item)


def test_an_unknown_patch_size_is_refused() -> None:
    odd = replace(load_model("flux.1-dev"), outer=())
    with pytest.raises(KnowledgeError):
        diffusion_passes(odd, PICTURE)


def test_windows_bound_what_a_token_sees_and_causal_layers_see_half() -> None:
    both = Attention(kind="full", query_heads=2, kv_heads=2, head_dim=8, value_head_dim=8, causal=False)
    whole = attended(both, tokens=100.0, seen=100.0).attention_flops
    assert whole == 2 * 2 * 16 * 100 * 100
    assert attended(replace(both, causal=True), tokens=100.0, seen=100.0).attention_flops == whole / 2
    assert attended(replace(both, window_tokens=10), tokens=100.0, seen=100.0).attention_flops == whole / 10
    assert attended(replace(both, kind="mamba"), tokens=100.0, seen=100.0).attention_flops == 0


def test_sequences_share_weights_and_not_attention() -> None:
    layers: tuple[Layer, ...] = encoder_layers(2, Heads(hidden=64, query=4, kv=4, dim=16), 256)
    one = layer_stack("net", layers, tokens=10.0)
    four = layer_stack("net", layers, tokens=10.0, sequences=4.0)
    assert four.weights == one.weights
    assert four.gemm_flops == 4 * one.gemm_flops
    assert four.attention_flops == 4 * one.attention_flops


def test_a_graviton_by_hand() -> None:
    """2.6 GHz, four pipes of four lanes, multiplication with addition; 307.2 GB/s over 64 cores."""
    found = processor_of("c7g")
    assert found is not None
    assert found.flops_per_s_per_vcpu == pytest.approx(2.6e9 * 4 * 4 * 2)
    assert found.bytes_per_s_per_vcpu == pytest.approx(4.8e9)
    assert processor_of("c7i-flex") is None


@pytest.mark.parametrize(("family", "measured"), [("c8i", 245.15e9 / 2), ("c8a", 286.95e9), ("c7a", 117e9)])
def test_x86_processors_reach_what_a_public_kernel_reached(family: str, measured: float) -> None:
    """README of keel at ce43bca: FP32 operations a second of one core; two vCPUs share a core of Intel's."""
    found = processor_of(family)
    assert found is not None
    assert found.flops_per_s_per_vcpu == pytest.approx(measured, rel=0.03)


NET = Passes(
    unit="image",
    units=1.0,
    forwards=(
        Forward(name="a", gemm_flops=4e12, attention_flops=1e12, weights=1e9, moved_bytes=1e9, kernels=100),
        Forward(name="b", passes=20, gemm_flops=1e9, weights=1e9, elementwise_bytes=1e6, kernels=50, graphed=True),
    ),
    peak_bytes=1e9,
)


@given(requests=st.floats(1, 4096))
def test_parts_add_up_and_none_beats_the_sheet(requests: float) -> None:
    total = float(batch_seconds(NET, FAST, requests=requests))
    assert sum(float(term["seconds"]) for term in terms_of(NET, FAST, requests=requests)) == pytest.approx(total)
    assert total >= requests * NET.flops / FAST.gemm_flops_per_s
    assert total >= sum(one.passes * one.weights * 2.0 for one in NET.forwards) / FAST.bytes_per_s


@given(requests=st.floats(1, 4096))
def test_a_batch_waits_for_what_comes_in(requests: float) -> None:
    sent = replace(NET, input_bytes=1e9)
    slow = replace(FAST, feed_bytes_per_s=1e7)
    assert float(batch_seconds(sent, slow, requests=requests)) == pytest.approx(requests * 100.0)
    terms = terms_of(sent, slow, requests=requests)
    assert sum(float(term["seconds"]) for term in terms) == pytest.approx(requests * 100.0)
    assert terms[-1]["bound_by"] == "communication"
    assert batch_seconds(sent, FAST, requests=requests) == batch_seconds(NET, FAST, requests=requests)


def test_pixels_and_features_come_in() -> None:
    assert passes_of(load_model("vit-base"), replace(IMAGE, batch=2)).input_bytes == 2 * 3 * 224 * 224
    rows = passes_of(load_model("sklearn:LinearRegression,features=99"), Item(preset="tabular", unit="row", batch=10))
    assert rows.input_bytes == 10 * 100 * 4


@given(requests=st.integers(1, 512))
def test_a_larger_batch_takes_longer_and_serves_more(requests: int) -> None:
    one, more = (float(batch_seconds(NET, FAST, requests=float(count))) for count in (requests, requests + 1))
    assert more > one
    assert (requests + 1) / more >= requests / one * (1 - 1e-9)


LOADS = st.one_of(
    st.builds(Arrival, kind=st.just("closed"), users=st.floats(1, 2000), think_s=st.sampled_from([0.0, 1.0, 30.0])),
    st.builds(Arrival, kind=st.just("rate"), rate_per_s=st.floats(0.01, 500)),
    st.builds(Arrival, kind=st.just("offline")),
    st.builds(Arrival, kind=st.just("static"), users=st.integers(1, 256).map(float)),
)


@given(arrival=LOADS, largest=st.integers(1, 1024))
def test_more_devices_are_no_slower_and_carry_in_proportion(arrival: Arrival, largest: int) -> None:
    devices = np.array([1.0, 2.0, 4.0, 8.0, 64.0])
    found = outcome(NET, FAST, arrival, devices=devices, largest_batch=float(largest))
    p99 = np.asarray(found.latency_p99_s)
    assert (p99[1:] <= p99[:-1] * (1 + 1e-9)).all()
    assert np.asarray(found.capacity_per_s) == pytest.approx(devices * float(np.asarray(found.capacity_per_s)[0]))
    assert (np.asarray(found.requests_per_s) <= np.asarray(found.capacity_per_s) * (1 + 1e-9)).all()
    assert (np.asarray(found.batch) <= largest).all()


def alone(found: Outcome) -> float:
    return float(np.asarray(found.latency_p99_s)[0])


def test_one_user_alone_waits_for_one_batch_of_one() -> None:
    found = outcome(NET, FAST, Arrival(kind="closed", users=1.0), devices=1.0, largest_batch=64.0)
    assert alone(found) == pytest.approx(float(batch_seconds(NET, FAST, requests=1.0)) + FAST.request_s)


def test_a_closed_load_obeys_littles_law() -> None:
    arrival = Arrival(kind="closed", users=100.0)
    found = outcome(NET, FAST, arrival, devices=1.0, largest_batch=8.0)
    assert float(np.asarray(found.requests_per_s)[0]) * alone(found) <= 100.0 * (1 + 1e-9)


def test_a_rate_beyond_capacity_waits_for_ever() -> None:
    arrival = Arrival(kind="rate", rate_per_s=1e6)
    assert alone(outcome(NET, FAST, arrival, devices=1.0, largest_batch=1024.0)) == np.inf
