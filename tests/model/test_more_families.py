"""Pairs, drafts, parts that are only named, and readers of last resort: worked numbers and refusals."""

from __future__ import annotations

from typing import Any

import pytest

from chipwise.errors import KnowledgeError
from chipwise.model.read import Source, read_source
from chipwise.model.spec import ModelSpec

LLAMA: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 100,
    "max_position_embeddings": 512,
}


def _read(**config: Any) -> ModelSpec:
    return read_source(Source(config=config, name="made-up"))


@pytest.mark.parametrize(
    ("kind", "encoder", "decoder", "params"),
    [
        ("vision-encoder-decoder", "vit", "gpt2", 239_195_904),
        ("vision-encoder-decoder", "deit", "bert", 224_271_930),
        ("encoder-decoder", "bert", "bert", 247_363_386),
    ],
)
def test_pairs_as_transformers_builds_them(kind: str, encoder: str, decoder: str, params: int) -> None:
    """Parameters of the class of two default configs (transformers 5.24.0, meta device)."""
    spec = _read(model_type=kind, encoder={"model_type": encoder}, decoder={"model_type": decoder})
    assert spec.params_total == params
    # Twelve layers of two caches of 768 elements, two bytes each: the encoder caches nothing.
    assert spec.kv_bytes_per_token() == 12 * 2 * 768 * 2


def test_trocr_attends_to_an_encoder_of_another_width() -> None:
    decoder = {"model_type": "trocr", "cross_attention_hidden_size": 768}
    spec = _read(model_type="vision-encoder-decoder", encoder={"model_type": "vit"}, decoder=decoder)
    assert spec.params_total == 333_657_600


def test_half_a_pair_is_refused() -> None:
    with pytest.raises(KnowledgeError, match="encoder, decoder"):
        _read(model_type="vision-encoder-decoder", encoder={"model_type": "vit"})


def test_eagle3_reads_three_states_and_borrows_the_embedding() -> None:
    """Fc 64x192; q 64x128, k and v 32x128, o 64x64; MLP 3x(128x64); four norms; a head of 50 x 64."""
    spec = _read(model_type="llama", architectures=["LlamaForCausalLMEagle3"], draft_vocab_size=50, **LLAMA)
    layer = 64 * 128 + 2 * 32 * 128 + 64 * 64 + 3 * 128 * 64 + 3 * 64
    assert spec.params_total == 64 * 192 + layer + 64 + 50 * 64
    assert spec.architecture == "dense-llm"
    assert any("borrows" in note for note in spec.warnings)


def test_dflash_joins_the_states_it_picks() -> None:
    picked = {"target_layer_ids": [1, 9, 17]}
    spec = _read(model_type="qwen3", architectures=["DFlashDraftModel"], dflash_config=picked, head_dim=16, **LLAMA)
    layer = 64 * 64 * 2 + 2 * 32 * 64 + 2 * 16 + 3 * 128 * 64 + 2 * 64
    assert spec.params_total == 64 * 192 + 2 * 64 + layer


def test_dflash_without_its_layers_is_refused() -> None:
    with pytest.raises(KnowledgeError, match="target_layer_ids"):
        _read(model_type="qwen3", architectures=["DFlashDraftModel"], **LLAMA)


def test_medusa_heads() -> None:
    spec = _read(medusa_num_heads=3, medusa_num_layers=1, hidden_size=64, vocab_size=100)
    assert spec.params_total == 3 * (64 * 64 + 64 + 100 * 64)


def test_janus_as_first_published_names_its_towers() -> None:
    """DeepSeek's Janus 1.3B: 2.09 billion parameters on its page."""
    text = {"model_type": "llama", "vocab_size": 102400, "hidden_size": 2048, "intermediate_size": 5632}
    text |= {"num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16}
    projector = {"params": {"depth": 2, "input_dim": 1024, "n_embed": 2048}}
    spec = _read(
        model_type="multi_modality",
        language_config=text,
        vision_config={"params": {"model_name": "siglip_large_patch16_384"}},
        aligner_config=projector,
        gen_vision_config={"cls": "VQ-16", "params": {"image_token_size": 16384, "n_embed": 8}},
        gen_aligner_config={"params": {"depth": 2, "input_dim": 8, "n_embed": 2048}},
        gen_head_config={"params": {"image_token_embed": 2048, "image_token_size": 16384}},
    )
    assert spec.params_total == pytest.approx(2.09e9, rel=0.005)
    assert spec.kv_bytes_per_token() == 24 * 2 * 2048 * 2


def test_a_tower_that_is_only_named_and_not_known_is_refused() -> None:
    with pytest.raises(KnowledgeError, match="only named: no_such_tower"):
        _read(
            model_type="multi_modality",
            language_config=LLAMA,
            vision_config={"params": {"model_name": "no_such_tower"}},
        )


def test_gemma3n_with_class_defaults() -> None:
    """E4B: its files hold 7,849,978,192 parameters, of which 15 layers' K, V and norm (2,097,408 each) are not used."""
    spec = _read(model_type="gemma3n", text_config={}, vision_config={}, audio_config={})
    assert spec.params_total == 7_849_978_192 - 15 * 2_097_408
    assert spec.architecture == "vision-language"


def test_unknown_encoder_with_the_keys_of_bert_is_read_with_a_warning() -> None:
    config = {**LLAMA, "type_vocab_size": 2}
    known = _read(model_type="bert", architectures=["BertForMaskedLM"], **config)
    spec = _read(model_type="fancybert", architectures=["FancyBertForMaskedLM"], **config)
    assert spec.params_total == known.params_total
    assert spec.architecture == "encoder"
    assert any("fancybert" in note for note in spec.warnings)


def test_unknown_decoder_with_strange_keys_is_refused() -> None:
    with pytest.raises(KnowledgeError, match="fancyloop"):
        _read(model_type="fancyloop", architectures=["FancyLoopForCausalLM"], num_cycles=3, **LLAMA)
