"""Video diffusion transformers: Wan, HunyuanVideo, CogVideoX, LTX-Video, EasyAnimate, Mochi, MiniMax H3."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model.blocks import Weights, norm, table, vector
from chipwise.model.diffusion import (
    Attend,
    added,
    area,
    attend,
    blocks,
    denoiser,
    feed,
    heads_of,
    linear,
    patch,
    timestep,
    width_of,
)
from chipwise.model.draft import Draft
from chipwise.model.families.dit import joint_block, single_block
from chipwise.model.keys import Keys


def wan(keys: Keys) -> Draft:
    """Wan 2.1 and 2.2: one modulation, norms over all heads, an image branch in image-to-video."""
    if keys.has("dim") and not keys.has("attention_head_dim"):
        keys = _native_wan(keys)
    width, heads = width_of(keys), heads_of(keys)
    normed = width if keys.raw("qk_norm") else 0
    image = keys.maybe("image_dim")
    side = keys.maybe("added_kv_proj_dim")
    crossed: Weights = ()
    if side:
        crossed = (
            *linear("attn2.add_k_proj", width, side, part="attention"),
            *linear("attn2.add_v_proj", width, side, part="attention"),
            *norm("attn2.norm_added_k", width),
        )
    block = (
        vector("scale_shift_table", 6 * width),
        *attend(Attend(width=width, norm_width=normed, prefix="attn1")),
        *attend(Attend(width=width, norm_width=normed, prefix="attn2")),
        *crossed,
        *(norm("norm2", width, "layer") if keys.flag("cross_attn_norm", default=True) else ()),
        *feed(width, keys.size("ffn_dim"), name="ffn"),
    )
    taps = area(keys)
    text = keys.size("text_dim", default=4096)
    outer = (
        vector("scale_shift_table", 2 * width),
        *patch("patch_embedding", width, keys.size("in_channels"), taps),
        *timestep(width, "time_embedder", keys.size("freq_dim", default=256)),
        *linear("time_proj", 6 * width, width),
        *linear("text_embedder.linear_1", width, text),
        *linear("text_embedder.linear_2", width, width),
        *(_image_embedder(width, image, keys) if image else ()),
        *linear("proj_out", keys.size("out_channels", default=keys.size("in_channels")) * taps, width),
    )
    return denoiser(width, blocks(keys.layers("num_layers"), heads, block), outer)


def _native_wan(keys: Keys) -> Keys:
    """Wan's own key names (dim, num_heads, in_dim, out_dim)."""
    heads = keys.size("num_heads", least=1)
    return keys.also(
        num_attention_heads=heads,
        attention_head_dim=keys.size("dim") // heads,
        in_channels=keys.size("in_dim", default=16),
        out_channels=keys.size("out_dim", default=16),
        patch_size=list(keys.sizes("patch_size") or (1, 2, 2)),
        qk_norm=keys.raw("qk_norm") if keys.has("qk_norm") else "rms_norm_across_heads",
    )


def _image_embedder(width: int, image: int, keys: Keys) -> Weights:
    positions = keys.maybe("pos_embed_seq_len")
    return (
        *norm("image_embedder.norm1", image, "layer"),
        *linear("image_embedder.ff.0", image, image),
        *linear("image_embedder.ff.2", width, image),
        *norm("image_embedder.norm2", width, "layer"),
        *((table("image_embedder.pos_embed", positions, image),) if positions else ()),
    )


def hunyuan_video(keys: Keys) -> Draft:
    """HunyuanVideo: Flux's blocks over frames, a refiner for the text."""
    width, heads = width_of(keys), heads_of(keys)
    text = keys.size("text_embed_dim", default=4096)
    refiner = (
        *norm("norm1", width, "layer"),
        *attend(Attend(width=width)),
        *norm("norm2", width, "layer"),
        *feed(width, 4 * width),
        *linear("norm_out.linear", 2 * width, width),
    )
    taps = keys.size("patch_size", default=2) ** 2 * keys.size("patch_size_t", default=1)
    guided = timestep(width, "guidance_embedder") if keys.flag("guidance_embeds", default=True) else ()
    outer = (
        *patch("x_embedder.proj", width, keys.size("in_channels"), taps),
        *timestep(width, "context_embedder.timestep_embedder"),
        *timestep(width, "context_embedder.text_embedder", text),
        *linear("context_embedder.proj_in", width, text),
        *(refiner * keys.layers("num_refiner_layers")),
        *timestep(width),
        *timestep(width, "text_embedder", keys.size("pooled_projection_dim", default=768)),
        *guided,
        *linear("norm_out.linear", 2 * width, width),
        *linear("proj_out", keys.size("out_channels", default=16) * taps, width),
    )
    layers = (
        *blocks(keys.layers("num_layers"), heads, joint_block(width, heads.dim)),
        *blocks(keys.layers("num_single_layers"), heads, single_block(width, heads.dim)),
    )
    return denoiser(width, layers, outer)


def _modulated(name: str, width: int, source: int) -> Weights:
    return (*linear(f"{name}.linear", 6 * width, source), *norm(f"{name}.norm", width, "layer"))


def _ends(width: int, source: int) -> Weights:
    return (
        *norm("norm_final", width, "layer"),
        *linear("norm_out.linear", 2 * width, source),
        *norm("norm_out.norm", width, "layer"),
    )


def cogvideox(keys: Keys) -> Draft:
    """CogVideoX: text and video in one sequence, norms with shifts over each head."""
    width, heads = width_of(keys), heads_of(keys)
    time = keys.size("time_embed_dim", default=512)
    bias = keys.flag("attention_bias", default=True)
    normed = Attend(width=width, bias=bias, norm_width=heads.dim, norm_shift=True, prefix="attn1")
    block = (
        *_modulated("norm1", width, time),
        *attend(normed),
        *_modulated("norm2", width, time),
        *feed(width, 4 * width),
    )
    frames = keys.maybe("patch_size_t")
    taps = keys.size("patch_size", default=2) ** 2
    channels = keys.size("in_channels")
    proj = (
        linear("patch_embed.proj", width, channels * taps * frames)
        if frames
        else patch("patch_embed.proj", width, channels, taps, bias=keys.flag("patch_bias", default=True))
    )
    ofs = keys.maybe("ofs_embed_dim")
    outer = (
        *proj,
        *linear("patch_embed.text_proj", width, keys.size("text_embed_dim", default=4096)),
        *timestep(time, "time_embedding", width),
        *(timestep(ofs, "ofs_embedding", ofs) if ofs else ()),
        *_ends(width, time),
        *linear("proj_out", taps * (frames or 1) * keys.size("out_channels", default=16), width),
    )
    return denoiser(width, blocks(keys.layers("num_layers"), heads, block), outer)


def easyanimate(keys: Keys) -> Draft:
    """EasyAnimate 5.1: CogVideoX's modulation, two streams in the first blocks."""
    width, heads = width_of(keys), heads_of(keys)
    time = keys.size("time_embed_dim", default=512)
    count = keys.layers("num_layers")
    double_count = min(keys.size("mmdit_layers", default=count), count)
    single = (
        *_modulated("norm1", width, time),
        *attend(Attend(width=width, norm_width=heads.dim, norm_shift=True, prefix="attn1")),
        *_modulated("norm2", width, time),
        *feed(width, 4 * width),
    )
    double = (*single, *added(width, norm_width=heads.dim, shift=True), *feed(width, 4 * width, name="txt_ff"))
    text, t5 = keys.size("text_embed_dim", default=3584), keys.maybe("text_embed_dim_t5")
    normed = keys.flag("add_norm_text_encoder")
    outer = (
        *timestep(time, "time_embedding", width),
        *patch("proj", width, keys.size("in_channels"), area(keys, default=2)),
        *(norm("text_proj.0", text) if normed else ()),
        *linear("text_proj.1", width, text),
        *((*(norm("text_proj_t5.0", text) if normed else ()), *linear("text_proj_t5.1", width, t5)) if t5 else ()),
        *_ends(width, time),
        *linear("proj_out", keys.size("out_channels", default=16) * area(keys, default=2), width),
    )
    layers = (*blocks(double_count, heads, double), *blocks(count - double_count, heads, single))
    return denoiser(width, layers, outer)


def ltx(keys: Keys) -> Draft:
    """LTX-Video: PixArt's modulation, norms over all heads."""
    width, heads = width_of(keys), heads_of(keys)
    bias = keys.flag("attention_bias", default=True)
    cross = keys.size("cross_attention_dim", default=width)
    plain = Attend(width=width, bias=bias, norm_width=width, prefix="attn1")
    block = (
        vector("scale_shift_table", 6 * width),
        *attend(plain),
        *attend(replace(plain, source=cross, prefix="attn2")),
        *feed(width, 4 * width),
    )
    outer = (
        vector("scale_shift_table", 2 * width),
        *linear("proj_in", width, keys.size("in_channels")),
        *timestep(width),
        *linear("time_embed.linear", 6 * width, width),
        *linear("caption_projection.linear_1", width, keys.size("caption_channels", default=4096)),
        *linear("caption_projection.linear_2", width, width),
        *linear("proj_out", keys.size("out_channels", default=128), width),
    )
    return denoiser(width, blocks(keys.layers("num_layers"), heads, block), outer)


def mochi(keys: Keys) -> Draft:
    """Mochi: a narrow text stream beside a wide video stream, gated MLPs, no biases."""
    width, heads = width_of(keys), heads_of(keys)
    side, text = keys.size("pooled_projection_dim", default=1536), keys.size("text_embed_dim", default=4096)
    inner, inner_side = (4 * width * 2) // 3, (4 * side * 2) // 3
    main = (
        *linear("norm1.linear", 4 * width, width),
        *attend(Attend(width=width, bias=False, norm_width=heads.dim, prefix="attn1")),
        *(weight for name in "qkv" for weight in linear(f"attn1.add_{name}_proj", width, side, bias=False)),
        vector("attn1.norm_added", 2 * heads.dim),
        *feed(width, inner, bias=False, gated=True),
    )
    both = (
        *main,
        *linear("norm1_context.linear", 4 * side, width),
        *linear("attn1.to_add_out", side, width),
        *feed(side, inner_side, bias=False, gated=True, name="ff_context"),
    )
    last = (*main, *linear("norm1_context.linear_1", side, width))
    count = keys.layers("num_layers")
    taps = keys.size("patch_size", default=2) ** 2
    channels = keys.size("in_channels", default=12)
    outer = (
        vector("pos_frequencies", 3 * heads.query * heads.dim // 2, "other"),
        *patch("patch_embed.proj", width, channels, taps),
        *timestep(width, "time_embed.timestep_embedder", keys.size("time_embed_dim", default=256)),
        *linear("pooler.to_kv", 2 * text, text),
        *linear("pooler.to_q", text, text),
        *linear("pooler.to_out", width, text),
        *linear("caption_proj", side, text),
        *linear("norm_out.linear", 2 * width, width),
        *linear("proj_out", taps * (keys.maybe("out_channels") or channels), width),
    )
    return denoiser(width, (*blocks(count - 1, heads, both), *blocks(1, heads, last)), outer)


def minimax_h3(keys: Keys) -> Draft:
    """MiniMax H3: video and sound in one stream, heads wider than it, gated MLPs, a modulation for each block."""
    width = keys.size("hidden_size")
    heads = replace(heads_of(keys), hidden=width)
    inner, ffn = heads.query * heads.dim, keys.size("ffn_dim")
    core = (
        *(
            weight
            for name in ("to_q", "to_k", "to_v")
            for weight in linear(f"attn.{name}", inner, width, bias=False, part="attention")
        ),
        *linear("attn.to_out", width, inner, bias=False, part="attention"),
        vector("attn.norms", 2 * heads.dim),
        vector("norms", 2 * width),
        *feed(width, ffn, bias=False, gated=True),
    )
    time, hidden_time = keys.size("time_embed_dim"), keys.size("time_embed_hidden_dim")
    adapted = (*core, *linear("adaln_proj.linear", 18 * width, time))
    taps = area(keys)
    channels, sound = keys.size("in_channels"), keys.size("audio_in_channels", default=0)
    outer = (
        *linear("proj_in", width, channels * taps),
        *linear("audio_proj_in", width, sound),
        *linear("context_embedder", width, keys.size("text_dim")),
        *linear("time_embedder.linear_1", hidden_time, keys.size("freq_dim", default=256)),
        *linear("time_embedder.linear_2", time, hidden_time),
        *(core * keys.layers("num_refiner_layers")),
        *norm("token_refiner.final_norm", width),
        *norm("norm_out.norm", width),
        *linear("norm_out.linear", 2 * width, time),
        *linear("proj_out", channels * taps, width),
        *linear("audio_proj_out", sound, width),
    )
    return denoiser(width, blocks(keys.layers("num_layers"), heads, adapted), outer)


READERS = {
    "WanTransformer3DModel": wan,
    "WanModel": wan,
    "HunyuanVideoTransformer3DModel": hunyuan_video,
    "CogVideoXTransformer3DModel": cogvideox,
    "EasyAnimateTransformer3DModel": easyanimate,
    "LTXVideoTransformer3DModel": ltx,
    "MochiTransformer3DModel": mochi,
    "MiniMaxH3Transformer3DModel": minimax_h3,
}
