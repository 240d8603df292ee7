"""Worked counts: published parameters, active parameters and cache bytes of well-known models."""

from __future__ import annotations

import pytest

from chipwise.model import load_model

# name, parameters, active parameters, KV bytes a token in 2-byte elements
COUNTS = [
    ("llama-3.3-70b", 70_553_706_496, 70_553_706_496, 327_680),
    ("llama-3.1-8b", 8_030_261_248, 8_030_261_248, 131_072),
    ("llama-3.1-405b", 405_853_388_800, 405_853_388_800, 516_096),
    ("llama-3.2-1b", 1_235_814_400, 1_235_814_400, 32_768),
    ("llama-2-7b", 6_738_415_616, 6_738_415_616, 524_288),
    ("llama-2-70b", 68_976_648_192, 68_976_648_192, 327_680),
    ("mixtral-8x7b", 46_702_792_704, 12_879_925_248, 131_072),
    ("qwen2.5-72b", 72_706_203_648, 72_706_203_648, 327_680),
    ("qwen3-0.6b", 596_049_920, 596_049_920, 114_688),
    ("qwen3-235b-a22b", 235_093_634_560, 22_190_763_520, 192_512),
    ("gemma-2-9b", 9_241_705_984, 9_241_705_984, 172_032),
    ("gemma-3-27b", 27_432_406_640, 27_432_406_640, 81_920),
    ("phi-4", 14_659_507_200, 14_659_507_200, 204_800),
    ("deepseek-v3", 671_026_404_352, 37_552_282_624, 70_272),
    ("deepseek-v2-lite", 15_706_484_224, 2_661_150_208, 31_104),
    ("gpt-oss-20b", 20_914_757_184, 4_187_440_704, 24_576),
    ("gpt-oss-120b", 116_829_156_672, 5_711_982_912, 36_864),
    ("glm-4.5", 352_797_814_784, 33_632_251_904, 376_832),
    ("llama-4-scout", 108_641_793_536, 18_044_827_136, 49_152),
    ("qwen3-next-80b-a3b", 79_674_391_296, 3_874_929_408, 24_576),
    ("nemotron-super-49b", 49_867_145_216, 49_867_145_216, 200_704),
    ("whisper-large-v3", 1_543_490_560, 1_543_490_560, 163_840),
    ("bge-m3", 567_754_752, 567_754_752, 0),
    ("stable-diffusion-3-medium", 2_028_328_000, 2_028_328_000, 0),
    ("mamba-codestral-7b", 7_285_403_648, 7_285_403_648, 0),
]


@pytest.mark.parametrize(("name", "total", "active", "kv_bytes"), COUNTS)
def test_published_counts(name: str, total: int, active: int, kv_bytes: int) -> None:
    spec = load_model(name)
    assert (spec.params_total, spec.params_active) == (total, active)
    assert spec.kv_bytes_per_token() == kv_bytes


def test_multi_token_prediction_stands_apart() -> None:
    spec = load_model("deepseek-v3")
    # The hub counts 684.5e9 with the module's copies of embedding and head.
    assert spec.params_total + spec.params_mtp == pytest.approx(684.5e9, rel=1e-3)
    assert load_model("llama-3.1-8b").params_mtp == 0


def test_states_are_counted_by_sequence() -> None:
    assert load_model("gemma-2-9b").state_bytes_per_sequence() == 2 * 21 * 8 * 256 * 2 * 4096
    assert load_model("mamba-codestral-7b").state_bytes_per_sequence() == 64 * (
        128 * 64 * 128 * 4 + (8192 + 2 * 8 * 128) * 3 * 2
    )
    assert load_model("whisper-large-v3").state_bytes_per_sequence() == 2 * 32 * 20 * 64 * 2 * 1500


def test_every_built_in_model_is_read_and_has_a_source() -> None:
    from chipwise.model import all_known

    assert len(all_known()) >= 40
    for known in all_known():
        assert load_model(known.name).params_total > 0
        assert known.source
        assert known.read_on
        for alias in known.aliases:
            assert load_model(alias).params_total == load_model(known.name).params_total


def test_terms_add_up() -> None:
    for name in ("deepseek-v3", "gemma-3-27b", "qwen3-next-80b-a3b", "whisper-large-v3"):
        spec = load_model(name)
        counted = sum(weight.params * copies for weight, copies in spec.all_weights())
        assert counted == spec.params_total + spec.params_mtp
        assert sum(layer.count for layer in spec.layers) == spec.layer_count
        for layer in spec.layers:
            assert len(layer.indices) == layer.count
