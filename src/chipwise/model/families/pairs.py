"""An encoder and a decoder of any two families (Donut, TrOCR, speech translation), or two encoders side by side."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model.blocks import Weights, matrix, norm, vector
from chipwise.model.draft import Draft, Kind
from chipwise.model.keys import Keys
from chipwise.model.nested import part_keys, read_part
from chipwise.model.spec import Layer, Tower

_CROSSING_ALREADY = frozenset({"bart", "mbart", "trocr", "pegasus", "plbart", "blenderbot", "speech_to_text_2"})


def pair(keys: Keys) -> Draft:
    """The decoder leads; every layer of it attends to the encoder's output too; a projection where widths differ."""
    if not keys.has("encoder") or not keys.has("decoder"):
        raise keys.missing("encoder", "decoder")
    seen = read_part(part_keys(keys, "encoder", default="vit", head="Model"))
    inner = part_keys(keys, "decoder", default="gpt2", head="ForCausalLM")
    text = read_part(inner)
    if inner.text("model_type") not in _CROSSING_ALREADY:
        text = replace(text, layers=tuple(_crossed(layer, text.hidden_size) for layer in text.layers))
    text = _looking_back(text)
    between: Weights = ()
    if seen.hidden_size != text.hidden_size and not inner.has("cross_attention_hidden_size"):
        between = matrix("enc_to_dec_proj", (text.hidden_size, seen.hidden_size), "other", bias=True)
    kinds: dict[str, Kind] = {"vision-encoder-decoder": "vision-language", "speech-encoder-decoder": "audio"}
    draft = text.beside(seen.tower("encoder"), Tower(name="enc_to_dec_proj", weights=between))
    return replace(draft, kind=kinds.get(keys.text("model_type"), "llm"))


def _crossed(layer: Layer, hidden: int) -> Layer:
    """A layer with cross-attention: four projections with biases and a norm."""
    crossing = (
        *(
            weight
            for name in ("q_proj", "k_proj", "v_proj", "out_proj")
            for weight in matrix(f"crossattention.{name}", (hidden, hidden), "attention", bias=True)
        ),
        *norm("crossattention.layer_norm", hidden, "layer"),
    )
    return replace(layer, weights=(*layer.weights, *crossing))


def _looking_back(draft: Draft) -> Draft:
    layers = tuple(replace(layer, attention=replace(layer.attention, causal=True)) for layer in draft.layers)
    return replace(draft, layers=layers)


def dual(keys: Keys) -> Draft:
    """Two encoders projected to one width, and a scale (`vision-text-dual-encoder`)."""
    seen = read_part(part_keys(keys, "vision_config", default="vit", head="Model"))
    text = read_part(part_keys(keys, "text_config", default="bert", head="Model"))
    dim = keys.size("projection_dim", default=512)
    between = (
        *matrix("visual_projection", (dim, seen.hidden_size), "head"),
        *matrix("text_projection", (dim, text.hidden_size), "head"),
        vector("logit_scale", 1, "other"),
    )
    draft = replace(text, kind="vision-language", outer=(*text.outer, *between))
    return draft.beside(seen.tower("vision_model"))


READERS = {
    "vision-encoder-decoder": pair,
    "speech-encoder-decoder": pair,
    "encoder-decoder": pair,
    "vision-text-dual-encoder": dual,
}
