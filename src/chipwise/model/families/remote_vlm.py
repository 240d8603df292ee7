"""Models that see, whose code ships with their weights: Qwen-VL, GLM-4V, Molmo, NVLM-D, dots.ocr, DeepSeek-OCR.

Source: the modeling file beside each checkpoint on Hugging Face. What it fixes in code and no config says (a tower's
depth, a rank) stands here as the default of the key that would say it.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.model.blocks import (
    EncoderStyle,
    Heads,
    Weights,
    conv,
    encoder_layers,
    matrix,
    mlp,
    norm,
    norms,
    table,
    vector,
)
from chipwise.model.decoder import Style, decoder, dims
from chipwise.model.defaults import named_tower
from chipwise.model.draft import Draft
from chipwise.model.families.glm import chatglm
from chipwise.model.families.llama import internlm2
from chipwise.model.families.qwen import qwen1
from chipwise.model.families.remote import deepseek_vl_v2
from chipwise.model.families.sam import image_encoder
from chipwise.model.keys import Keys
from chipwise.model.nested import part_keys, read_part, text_part, tower_part
from chipwise.model.spec import Tower


def _heads(hidden: int, count: int) -> Heads:
    return Heads(hidden=hidden, query=count, kv=count, dim=hidden // max(count, 1))


def qwen_vl(keys: Keys) -> Draft:
    """Qwen 1, and Qwen-VL where `visual` describes a tower: OpenCLIP's ViT, 256 queries that attend to its patches."""
    text = qwen1(keys)
    if not keys.has("visual"):
        return text
    seen = Keys(data=keys.mapping("visual"), path="visual.")
    width, out = seen.size("width", least=1), seen.size("output_dim", default=text.hidden_size)
    inner = int(width * seen.number("mlp_ratio", default=4.0))
    queries = seen.size("n_queries", default=256)
    weights = (
        *conv("conv1", (width, 3), seen.size("patch_size", default=14) ** 2, bias=False),
        table("positional_embedding", queries, width),
        *norm("ln_pre", width, "layer"),
        table("attn_pool.query", queries, out),
        table("attn_pool.pos_embed", queries, out),
        *matrix("attn_pool.kv_proj", (out, width), "other"),
        *matrix("attn_pool.attn.in_proj", (3 * out, out), "other", bias=True),
        *matrix("attn_pool.attn.out_proj", (out, out), "other", bias=True),
        *norms(("attn_pool.ln_q", "attn_pool.ln_kv", "ln_post"), out, "layer"),
        *matrix("proj", (out, out), "other"),
    )
    layers = encoder_layers(seen.layers("layers"), _heads(width, seen.size("heads", least=1)), inner)
    return text.beside(Tower(name="visual", layers=layers, weights=weights), kind="vision-language")


def glm_4v(keys: Keys) -> Draft:
    """ChatGLM, and GLM-4V where `vision_config` describes a tower: EVA-CLIP, a convolution, a gated projector."""
    text = chatglm(keys)
    if not keys.has("vision_config"):
        return text
    seen = Keys(data=keys.mapping("vision_config"), path="vision_config.")
    hidden, out = seen.size("hidden_size", least=1), text.hidden_size
    layers = encoder_layers(
        seen.layers(), _heads(hidden, seen.size("num_heads", least=1)), seen.size("intermediate_size")
    )
    wide = keys.size("ffn_hidden_size")
    weights = (
        *conv("patch_embedding.proj", (hidden, seen.size("in_channels", default=3)), seen.size("patch_size") ** 2),
        vector("patch_embedding.cls_embedding", hidden, "embedding"),
        table("patch_embedding.position_embedding", seen.size("num_positions"), hidden),
        *conv("conv", (out, hidden), 4),
        *matrix("linear_proj.linear_proj", (out, out), "other"),
        *norm("linear_proj.norm1", out, "layer"),
        *mlp(out, wide, prefix="linear_proj", part="other"),
        vector("boi_and_eoi", 2 * out, "embedding"),
    )
    return text.beside(Tower(name="vision", layers=layers, weights=weights), kind="vision-language")


def molmo(keys: Keys) -> Draft:
    """Molmo 1 (allenai modeling_molmo.py): Qwen 2's layers, CLIP ViT-L/14 to its 23rd layer, pooling by attention."""
    size = dims(keys)
    wide = size.ffn // 2
    style = Style(
        bias="qkv" if keys.flag("qkv_bias") else "", qk_norm="full" if keys.flag("attention_layer_norm") else ""
    )
    text = decoder(keys, style, size=replace(size, ffn=wide))
    hidden, seen = text.hidden_size, keys.size("image_emb_dim", default=1024)
    rows = keys.size("additional_vocab_size", default=128)
    taken = 2 * seen  # of two layers, side by side
    tower = (
        *matrix("patch_embedding", (seen, 3 * 14 * 14), "other"),
        vector("class_embedding", seen, "embedding"),
        table("positional_embedding", 577, seen),
        *norm("pre_ln", seen, "layer"),
        *(
            w
            for name in ("wq", "wk", "wv")
            for w in matrix(f"image_pooling_2d.{name}", (seen, taken), "other", bias=True)
        ),
        *matrix("image_pooling_2d.wo", (seen, seen), "other", bias=True),
        *matrix("image_projector.w1", (wide, seen), "other"),
        *matrix("image_projector.w3", (wide, seen), "other"),
        *matrix("image_projector.w2", (hidden, wide), "other"),
        vector("pad_embed", 2 * taken, "embedding"),
    )
    layers = encoder_layers(23, _heads(seen, 16), 4 * seen)
    draft = text.beside(Tower(name="vision_backbone", layers=layers, weights=tower), kind="vision-language")
    return replace(draft, outer=(*draft.outer, table("wte.new_embedding", rows, hidden)))


def nvlm(keys: Keys) -> Draft:
    """NVLM-D (nvidia modeling_nvlm_d.py): InternVL's shape, a projector as wide as the MLP, padded vision heads."""
    language = part_keys(keys, "llm_config", default="qwen2")
    text = read_part(replace(language, head="ForCausalLM"))
    vision = part_keys(keys, "vision_config", default="intern_vit_6b")
    tower, seen = tower_part(keys, "vision_config", default="intern_vit_6b")
    dummies = vision.size("num_dummy_heads", default=0)
    dim = seen // max(vision.size("num_attention_heads", least=1), 1)
    padded = matrix("dummy_heads", (4 * dummies * dim, seen), "other") * vision.layers() if dummies else ()
    wide = int(seen / keys.number("downsample_ratio", default=0.5) ** 2)
    inner = language.size("intermediate_size")
    between = (
        *norm("mlp1.0", wide, "layer"),
        *matrix("mlp1.1", (inner, wide), "other"),
        *matrix("mlp1.3", (text.hidden_size, inner), "other"),
        *padded,
    )
    return text.beside(tower, Tower(name="mlp1", weights=between), kind="vision-language")


def xcomposer2(keys: Keys) -> Draft:
    """InternLM-XComposer 2 (internlm build_mlp.py): InternLM 2 with a low-rank path for images, CLIP by name."""
    text = internlm2(keys)
    size, rank = dims(keys), keys.size("lora_r", default=256)
    heads, hidden = size.heads, size.hidden
    qkv = (heads.query + 2 * heads.kv) * heads.dim
    shapes = (
        ("wqkv", qkv, hidden),
        ("wo", hidden, hidden),
        ("w1", size.ffn, hidden),
        ("w3", size.ffn, hidden),
        ("w2", hidden, size.ffn),
    )
    lora = tuple(
        weight
        for name, out, inside in shapes
        for weight in (
            *matrix(f"{name}.Plora_A", (rank, inside), "other"),
            *matrix(f"{name}.Plora_B", (out, rank), "other"),
        )
    )
    layers = tuple(replace(layer, weights=(*layer.weights, *lora)) for layer in text.layers)
    side = keys.size("img_size", default=490) // 14
    config = named_tower("openai/clip-vit-large-patch14-336") or {}
    seen = read_part(Keys(data={**config, "image_size": 14 * side}, nested=True, notes=keys.notes))
    between = (
        *matrix("vision_proj.0", (hidden, seen.hidden_size), "other", bias=True),
        *matrix("vision_proj.2", (hidden, hidden), "other", bias=True),
    )
    return replace(text, layers=layers).beside(
        seen.tower("vit"), Tower(name="vision_proj", weights=between), kind="vision-language"
    )


def dots_ocr(keys: Keys) -> Draft:
    """dots.ocr (rednote-hilab modeling_dots_vision.py): Qwen 2 behind a gated ViT that merges four patches."""
    text = text_part(keys, default="qwen2")
    seen = Keys(data=keys.mapping("vision_config"), path="vision_config.")
    hidden, out = seen.size("embed_dim", "hidden_size", least=1), seen.size("hidden_size", default=text.hidden_size)
    bias = seen.flag("use_bias")
    style = EncoderStyle(norm="rms", bias="qkvo" if bias else "", gated=True, mlp_bias=bias)
    layers = encoder_layers(
        seen.layers(), _heads(hidden, seen.size("num_attention_heads", least=1)), seen.size("intermediate_size"), style
    )
    wide = hidden * seen.size("spatial_merge_size", default=2) ** 2
    patch = seen.size("patch_size", default=14) ** 2 * seen.size("temporal_patch_size", default=1)
    weights = (
        *conv("patch_embed.proj", (hidden, seen.size("num_channels", default=3)), patch),
        *norm("patch_embed.norm", hidden),
        *(norm("post_trunk_norm", hidden) if seen.flag("post_norm", default=True) else ()),
        *norm("merger.ln_q", hidden, "layer"),
        *matrix("merger.mlp.0", (wide, wide), "other", bias=True),
        *matrix("merger.mlp.2", (out, wide), "other", bias=True),
    )
    return text.beside(Tower(name="vision_tower", layers=layers, weights=weights), kind="vision-language")


def deepseek_ocr(keys: Keys) -> Draft:
    """DeepSeek-VL2, and DeepSeek-OCR where `vision_config.width` names two towers: SAM, then CLIP over its features."""
    widths = Keys(data=keys.mapping("vision_config")).raw("width")
    if not isinstance(widths, dict):
        return deepseek_vl_v2(keys)
    text = text_part(keys, "language_config", default="deepseek_v2")
    clip, sam = (_named(keys, widths, name) for name in ("clip-l-14-224", "sam_vit_b"))
    hidden = clip.size("width", least=1)
    inner = int(hidden * keys.number("clip_mlp_ratio", default=4.0))
    side = clip.size("image_size", default=224) // clip.size("patch_size", default=14, least=1)
    front = (
        *conv("patch_embedding", (hidden, 3), clip.size("patch_size", default=14) ** 2, bias=False),
        vector("class_embedding", hidden, "embedding"),
        table("position_embedding", side * side + 1, hidden),
        *norm("pre_layrnorm", hidden, "layer"),
    )
    seeing = encoder_layers(clip.layers("layers"), _heads(hidden, clip.size("heads", least=1)), inner)
    projector = Keys(data=keys.mapping("projector_config"), path="projector_config.")
    out = text.hidden_size
    between = (
        *matrix("projector.layers", (out, projector.size("input_dim", default=2 * hidden)), "other", bias=True),
        vector("image_newline_and_separator", 2 * out, "embedding"),
    )
    return text.beside(
        _sam(sam),
        Tower(name="vision_model", layers=seeing, weights=front),
        Tower(name="projector", weights=between),
        kind="vision-language",
    )


def _named(keys: Keys, widths: dict[str, object], name: str) -> Keys:
    found = widths.get(name)
    if not isinstance(found, dict):
        raise keys.missing(f"vision_config.width.{name}")
    return Keys(data=found, path=f"vision_config.width.{name}.", notes=keys.notes)


def _sam(keys: Keys) -> Tower:
    """SAM's image encoder, and two convolutions that halve each side of its features."""
    hidden = keys.size("width", least=1)
    known = keys.also(
        hidden_size=hidden,
        num_attention_heads=keys.size("heads", least=1),
        num_hidden_layers=keys.layers("layers"),
        mlp_dim=4 * hidden,
        image_size=1024,
        patch_size=16,
    )
    layers, front, _ = image_encoder(known.also(global_attn_indexes=keys.raw("global_attn_indexes")))
    down: Weights = ()
    before = 256
    for channels in keys.sizes("downsample_channels"):
        down += conv("net", (channels, before), 9, bias=False)
        before = channels
    return Tower(name="sam_model", layers=layers, weights=(*front, *down))


READERS = {
    "qwen": qwen_vl,
    "chatglm": glm_4v,
    "molmo": molmo,
    "NVLM_D": nvlm,
    "internlmxcomposer2": xcomposer2,
    "dots_ocr": dots_ocr,
    "deepseek_vl_v2": deepseek_ocr,
}
