"""Gemma 3n and 4: embeddings for every layer, shared caches, wide global heads, experts beside the MLP."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model import keys as k
from chipwise.model.blocks import (
    Block,
    Heads,
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
from chipwise.model.decoder import NORM_FOUR, Dims, Style, causal_lm, dims, window_plan
from chipwise.model.defaults import sized_tower
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys, side_by_side
from chipwise.model.mixture import Mix, mixture
from chipwise.model.nested import part_keys, read_part, text_part
from chipwise.model.spec import Tower


def _shared_from(keys: Keys, layers: int) -> int:
    return layers - keys.size("num_kv_shared_layers", default=0)


def _per_layer(keys: Keys, size: Dims) -> tuple[Weights, Weights]:
    """The weights of per-layer embeddings: (in each layer, outside)."""
    width = keys.size("hidden_size_per_layer_input", default=0)
    if not width:
        return (), ()
    inside = (
        *matrix("per_layer_input_gate", (width, size.hidden), "mlp"),
        *matrix("per_layer_projection", (size.hidden, width), "mlp"),
        *norm("post_per_layer_input_norm", size.hidden),
    )
    rows = keys.size("vocab_size_per_layer_input", default=size.vocab)
    outside = (
        table("embed_tokens_per_layer", rows, size.layers * width, units=rows),
        *matrix("per_layer_model_projection", (size.layers * width, size.hidden), "other"),
        *norm("per_layer_projection_norm", width),
    )
    return inside, outside


def _window_kinds(keys: Keys, layers: int, every: int) -> list[str]:
    """Every `every`-th layer is full, the last one too."""
    kinds = window_plan(keys, layers, pattern=every)
    if not keys.items("layer_types") and kinds:
        kinds[-1] = "full"
    return kinds


def _mixer(heads: Heads, kind: str, keys: Keys, *, shared: bool, no: str = "") -> Block:
    """One kind of layer. A layer that reuses another's cache has no K and V of its own and keeps nothing."""
    missing = "kv" if shared else no
    bias = "qkvo" if keys.flag("attention_bias") else ""
    weights = attention_weights(heads, Projections(bias=bias, qk_norm="head", no=missing))
    window = keys.maybe("sliding_window") if kind == "sliding" else None
    attention = heads.attention("sliding" if kind == "sliding" else "full", window_tokens=window)
    return Block(weights=weights, attention=replace(attention, kind="shared") if shared else attention)


def gemma4_text(keys: Keys) -> Draft:
    """Gemma 4: global layers have heads of `global_head_dim`, keys that serve as values where `attention_k_eq_v`."""
    size = dims(keys)
    k_is_v = keys.flag("attention_k_eq_v")
    wide = _global_heads(keys, size.heads, k_is_v=k_is_v)
    first_shared = _shared_from(keys, size.layers)
    mixers = {
        f"{kind}{'/shared' * shared}": _mixer(
            wide if kind == "full" else size.heads,
            kind,
            keys,
            shared=shared,
            no="v" if kind == "full" and k_is_v else "",
        )
        for kind in ("full", "sliding")
        for shared in (False, True)
    }
    kinds = _window_kinds(keys, size.layers, 6)
    double = keys.flag("use_double_wide_mlp")
    plan = [
        (f"{kind}{'/shared' * (index >= first_shared)}", "wide" if double and index >= first_shared else "dense")
        for index, kind in enumerate(kinds)
    ]
    inside, outside = _per_layer(keys, size)
    around = (*norms(NORM_FOUR, size.hidden), *inside)
    layers = assemble(plan, mixers, _gemma4_ffns(keys, size), around)
    draft = causal_lm(keys, size, layers, Style(tied=True))
    return replace(draft, outer=(*draft.outer, *outside))


def _global_heads(keys: Keys, heads: Heads, *, k_is_v: bool) -> Heads:
    """Heads of global layers by keys of their own; a config with overrides for single layers says them there."""
    if "per_layer_config" in keys.data:
        return heads
    kv = keys.maybe("num_global_key_value_heads")
    return replace(heads, dim=keys.size("global_head_dim", default=heads.dim), kv=kv if kv and k_is_v else heads.kv)


def _gemma4_ffns(keys: Keys, size: Dims) -> dict[str, Block]:
    dense = Block(weights=mlp(size.hidden, size.ffn))
    wide = Block(weights=mlp(size.hidden, 2 * size.ffn))
    if not keys.flag("enable_moe_block"):
        return {"dense": dense, "wide": wide}
    moe = mixture(keys, size.hidden, Mix(router="router.proj"))["moe"]
    names = ("post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2")
    more = (
        *norms(names, size.hidden),
        vector("router.scale", size.hidden, "router"),
        vector("router.per_expert_scale", keys.size(*k.EXPERTS), "router"),
    )
    both = replace(moe, weights=(*dense.weights, *moe.weights, *more))
    return {"dense": both, "wide": both}


def gemma3n_text(keys: Keys) -> Draft:
    """Gemma 3n: AltUp mixes several copies of the stream, Laurel adds a low-rank path, late layers share caches."""
    size = dims(keys, ffn=False)
    widths = keys.sizes("intermediate_size", count=size.layers)
    first_shared = _shared_from(keys, size.layers)
    kinds = _window_kinds(keys, size.layers, 5)
    mixers = {
        f"{kind}{'/shared' * shared}": _mixer(size.heads, kind, keys, shared=shared)
        for kind in ("full", "sliding")
        for shared in (False, True)
    }
    ffns = {str(width): Block(weights=mlp(size.hidden, width)) for width in set(widths)}
    plan = [
        (f"{kind}{'/shared' * (index >= first_shared)}", str(width))
        for index, (kind, width) in enumerate(side_by_side(keys, "intermediate_size", kinds, widths))
    ]
    inside, outside = _per_layer(keys, size)
    around = (*norms(NORM_FOUR, size.hidden), *inside, *_altup(keys, size))
    draft = causal_lm(keys, size, assemble(plan, mixers, ffns, around), Style(tied=True))
    copies = keys.size("altup_num_inputs", default=4) - 1
    names = ("altup_projections", "altup_unembed_projections")
    streams = tuple(
        weight
        for name in names
        for index in range(copies)
        for weight in matrix(f"{name}.{index}", (size.hidden, size.hidden), "other")
    )
    return replace(draft, outer=(*draft.outer, *outside, *streams))


def _altup(keys: Keys, size: Dims) -> Weights:
    inputs, rank = keys.size("altup_num_inputs", default=4), keys.size("laurel_rank", default=64)
    h = size.hidden
    return (
        vector("altup.correct_output_scale", h),
        vector("altup.correction_coefs", inputs * inputs, "other"),
        vector("altup.prediction_coefs", inputs**3, "other"),
        *matrix("altup.modality_router", (inputs, h), "router"),
        *norm("altup.router_norm", h),
        *matrix("laurel.linear_left", (rank, h), "mlp"),
        *matrix("laurel.linear_right", (h, rank), "mlp"),
        *norm("laurel.post_laurel_norm", h),
    )


def gemma3n(keys: Keys) -> Draft:
    """Gemma 3n: MobileNet 5 sees (its total is known, not its layers), a Conformer hears, each behind a matrix."""
    text = text_part(keys, default="gemma3n_text")
    seen = part_keys(keys, "vision_config", default="gemma3n_vision")
    name = seen.text("architecture", default="mobilenetv5_300m_enc")
    params = sized_tower(name)
    if params is None:
        raise keys.missing(f"the sizes of vision_config (the tower is only named: {name})")
    heard = part_keys(keys, "audio_config", default="gemma3n_audio", head="Gemma3nAudioEncoder")
    tower = Tower(name="vision_tower", weights=matrix("all", (params, 1), "other"))
    towers = (tower, read_part(heard).tower("audio_tower"))
    between = (_embedder(seen, text.hidden_size, "vision"), _embedder(heard, text.hidden_size, "audio"))
    return text.beside(*towers, *between, kind="vision-language")


def _embedder(keys: Keys, out: int, name: str) -> Tower:
    hidden = keys.size("hidden_size")
    weights = (
        table("embedding", keys.size("vocab_size", default=128), hidden),
        *norms(("hard_embedding_norm", "soft_embedding_norm"), hidden),
        *matrix("embedding_projection", (out, hidden), "other"),
    )
    return Tower(name=f"embed_{name}", weights=weights)


def gemma4_unified(keys: Keys) -> Draft:
    """Gemma 4 unified: images and sounds go straight into the language model."""
    return replace(text_part(keys, default="gemma4_unified_text"), kind="vision-language")


def assistant(keys: Keys) -> Draft:
    """Gemma 4's draft models: layers that read another model's cache, between two projections of its hidden state."""
    text = read_part(part_keys(keys, "text_config", default="gemma4_text", head="Model"))
    wide = keys.size("backbone_hidden_size")
    around = (
        *matrix("pre_projection", (text.hidden_size, 2 * wide), "other"),
        *matrix("post_projection", (wide, text.hidden_size), "other"),
    )
    centroids = keys.size("num_centroids", default=2048) if keys.flag("use_ordered_embeddings") else 0
    ordered = matrix("masked_embedding.centroids", (centroids, text.hidden_size), "head") if centroids else ()
    tied = keys.flag("tie_word_embeddings", default=True)
    head = lm_head(text.vocab_size, text.hidden_size, is_tied=tied)
    return replace(text, outer=(*text.outer, *around, *ordered, *head))


def embedding_gemma2(keys: Keys) -> Draft:
    """EmbeddingGemma 2: Gemma 4 looking both ways, its input for each layer projected from the embedding."""
    text = (
        part_keys(keys, "text_config", default="embedding_gemma2_text", head="Model")
        if keys.has("text_config")
        else keys
    )
    return replace(read_part(text), kind="encoder")


def embedding_gemma2_text(keys: Keys) -> Draft:
    """The layers of EmbeddingGemma 2."""
    size = dims(keys)
    both = {
        kind: replace(block, attention=replace(block.attention, causal=False))
        for kind, block in ((kind, _mixer(size.heads, kind, keys, shared=False)) for kind in ("full", "sliding"))
    }
    inside, outside = _per_layer(keys, size)
    plan = [(kind, "dense") for kind in _window_kinds(keys, size.layers, 6)]
    ffns = {"dense": Block(weights=mlp(size.hidden, size.ffn))}
    layers = assemble(plan, both, ffns, (*norms(NORM_FOUR, size.hidden), *inside))
    draft = causal_lm(replace(keys, head="Model"), size, layers)
    projected = tuple(weight for weight in outside if weight.name != "embed_tokens_per_layer")
    out = matrix("embedding_projection", (keys.size("embedding_dim", default=768), size.hidden), "other")
    return replace(draft, kind="encoder", outer=(*draft.outer, *projected, *out))


READERS = {
    "gemma4_unified": gemma4_unified,
    "gemma4_unified_text": gemma4_text,
    "gemma4_assistant": assistant,
    "gemma4_unified_assistant": assistant,
    "embedding_gemma2": embedding_gemma2,
    "embedding_gemma2_text": embedding_gemma2_text,
    "gemma4_text": gemma4_text,
    "gemma3n_text": gemma3n_text,
    "gemma3n": gemma3n,
}
