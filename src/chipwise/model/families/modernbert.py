"""ModernBERT and encoders after it: rotary positions, gated MLP, windows. And the decoder trained like it."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model.blocks import (
    Block,
    NormKind,
    Projections,
    Weights,
    assemble,
    attention_weights,
    lm_head,
    matrix,
    mlp,
    norm,
    norms,
    table,
    vector,
)
from chipwise.model.decoder import attention_mixers, dims, is_tied
from chipwise.model.draft import Draft
from chipwise.model.families.bert import encoder
from chipwise.model.families.llama import llama
from chipwise.model.keys import Keys
from chipwise.model.nested import part_keys, read_part, tower_part
from chipwise.model.spec import Tower


def modernbert(keys: Keys) -> Draft:
    """ModernBERT: rotary positions, gated MLP, no biases, windows in two layers of three."""
    # The first layer has one norm less: the embeddings are normed already.
    size = dims(keys)
    bias = keys.flag("attention_bias")
    shift: NormKind = "layer" if keys.flag("norm_bias") else "rms"
    every = keys.size("global_attn_every_n_layers", default=3) or 1
    window = keys.size("local_attention", default=128)
    weights = attention_weights(size.heads, Projections(bias="qkvo" if bias else "", prefix="attn"))
    full = size.heads.attention(causal=False)
    mixers = {
        "full": Block(weights=(*weights, *norm("attn_norm", size.hidden, shift)), attention=full),
        "first": Block(weights=weights, attention=full),
        "window": Block(
            weights=(*weights, *norm("attn_norm", size.hidden, shift)),
            attention=replace(full, kind="sliding", window_tokens=window),
        ),
    }
    ffn = Block(weights=mlp(size.hidden, size.ffn, bias=keys.flag("mlp_bias")))
    plan = [
        ("first" if index == 0 else "full" if index % every == 0 else "window", "dense") for index in range(size.layers)
    ]
    layers = assemble(plan, mixers, {"dense": ffn}, norm("mlp_norm", size.hidden, shift))
    outer = (
        table("embeddings.tok_embeddings", size.vocab, size.hidden, units=size.vocab),
        *norms(("embeddings.norm", "final_norm"), size.hidden, shift),
        *_modern_head(keys, size.hidden, size.vocab, shift=shift == "layer"),
    )
    return encoder(keys, layers, outer, size.hidden)


def _modern_head(keys: Keys, h: int, vocab: int, *, shift: bool) -> Weights:
    name = keys.head
    if name.endswith("Model") or keys.nested:
        return ()
    dense = (
        *matrix("head.dense", (h, h), "other", bias=keys.flag("classifier_bias")),
        *norm("head.norm", h, "layer" if shift else "rms"),
    )
    if "Classification" in name:
        return (*dense, *matrix("classifier", (keys.labels, h), "head", bias=True))
    return (*dense, vector("decoder.bias", vocab, "head"))


def modernbert_decoder(keys: Keys) -> Draft:
    """Ettin's decoders: ModernBERT with a causal mask, its windows half as wide, keys and values cached."""
    size = dims(keys)
    shift: NormKind = "layer" if keys.flag("norm_bias") else "rms"
    every = keys.size("global_attn_every_n_layers", default=3) or 1
    known = keys.also(sliding_window=keys.size("local_attention", default=128) // 2)
    style = Projections(bias="qkvo" if keys.flag("attention_bias") else "", prefix="attn")
    mixers = attention_mixers(known, size.heads, style)
    listed = keys.items("layer_types") or ["sliding_attention" if index % every else "" for index in range(size.layers)]
    kinds = ["sliding" if item == "sliding_attention" else "full" for item in listed[: size.layers]]
    # The first layer has one norm less: the embeddings are normed already.
    before = {
        name: replace(block, weights=(*block.weights, *norm("attn_norm", size.hidden, shift)))
        for name, block in mixers.items()
    }
    plan = [(f"first-{kind}" if index == 0 else kind, "dense") for index, kind in enumerate(kinds)]
    firsts = {f"first-{name}": block for name, block in mixers.items()}
    ffn = Block(weights=mlp(size.hidden, size.ffn, bias=keys.flag("mlp_bias")))
    layers = assemble(plan, {**before, **firsts}, {"dense": ffn}, norm("mlp_norm", size.hidden, shift))
    outer = (
        table("embeddings.tok_embeddings", size.vocab, size.hidden, units=size.vocab),
        *norms(("embeddings.norm", "final_norm"), size.hidden, shift),
        *_decoder_head(keys, size.hidden, size.vocab, shift),
    )
    return Draft(
        kind="llm",
        layers=layers,
        outer=outer,
        hidden_size=size.hidden,
        vocab_size=size.vocab,
        max_context_tokens=keys.maybe("max_position_embeddings"),
    )


def _decoder_head(keys: Keys, h: int, vocab: int, shift: NormKind) -> Weights:
    if keys.head.endswith("Model"):
        return ()
    dense = (*matrix("head.dense", (h, h), "other", bias=keys.flag("classifier_bias")), *norm("head.norm", h, shift))
    if keys.head.endswith("Classification"):
        return (*dense, *matrix("classifier", (keys.labels, h), "head", bias=keys.flag("classifier_bias")))
    bias = keys.flag("decoder_bias", default=True)
    return (*dense, *lm_head(vocab, h, is_tied=is_tied(keys, default=True), bias=bias, name="decoder"))


def ultrabert(keys: Keys) -> Draft:
    """UltraBERT: Llama's layers looking both ways, most of them within a window."""
    draft = llama(replace(keys, head="Model"))
    layers = tuple(replace(layer, attention=replace(layer.attention, causal=False)) for layer in draft.layers)
    outer = (*draft.outer, *_ultra_head(keys, keys, draft.hidden_size, draft.vocab_size))
    return replace(draft, kind="encoder", layers=layers, outer=outer)


def _ultra_head(keys: Keys, text: Keys, h: int, vocab: int) -> Weights:
    if keys.head.endswith("Classification"):
        return matrix("classifier", (keys.labels, h), "head", bias=True)
    if not keys.head.endswith("ForMaskedLM"):
        return ()
    width = text.size("prediction_head_size", default=768)
    return (
        *matrix("head.linear1", (width, h), "other"),
        *matrix("head.linear2", (h, width), "other"),
        *lm_head(vocab, h, is_tied=is_tied(keys, default=False), name="head.decoder"),
    )


def ultravbert(keys: Keys) -> Draft:
    """UltraVBERT: UltraBERT behind a SigLIP tower, whose patches are shuffled into fewer."""
    part = part_keys(keys, "text_config", default="ultrabert", head="Model")
    text = read_part(part)
    tower, width = tower_part(keys, "vision_config", default="siglip_vision_model")
    shuffled = width * keys.size("pixel_shuffle_factor", default=4) ** 2
    between = (
        *matrix("connector.modality_projection", (text.hidden_size, shuffled), "other"),
        *norm("connector.norm", text.hidden_size),
    )
    outer = (*text.outer, *_ultra_head(keys, part, text.hidden_size, text.vocab_size))
    return replace(text, outer=outer).beside(tower, Tower(name="connector", weights=between), kind="encoder")


READERS = {
    "modernbert": modernbert,
    "modernbert-decoder": modernbert_decoder,
    "ultrabert": ultrabert,
    "ultravbert": ultravbert,
}
