"""Vision-language models with towers of their own: Llama 4, Mllama, Gemma 4, GLM-V, Kimi, MiniMax, Step, others."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model.blocks import (
    Block,
    EncoderStyle,
    Heads,
    Projections,
    Weights,
    assemble,
    attention_weights,
    conv,
    encoder_layers,
    matrix,
    mlp,
    norm,
    norms,
    table,
    vector,
)
from chipwise.model.decoder import NORM_PAIR, attention_mixers, causal_lm, dims
from chipwise.model.draft import Draft, stack
from chipwise.model.keys import Keys
from chipwise.model.nested import part_keys, text_part
from chipwise.model.spec import Tower
from chipwise.model.towers import patch_count, vision_heads

_PLAIN = EncoderStyle()


def llama4(keys: Keys) -> Draft:
    """Llama 4: a ViT with an adapter that shuffles pixels, one projector matrix."""
    text = text_part(keys, default="llama4_text")
    seen = part_keys(keys, "vision_config", default="llama4_vision_model")
    hidden, width = seen.size("hidden_size"), seen.size("intermediate_size")
    into, out = seen.size("projector_input_dim", default=4096), seen.size("vision_output_dim", default=7680)
    patch = seen.size("patch_size") ** 2 * seen.size("num_channels", default=3)
    shuffled = int(width)
    weights = (
        *matrix("patch_embedding.linear", (hidden, patch), "other"),
        vector("class_embedding", hidden, "embedding"),
        table("positional_embedding_vlm", patch_count(seen) + 1, hidden),
        *norms(("layernorm_pre", "layernorm_post"), hidden, "layer"),
        *matrix("vision_adapter.mlp.fc1", (into, shuffled), "other"),
        *matrix("vision_adapter.mlp.fc2", (seen.size("projector_output_dim", default=into), into), "other"),
    )
    layers = encoder_layers(seen.layers(), vision_heads(seen, hidden), width)
    between = matrix("multi_modal_projector.linear_1", (text.hidden_size, out), "other")
    return text.beside(
        Tower(name="vision_model", layers=layers, weights=weights),
        Tower(name="multi_modal_projector", weights=between),
        kind="vision-language",
    )


def mllama_text(keys: Keys) -> Draft:
    """Llama 3.2 Vision's text model: some layers attend to the image instead of the text."""
    size = dims(keys)
    crossing = set(keys.sizes("cross_attention_layers"))
    mixers = attention_mixers(keys, size.heads, Projections())
    cross = attention_weights(size.heads, Projections(qk_norm="head", prefix="cross_attn"))
    mixers["cross"] = Block(weights=(*cross, vector("cross_attn_gates", 2, "other")))
    plan = [("cross" if index in crossing else "full", "dense") for index in range(size.layers)]
    ffns = {"dense": Block(weights=mlp(size.hidden, size.ffn))}
    layers = assemble(plan, mixers, ffns, norms(NORM_PAIR, size.hidden))
    draft = causal_lm(keys.also(tie_word_embeddings=False), size, layers)
    more = table("model.embed_tokens.extra", 8, size.hidden)
    return replace(draft, outer=(*draft.outer, more))


def mllama(keys: Keys) -> Draft:
    """Llama 3.2 Vision: local and gated global layers, positions for every tile, intermediate layers are kept."""
    if keys.head.endswith("ForCausalLM") and not keys.has("vision_config"):
        return text_part(keys, default="mllama_text_model")
    text = text_part(keys, default="mllama_text_model")
    seen = part_keys(keys, "vision_config", default="mllama_vision_model")
    hidden, width = seen.size("hidden_size"), seen.size("intermediate_size")
    heads = vision_heads(seen.also(num_attention_heads=seen.size("attention_heads", "num_attention_heads")), hidden)
    style = replace(_PLAIN, bias="")
    gated = replace(style, extra=(vector("gates", 2, "other"),))
    tiles = seen.size("max_num_tiles", default=4)
    kinds = len(seen.items("supported_aspect_ratios")) + 1
    rows = patch_count(seen) + 1
    patch = seen.size("patch_size") ** 2 * seen.size("num_channels", default=3)
    weights = (
        *matrix("patch_embedding", (hidden, patch), "other"),
        vector("class_embedding", hidden, "embedding"),
        vector("gates", 3, "other"),
        table("positional_embedding", rows, hidden),
        table("tile_embedding", kinds, tiles * rows * hidden),
        *(table(f"{name}_tile_embedding", kinds, tiles * hidden) for name in ("pre", "post")),
        *norms(("layernorm_pre", "layernorm_post"), hidden, "layer"),
    )
    layers = (
        *encoder_layers(seen.layers("num_hidden_layers"), heads, width, style),
        *encoder_layers(seen.layers("num_global_layers"), heads, width, gated),
    )
    out = seen.size("vision_output_dim", default=7680)
    between = matrix("multi_modal_projector", (text.hidden_size, out), "other", bias=True)
    return text.beside(
        Tower(name="vision_model", layers=layers, weights=weights),
        Tower(name="multi_modal_projector", weights=between),
        kind="vision-language",
    )


def _gemma4_vision(keys: Keys, hidden_text: int) -> tuple[Tower, ...]:
    seen = part_keys(keys, "vision_config", default="gemma4_vision")
    hidden = seen.size("hidden_size")
    style = replace(
        _PLAIN,
        norm="rms",
        bias="qkvo" if seen.flag("attention_bias") else "",
        gated=True,
        mlp_bias=False,
        qk_norm="head",
        norm_names=(*NORM_PAIR, "pre_feedforward_layernorm", "post_feedforward_layernorm"),
    )
    patch = 3 * seen.size("patch_size") ** 2
    weights = (
        *matrix("patch_embedder.input_proj", (hidden, patch), "other"),
        table("patch_embedder.position_embedding_table", 2 * seen.size("position_embedding_size"), hidden),
    )
    layers = encoder_layers(seen.layers(), vision_heads(seen, hidden), seen.size("intermediate_size"), style)
    between = matrix("embed_vision.embedding_projection", (hidden_text, hidden), "other")
    return (
        Tower(name="vision_tower", layers=layers, weights=weights),
        Tower(name="embed_vision", weights=between),
    )


def _gemma4_audio(keys: Keys, hidden_text: int) -> tuple[Tower, ...]:
    heard = part_keys(keys, "audio_config", default="gemma4_audio")
    hidden = heard.size("hidden_size")
    heads = heard.size("num_attention_heads")
    shape = Heads(hidden=hidden, query=heads, kv=heads, dim=hidden // max(heads, 1))
    kernel = heard.size("conv_kernel_size", default=5)
    half: Weights = (
        *matrix("ffw_layer_1", (4 * hidden, hidden), "mlp"),
        *matrix("ffw_layer_2", (hidden, 4 * hidden), "mlp"),
        *norms(("pre_layer_norm", "post_layer_norm"), hidden),
    )
    layer: Weights = (
        *half,
        *half,
        *attention_weights(shape),
        *matrix("self_attn.relative_k_proj", (hidden, hidden), "attention"),
        vector("self_attn.per_dim_scale", shape.dim, "attention"),
        *matrix("lconv1d.linear_start", (2 * hidden, hidden), "other"),
        *matrix("lconv1d.linear_end", (hidden, hidden), "other"),
        *conv("lconv1d.depthwise_conv1d", (hidden, 1), kernel, bias=False),
        *norms(("lconv.pre", "lconv.norm", "norm_pre_attn", "norm_post_attn", "norm_out"), hidden),
    )
    channels = heard.sizes("subsampling_conv_channels") or (128, 32)
    out = heard.size("output_proj_dims", default=1536)
    front = (
        *conv("layer0.conv", (channels[0], 1), 9, bias=False),
        *conv("layer1.conv", (channels[-1], channels[0]), 9, bias=False),
        vector("subsample.norms", sum(channels), "norm"),
        *matrix("input_proj_linear", (hidden, channels[-1] * 32), "other"),
        *matrix("output_proj", (out, hidden), "other", bias=True),
    )
    between = matrix("embed_audio.embedding_projection", (hidden_text, out), "other")
    layers = stack(heard.layers(), layer, shape.attention(causal=False))
    return Tower(name="audio_tower", layers=layers, weights=front), Tower(name="embed_audio", weights=between)


def gemma4(keys: Keys) -> Draft:
    """Gemma 4: RMS-normed vision tower with positions by axis; the small ones hear too."""
    text = text_part(keys, default="gemma4_text")
    towers: tuple[Tower, ...] = ()
    if keys.has("vision_config"):
        towers += _gemma4_vision(keys, text.hidden_size)
    if keys.has("audio_config"):
        towers += _gemma4_audio(keys, text.hidden_size)
    return text.beside(*towers, kind="vision-language") if towers else text


def glm4v(keys: Keys) -> Draft:
    """GLM-4.1V and 4.6V Flash: GLM 4 with a gated tower."""
    return _glm4v(keys, "glm4v_text", "glm4v_vision")


def glm4v_moe(keys: Keys) -> Draft:
    """GLM-4.5V and 4.6V: GLM 4.5 Air with the same tower."""
    return _glm4v(keys, "glm4v_moe_text", "glm4v_moe_vision")


def _glm4v(keys: Keys, text_type: str, vision_type: str) -> Draft:
    text = text_part(keys, default=text_type)
    seen = part_keys(keys, "vision_config", default=vision_type)
    hidden, out = seen.size("hidden_size"), seen.size("out_hidden_size")
    style = replace(_PLAIN, norm="rms", bias="qkvo" if seen.flag("attention_bias") else "", gated=True, mlp_bias=False)
    layers = encoder_layers(seen.layers("depth"), _tower_heads(seen, hidden), out, style)
    merge = seen.size("spatial_merge_size", default=2) ** 2
    taps = seen.size("temporal_patch_size", default=2) * seen.size("patch_size") ** 2
    context = seen.size("intermediate_size")
    weights = (
        *conv("patch_embed.proj", (hidden, seen.size("in_channels", default=3)), taps),
        table("embeddings.position_embedding", patch_count(seen), hidden),
        *norms(("post_conv_layernorm", "post_layernorm"), hidden),
        *conv("downsample", (out, hidden), merge),
        *matrix("merger.proj", (out, out), "other"),
        *norm("merger.post_projection_norm", out, "layer"),
        *mlp(out, context, prefix="merger", part="other"),
    )
    return text.beside(Tower(name="visual", layers=layers, weights=weights), kind="vision-language")


def _tower_heads(keys: Keys, hidden: int) -> Heads:
    heads = keys.size("num_heads", "num_attention_heads", least=1)
    return Heads(hidden=hidden, query=heads, kv=heads, dim=hidden // heads)


def kimi_vl(keys: Keys) -> Draft:
    """Kimi-VL: MoonViT and a two-layer projector before a small DeepSeek V3."""
    return _kimi(keys, "deepseek_v3")


def kimi_k25(keys: Keys) -> Draft:
    """Kimi K2.5: MoonViT with positions over height and width, a two-layer projector."""
    return _kimi(keys, "kimi_k2")


def moonvit(keys: Keys) -> Draft:
    """MoonViT: a ViT whose learned positions are interpolated to each image."""
    keys.need(("hidden_size",), ("num_hidden_layers",), ("num_attention_heads",), ("intermediate_size",))
    hidden = keys.size("hidden_size")
    layers = encoder_layers(keys.layers(), _tower_heads(keys, hidden), keys.size("intermediate_size"))
    return Draft(kind="vision", layers=layers, outer=_moonvit_front(keys, hidden), hidden_size=hidden)


def _moonvit_front(seen: Keys, hidden: int) -> Weights:
    high = seen.size("init_pos_emb_height", "pos_emb_height", default=64)
    wide = seen.size("init_pos_emb_width", "pos_emb_width", default=64)
    return (
        *conv("patch_embed.proj", (hidden, 3), seen.size("patch_size", default=14) ** 2),
        table("patch_embed.pos_emb", high * wide, hidden),
        *norm("final_layernorm", hidden, "layer"),
    )


def _kimi(keys: Keys, text_type: str) -> Draft:
    text = text_part(keys, default=text_type)
    given = keys.mapping("vision_config")
    renamed = {name.removeprefix("vt_"): value for name, value in given.items()}
    known = keys.also(vision_config=renamed)
    seen = part_keys(known, "vision_config", default="kimi_k25_vision")
    if "qkv_hidden_size" in renamed:
        return text.beside(*_moonvit3(seen, text.hidden_size), kind="vision-language")
    hidden = seen.size("hidden_size")
    layers = encoder_layers(seen.layers(), _tower_heads(seen, hidden), seen.size("intermediate_size"))
    front = _moonvit_front(seen, hidden)
    merged = hidden * _merge(seen)
    between = (
        *norm("pre_norm", hidden, "layer"),
        *matrix("in_proj", (merged, merged), "other", bias=True),
        *matrix("out_proj", (text.hidden_size, merged), "other", bias=True),
    )
    return text.beside(
        Tower(name="vision_tower", layers=layers, weights=front),
        Tower(name="mm_projector", weights=between),
        kind="vision-language",
    )


def _merge(keys: Keys) -> int:
    kernel = keys.sizes("merge_kernel_size", count=1) or (2, 2)
    area = 1
    for side in kernel:
        area *= side
    return area


def _moonvit3(seen: Keys, out: int) -> tuple[Tower, Tower]:
    """Kimi K3's tower: heads wider than the stream, RMS norms, no biases, a projector with a norm at its end."""
    hidden, inner = seen.size("hidden_size"), seen.size("qkv_hidden_size")
    count = seen.size("num_attention_heads", least=1)
    heads = Heads(hidden=hidden, query=count, kv=count, dim=inner // count)
    style = replace(_PLAIN, norm="rms", bias="", mlp_bias=seen.flag("linear_bias"))
    layers = encoder_layers(seen.layers(), heads, seen.size("intermediate_size"), style)
    high, wide = seen.size("init_pos_emb_height", default=64), seen.size("init_pos_emb_width", default=64)
    patch = seen.size("patch_size", default=14) ** 2
    front = (
        *conv("patch_embed.proj", (hidden, 3), patch, bias=seen.flag("patch_embed_proj_bias")),
        table("patch_embed.pos_emb", high * wide, hidden),
        *norm("final_layernorm", hidden),
    )
    merged = hidden * _merge(seen)
    between = (
        *norm("pre_norm", hidden),
        *matrix("in_proj", (merged, merged), "other"),
        *matrix("out_proj", (out, merged), "other"),
    )
    return Tower(name="vision_tower", layers=layers, weights=front), Tower(name="mm_projector", weights=between)


def minimax_m3_vl(keys: Keys) -> Draft:
    """MiniMax M3: a CLIP-like tower over two frames, two projectors one after the other."""
    text = text_part(keys, default="minimax_m3_vl_text")
    given = dict(keys.mapping("vision_config"))
    given.pop("model_type", None)
    seen = part_keys(keys.also(vision_config=given), "vision_config", default="minimax_m3_vl_vision")
    hidden = seen.size("hidden_size")
    layers = encoder_layers(seen.layers(), _tower_heads(seen, hidden), seen.size("intermediate_size"))
    squeeze = Keys(data=keys.mapping("img_token_compression_config"))
    frames = squeeze.size("temporal_patch_size", default=seen.size("temporal_patch_size", default=2))
    merge = squeeze.size("spatial_merge_size", default=seen.size("spatial_merge_size", default=2)) ** 2
    front = (
        *conv("embeddings.proj", (hidden, 3), frames * seen.size("patch_size") ** 2, bias=False),
        *norm("pre_layrnorm", hidden, "layer"),
    )
    out = text.hidden_size
    inner = keys.size("projector_hidden_size", default=out)
    between = (
        *matrix("linear_1", (inner, hidden), "other", bias=True),
        *matrix("linear_2", (out, inner), "other", bias=True),
        *matrix("merge_linear_1", (inner, out * merge), "other", bias=True),
        *matrix("merge_linear_2", (out, inner), "other", bias=True),
    )
    return text.beside(
        Tower(name="vision_tower", layers=layers, weights=front),
        Tower(name="multi_modal_projector", weights=between),
        kind="vision-language",
    )


def step3p7(keys: Keys) -> Draft:
    """Step 3.7: Step 3.5 with a tower whose patches are thinned out twice; a trimmed config is the text alone."""
    text = text_part(keys, default="step3p5")
    if not keys.has("vision_config"):
        return text
    seen = part_keys(keys, "vision_config", default="step3p5_vision")
    hidden = seen.size("hidden_size", "width")
    width = seen.maybe("intermediate_size") or int(hidden * seen.number("mlp_ratio", default=4.0))
    scales = (vector("lambda_1", hidden), vector("lambda_2", hidden))
    style = replace(_PLAIN, extra=scales)
    layers = encoder_layers(
        seen.layers("num_hidden_layers", "layers"),
        vision_heads(seen.also(num_attention_heads=seen.size("num_attention_heads", "heads")), hidden),
        width,
        style,
    )
    front = (
        *conv("patch_embedding", (hidden, 3), seen.size("patch_size") ** 2, bias=False),
        table("position_embedding", patch_count(seen), hidden),
        *norm("pre_layernorm", hidden, "layer"),
        *conv("downsampler1", (2 * hidden, hidden), 9),
        *conv("downsampler2", (4 * hidden, 2 * hidden), 9),
    )
    bias = keys.flag("projector_bias")
    between = matrix("multi_modal_projector", (text.hidden_size, 4 * hidden), "other", bias=bias)
    return text.beside(
        Tower(name="vision_model", layers=layers, weights=front),
        Tower(name="multi_modal_projector", weights=between),
        kind="vision-language",
    )


READERS = {
    "llama4": llama4,
    "mllama_text_model": mllama_text,
    "mllama": mllama,
    "gemma4": gemma4,
    "glm4v": glm4v,
    "glm46v": glm4v_moe,
    "glm4v_moe": glm4v_moe,
    "kimi_k25": kimi_k25,
    "kimi_vl": kimi_vl,
    "moonvit": moonvit,
    "kimi_k3": kimi_k25,
    "minimax_m3_vl": minimax_m3_vl,
    "step3p7": step3p7,
}
