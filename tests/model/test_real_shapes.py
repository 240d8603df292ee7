"""Shapes of published models with a trap in each, against the classes that transformers 5.24.0 builds of them."""

from __future__ import annotations

from typing import Any

import pytest

from chipwise.model.read import Source, read_source

SIGLIP = {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16}


def _text(model_type: str, sizes: tuple[int, int, int, int, int, int], **more: Any) -> dict[str, Any]:
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size")
    return {"model_type": model_type, **dict(zip((*names, "vocab_size"), sizes, strict=True)), **more}


# A tower that names its whole's model_type is the tower, not the whole once more.
SMOLVLM_256M = {
    "model_type": "idefics3",
    "architectures": ["Idefics3ForConditionalGeneration"],
    "text_config": _text("llama", (576, 30, 9, 3, 1536, 49280), head_dim=64),
    "vision_config": {
        "model_type": "idefics3",
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "image_size": 512,
        "patch_size": 16,
    },
    "scale_factor": 4,
    "tie_word_embeddings": False,
}
IDEFICS2_8B = {
    "model_type": "idefics2",
    "architectures": ["Idefics2ForConditionalGeneration"],
    "text_config": _text("mistral", (4096, 32, 32, 8, 14336, 32003)),
    "vision_config": {"model_type": "idefics2", **SIGLIP, "image_size": 980, "patch_size": 14},
    "perceiver_config": {"model_type": "idefics2"},
}
# Neither part says whether the head is tied: the outer class does.
INTERNVL3_8B = {
    "model_type": "internvl",
    "architectures": ["InternVLForConditionalGeneration"],
    "text_config": _text("qwen2", (3584, 28, 28, 4, 18944, 151674)),
    "vision_config": {
        "model_type": "internvl_vision",
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "image_size": [448, 448],
        "patch_size": [14, 14],
        "attention_bias": True,
        "use_qk_norm": False,
    },
}
# A Q-Former of two layers that both attend to the sound.
GRANITE_SPEECH_8B = {
    "model_type": "granite_speech",
    "architectures": ["GraniteSpeechForConditionalGeneration"],
    "text_config": _text("granite", (4096, 40, 32, 8, 12800, 49160), tie_word_embeddings=True),
    "encoder_config": {"num_layers": 16, "output_dim": 256},
    "projector_config": {
        "model_type": "blip_2_qformer",
        "hidden_size": 1024,
        "encoder_hidden_size": 1024,
        "num_hidden_layers": 2,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
        "cross_attention_frequency": 1,
    },
}
# Its text encoder is wider than the class assumes.
MUSICGEN_LARGE = {
    "model_type": "musicgen",
    "architectures": ["MusicgenForConditionalGeneration"],
    "text_encoder": {
        "model_type": "t5",
        "d_model": 768,
        "d_ff": 3072,
        "d_kv": 64,
        "num_layers": 12,
        "num_heads": 12,
        "vocab_size": 32128,
        "feed_forward_proj": "relu",
    },
    "audio_encoder": {"model_type": "encodec"},
    "decoder": {
        "model_type": "musicgen_decoder",
        "hidden_size": 2048,
        "num_hidden_layers": 48,
        "num_attention_heads": 32,
        "ffn_dim": 8192,
        "vocab_size": 2048,
        "num_codebooks": 4,
    },
}
# Positions by rotation have no table.
ESM2_650M = {
    "model_type": "esm",
    "architectures": ["EsmForMaskedLM"],
    "hidden_size": 1280,
    "num_hidden_layers": 33,
    "num_attention_heads": 20,
    "intermediate_size": 5120,
    "vocab_size": 33,
    "max_position_embeddings": 1026,
    "position_embedding_type": "rotary",
    "emb_layer_norm_before": False,
}
XLNET_BASE = {
    "model_type": "xlnet",
    "architectures": ["XLNetLMHeadModel"],
    "d_model": 768,
    "n_layer": 12,
    "n_head": 12,
    "d_inner": 3072,
    "vocab_size": 32000,
    "mem_len": None,
}


@pytest.mark.parametrize(
    ("config", "params"),
    [
        (SMOLVLM_256M, 256_484_928),
        (IDEFICS2_8B, 8_402_768_112),
        (INTERNVL3_8B, 7_400_774_144),
        (GRANITE_SPEECH_8B, 8_648_645_888),
        (MUSICGEN_LARGE, 3_381_437_282),
        (ESM2_650M, 651_043_254),
        (XLNET_BASE, 116_750_336),
    ],
)
def test_parameters(config: dict[str, Any], params: int) -> None:
    assert read_source(Source(config=config, name="x")).params_total == params


def test_a_swin_with_absolute_positions_has_a_table_of_them() -> None:
    config = {
        "model_type": "swin",
        "architectures": ["SwinForImageClassification"],
        "embed_dim": 96,
        "depths": [2, 2, 6, 2],
        "num_heads": [3, 6, 12, 24],
        "num_labels": 1000,
    }
    plain, absolute = (
        read_source(Source(config={**config, "use_absolute_embeddings": flag}, name="x")).params_total
        for flag in (False, True)
    )
    assert (plain, absolute - plain) == (28_288_354, 56 * 56 * 96)


def test_xlnet_keeps_one_hidden_state_a_token_and_layer() -> None:
    spec = read_source(Source(config=XLNET_BASE, name="x"))
    assert spec.kv_bytes_per_token() == 12 * 768 * 2
    short = read_source(Source(config={**XLNET_BASE, "mem_len": 512}, name="x"))
    assert (short.kv_bytes_per_token(), short.state_bytes_per_sequence()) == (0, 512 * 12 * 768 * 2)


def test_bark_writes_with_two_of_its_three_stacks() -> None:
    """Suno's large Bark: 24 layers of 1024 for meaning, as many for coarse sound; the fine stack sees all at once."""
    stack = {"hidden_size": 1024, "num_heads": 16, "num_layers": 24}
    parts = ("semantic_config", "coarse_acoustics_config", "fine_acoustics_config")
    config = {"model_type": "bark", "architectures": ["BarkModel"], **dict.fromkeys(parts, stack)}
    spec = read_source(Source(config=config, name="x"))
    assert spec.kv_bytes_per_token() == 2 * 24 * 2 * 1024 * 2
    assert spec.hidden_size == 1024
