"""Models whose code ships with their weights: Phi-3 Vision, MiniCPM-V, DeepSeek-VL2, Falcon Perception."""

from __future__ import annotations

from chipwise.model import keys as k
from chipwise.model.blocks import (
    Heads,
    Projections,
    Weights,
    attention_weights,
    encoder_layers,
    matrix,
    mlp,
    norm,
    norms,
    table,
    vector,
    vocabulary,
)
from chipwise.model.defaults import class_defaults, named_tower
from chipwise.model.draft import Draft, stack
from chipwise.model.keys import Keys
from chipwise.model.nested import part_keys, read_part, text_part, tower_part
from chipwise.model.spec import Tower, Weight
from chipwise.model.towers import attention_pool


def phi3_v(keys: Keys) -> Draft:
    """Phi 3 and 3.5 Vision: CLIP by name, a projector over four patches, learned separators."""
    text = text_part(keys, default="phi3")
    name = str(keys.mapping("img_processor").get("model_name") or "openai/clip-vit-large-patch14-336")
    config = named_tower(name)
    if config is None:
        raise keys.missing(f"vision_config (the tower is only named: {name})")
    seen = read_part(Keys(data=config, nested=True, notes=keys.notes))
    wide = 4 * seen.hidden_size
    between = (
        *matrix("img_projection.0", (text.hidden_size, wide), "other", bias=True),
        *matrix("img_projection.2", (text.hidden_size, text.hidden_size), "other", bias=True),
        vector("separators", 2 * wide, "embedding"),
    )
    return text.beside(
        seen.tower("img_processor"), Tower(name="img_projection", weights=between), kind="vision-language"
    )


_MINICPM_TEXT = ((2.6, "qwen2"), (2.5, "llama"), (4.5, "qwen3"), (4.0, "llama"))


def minicpmv(keys: Keys) -> Draft:
    """MiniCPM-V: the language model's keys at the top, SigLIP, a resampler of `query_num` queries."""
    version = keys.number("version", default=2.6)
    kind = next((name for number, name in _MINICPM_TEXT if number == version), "qwen2")
    text = text_part(keys, default=kind)
    given = {**keys.mapping("vision_config"), "model_type": "siglip_vision_model", "vision_use_head": False}
    tower, seen = tower_part(keys.also(vision_config=given), "vision_config", default="siglip_vision_model")
    hidden = text.hidden_size
    resampler = (
        table("resampler.query", keys.size("query_num", default=64), hidden),
        *matrix("resampler.kv_proj", (hidden, seen), "other"),
        *matrix("resampler.attn.in_proj", (3 * hidden, hidden), "other", bias=True),
        *matrix("resampler.attn.out_proj", (hidden, hidden), "other", bias=True),
        *norms(("ln_q", "ln_kv", "ln_post"), hidden, "layer"),
        *matrix("resampler.proj", (hidden, hidden), "other"),
    )
    return text.beside(tower, Tower(name="resampler", weights=resampler), kind="vision-language")


def multi_modality(keys: Keys) -> Draft:
    """Janus as first published (and DeepSeek-VL): towers by name, projectors of `depth` layers, codes of images."""
    text = text_part(keys, "language_config", default="llama")
    towers = [_named_part(keys, "vision_config"), _projector(keys, "aligner_config", text.hidden_size)]
    if keys.has("gen_vision_config"):
        codes = Keys(data=_params(keys, "gen_vision_config"), path="gen_vision_config.params.")
        drawn = Keys(data=_params(keys, "gen_head_config"), path="gen_head_config.params.")
        rows, inner = codes.size("image_token_size", default=16384), codes.size("n_embed", default=8)
        wide = drawn.size("image_token_embed", default=text.hidden_size)
        more = (
            table("gen_embed", rows, inner),
            *matrix("gen_head.output_mlp_projector", (wide, text.hidden_size), "other", bias=True),
            *matrix("gen_head.vision_head", (rows, wide), "head", bias=True),
        )
        towers += [
            _named_part(keys, "gen_vision_config"),
            _projector(keys, "gen_aligner_config", text.hidden_size),
            Tower(name="gen_head", weights=more),
        ]
    return text.beside(*towers, kind="vision-language")


def _params(keys: Keys, name: str) -> dict[str, object]:
    held = keys.mapping(name).get("params")
    return dict(held) if isinstance(held, dict) else {}


def _named_part(keys: Keys, part: str) -> Tower:
    """A tower that a config only names (`params.model_name`, else its class)."""
    name = str(_params(keys, part).get("model_name") or keys.mapping(part).get("cls") or "")
    config = named_tower(name)
    if config is None:
        raise keys.missing(f"the sizes of {part} (the tower is only named: {name})")
    keys.notes.append(f"the tower of {part} is only named ({name}): its published shape is used")
    kind = str(config.get("model_type"))
    return read_part(Keys(data=config, defaults=class_defaults(kind), nested=True, notes=keys.notes)).tower(part)


def _projector(keys: Keys, part: str, hidden: int) -> Tower:
    inner = Keys(data=_params(keys, part), path=f"{keys.path}{part}.params.")
    inside, out = inner.size("input_dim", default=1024), inner.size("n_embed", default=hidden)
    weights = matrix("layers.0", (out, inside), "other", bias=True)
    for index in range(1, min(inner.size("depth", default=1), 16)):
        weights += matrix(f"layers.{index}", (out, out), "other", bias=True)
    return Tower(name=part, weights=weights)


def deepseek_vl_v2(keys: Keys) -> Draft:
    """DeepSeek-VL2: SigLIP with a pooling head, a projector over four patches, two separators."""
    text = text_part(keys, "language_config", default="deepseek_v2")
    given = Keys(data=keys.mapping("vision_config"), path="vision_config.")
    hidden = given.size("width")
    width = int(hidden * given.number("mlp_ratio", default=4.0))
    count = given.size("heads", default=16)
    heads = Heads(hidden=hidden, query=count, kv=count, dim=hidden // max(count, 1))
    side = given.size("image_size", default=384) // given.size("patch_size", default=14, least=1)
    front = (
        *matrix("patch_embed", (hidden, 3 * given.size("patch_size", default=14) ** 2), "other", bias=True),
        table("pos_embed", side * side, hidden),
        *norm("norm", hidden, "layer"),
        *attention_pool(hidden, width),
    )
    tower = Tower(name="vision", layers=encoder_layers(given.layers("layers"), heads, width), weights=front)
    out = text.hidden_size
    between = (
        *matrix("projector.0", (out, 4 * hidden), "other", bias=True),
        *matrix("projector.2", (out, out), "other", bias=True),
        vector("separators", 2 * out, "embedding"),
    )
    return text.beside(tower, Tower(name="projector", weights=between), kind="vision-language")


def falcon_perception(keys: Keys) -> Draft:
    """Falcon Perception: one transformer over patches and text, coders of coordinates and sizes, mask layers."""
    names = (("dim",), ("n_layers",), ("n_heads",), ("head_dim",), ("ffn_dim",), k.VOCAB)
    keys.need(*names)
    hidden, query = keys.size("dim"), keys.size("n_heads")
    heads = Heads(hidden=hidden, query=query, kv=keys.size("n_kv_heads", default=query), dim=keys.size("head_dim"))
    weights: Weights = (
        *attention_weights(heads),
        *mlp(hidden, keys.size("ffn_dim")),
        *norms(("attention_norm", "ffn_norm"), hidden),
    )
    vocab = keys.size(*k.VOCAB)
    patch = keys.size("spatial_patch_size", default=16) ** 2 * keys.size("channel_size", default=3)
    outer: list[Weight] = [
        vocabulary(vocab, hidden),
        *norm("norm", hidden),
        *matrix("output", (vocab, hidden), "head", units=vocab),
        *matrix("img_projector", (hidden, patch * keys.size("temporal_patch_size", default=1)), "other"),
    ]
    for kind in ("coord", "size"):
        inside, wide, out = (keys.size(f"{kind}_{name}_dim", default=0) for name in ("enc", "dec", "out"))
        outer += [
            *matrix(f"{kind}_encoder", (hidden, inside), "other"),
            *matrix(f"{kind}_decoder.w1", (wide, hidden), "other"),
            *matrix(f"{kind}_decoder.w2", (out, wide), "head"),
        ]

    return Draft(
        kind="vision-language",
        layers=stack(keys.layers("n_layers"), weights, heads.attention()),
        outer=tuple(outer),
        hidden_size=hidden,
        vocab_size=vocab,
        max_context_tokens=keys.maybe("max_seq_len"),
    )


def minicpmv4_6(keys: Keys) -> Draft:
    """MiniCPM-V 4.6: Qwen 3.5 with SigLIP, patches merged once inside the tower and once behind it."""
    text = text_part(keys, default="qwen3_5_text")
    given = {**keys.mapping("vision_config"), "model_type": "siglip_vision_model", "vision_use_head": False}
    seen_keys = part_keys(keys.also(vision_config=given), "vision_config", default="siglip_vision_model")
    seen = read_part(seen_keys)
    hidden, width = seen.hidden_size, seen_keys.size("intermediate_size")
    count = seen_keys.size("num_attention_heads", least=1)
    heads = Heads(hidden=hidden, query=count, kv=count, dim=hidden // count)
    inside = (
        *attention_weights(heads, Projections(bias="qkvo")),
        *norm("layer_norm1", hidden, "layer"),
        *norm("pre_norm", 4 * hidden, "layer"),
        *matrix("linear_1", (4 * width, 4 * hidden), "other", bias=True),
        *matrix("linear_2", (hidden, 4 * width), "other", bias=True),
    )
    behind = (
        *norm("merger.pre_norm", 4 * hidden, "layer"),
        *matrix("merger.linear_1", (4 * hidden, 4 * hidden), "other", bias=True),
        *matrix("merger.linear_2", (text.hidden_size, 4 * hidden), "other", bias=True),
    )
    towers = (Tower(name="vit_merger", weights=inside), Tower(name="merger", weights=behind))
    return text.beside(seen.tower("vision_tower"), *towers, kind="vision-language")


READERS = {
    "multi_modality": multi_modality,
    "minicpmv4_6": minicpmv4_6,
    "phi3_v": phi3_v,
    "minicpmv": minicpmv,
    "falcon_perception": falcon_perception,
}
