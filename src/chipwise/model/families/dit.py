"""Image diffusion transformers: Flux, SD3, Chroma, Qwen-Image, PixArt, HunyuanDiT, DiT, Sana, Lumina 2, AuraFlow."""

from __future__ import annotations

from chipwise.model.blocks import Weights, conv, norm, table, vector
from chipwise.model.diffusion import (
    HEADS,
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
from chipwise.model.keys import Keys


def _out_channels(keys: Keys) -> int:
    return keys.maybe("out_channels") or keys.size("in_channels")


def joint_block(width: int, dim: int, *, modulated: bool = True) -> Weights:
    """Flux's double block: two streams, each with its modulation, projections and MLP, one attention."""
    both = ("norm1.linear", "norm1_context.linear") if modulated else ()
    return (
        *(weight for name in both for weight in linear(name, 6 * width, width)),
        *attend(Attend(width=width, norm_width=dim)),
        *added(width, norm_width=dim),
        *feed(width, 4 * width),
        *feed(width, 4 * width, name="ff_context"),
    )


def single_block(width: int, dim: int, *, modulated: bool = True) -> Weights:
    """Flux's single block: attention and MLP side by side, one projection back."""
    return (
        *(linear("norm.linear", 3 * width, width) if modulated else ()),
        *linear("proj_mlp", 4 * width, width, part="mlp"),
        *linear("proj_out", width, 5 * width, part="mlp"),
        *attend(Attend(width=width, norm_width=dim, out=False)),
    )


def flux(keys: Keys) -> Draft:
    """FLUX.1: double blocks, single blocks, guidance embedded in the distilled ones."""
    width, heads = width_of(keys), heads_of(keys)
    keys.need(("in_channels",), ("num_layers",), ("num_single_layers",), ("joint_attention_dim",))
    pooled = keys.size("pooled_projection_dim")
    guided = timestep(width, "guidance_embedder") if keys.flag("guidance_embeds") else ()
    outer = (
        *linear("x_embedder", width, keys.size("in_channels")),
        *linear("context_embedder", width, keys.size("joint_attention_dim")),
        *timestep(width),
        *guided,
        *timestep(width, "text_embedder", pooled),
        *linear("norm_out.linear", 2 * width, width),
        *linear("proj_out", _out_channels(keys) * area(keys), width),
    )
    layers = (
        *blocks(keys.layers("num_layers"), heads, joint_block(width, heads.dim)),
        *blocks(keys.layers("num_single_layers"), heads, single_block(width, heads.dim)),
    )
    return denoiser(width, layers, outer)


def chroma(keys: Keys) -> Draft:
    """Chroma: Flux whose modulations come from one small network."""
    width, heads = width_of(keys), heads_of(keys)
    inner = keys.size("approximator_hidden_dim", default=5120)
    channels = keys.size("approximator_num_channels", default=64)
    outer = (
        *linear("distilled_guidance_layer.in_proj", inner, channels),
        *(linear("distilled_guidance_layer.linear", inner, inner) * (2 * keys.size("approximator_layers", default=5))),
        vector("distilled_guidance_layer.norms", inner * keys.size("approximator_layers", default=5)),
        *linear("distilled_guidance_layer.out_proj", width, inner),
        *linear("x_embedder", width, keys.size("in_channels")),
        *linear("context_embedder", width, keys.size("joint_attention_dim")),
        *linear("proj_out", _out_channels(keys) * area(keys), width),
    )
    layers = (
        *blocks(keys.layers("num_layers"), heads, joint_block(width, heads.dim, modulated=False)),
        *blocks(keys.layers("num_single_layers"), heads, single_block(width, heads.dim, modulated=False)),
    )
    return denoiser(width, layers, outer)


def sd3(keys: Keys) -> Draft:
    """Stable Diffusion 3 and 3.5: joint blocks; the last lets the text go; 3.5 Medium attends twice in some."""
    width, heads = width_of(keys), heads_of(keys)
    keys.need(("num_layers",), ("joint_attention_dim",), ("pooled_projection_dim",))
    count = keys.layers("num_layers")
    normed = heads.dim if keys.raw("qk_norm") else 0
    dual = set(keys.sizes("dual_attention_layers"))
    context = keys.size("caption_projection_dim", default=width)
    twice = attend(Attend(width=width, norm_width=normed, prefix="attn2"))

    def block(*, last: bool, doubled: bool) -> Weights:
        return (
            *linear("norm1.linear", (9 if doubled else 6) * width, width),
            *linear("norm1_context.linear", (2 if last else 6) * width, width),
            *attend(Attend(width=width, norm_width=normed)),
            *added(width, norm_width=normed, out=not last),
            *(twice if doubled else ()),
            *feed(width, 4 * width),
            *(() if last else feed(width, 4 * width, name="ff_context")),
        )

    doubled = sum(1 for index in dual if index < count - 1)
    layers = (
        *blocks(count - 1 - doubled, heads, block(last=False, doubled=False)),
        *blocks(doubled, heads, block(last=False, doubled=True)),
        *blocks(1, heads, block(last=True, doubled=count - 1 in dual)),
    )
    outer = (
        *patch("pos_embed.proj", width, keys.size("in_channels"), area(keys, default=2)),
        *timestep(width),
        *timestep(width, "text_embedder", keys.size("pooled_projection_dim")),
        *linear("context_embedder", context, keys.size("joint_attention_dim")),
        *linear("norm_out.linear", 2 * width, width),
        *linear("proj_out", _out_channels(keys) * area(keys, default=2), width),
    )
    return denoiser(width, layers, outer)


def qwen_image(keys: Keys) -> Draft:
    """Qwen-Image: sixty double blocks over Qwen 2.5 VL's text."""
    width, heads = width_of(keys), heads_of(keys)
    text = keys.size("joint_attention_dim")
    outer = (
        *timestep(width),
        *norm("txt_norm", text),
        *linear("img_in", width, keys.size("in_channels")),
        *linear("txt_in", width, text),
        *linear("norm_out.linear", 2 * width, width),
        *linear("proj_out", _out_channels(keys) * area(keys, default=2), width),
    )
    return denoiser(width, blocks(keys.layers("num_layers"), heads, joint_block(width, heads.dim)), outer)


def pixart(keys: Keys) -> Draft:
    """PixArt alpha and sigma: one modulation for all blocks, cross-attention to T5."""
    width, heads = width_of(keys), heads_of(keys)
    bias = keys.flag("attention_bias", default=True)
    cross = keys.maybe("cross_attention_dim") or width
    block = (
        vector("scale_shift_table", 6 * width),
        *attend(Attend(width=width, bias=bias, prefix="attn1")),
        *attend(Attend(width=width, source=cross, bias=bias, prefix="attn2")),
        *feed(width, 4 * width),
    )
    caption = keys.maybe("caption_channels")
    conditions = keys.raw("use_additional_conditions")
    sized = conditions if isinstance(conditions, bool) else keys.size("sample_size", default=128) == 128
    extra = width // 3
    outer = (
        vector("scale_shift_table", 2 * width),
        *patch("pos_embed.proj", width, keys.size("in_channels"), area(keys, default=2)),
        *timestep(width),
        *(timestep(extra, "resolution_embedder") if sized else ()),
        *(timestep(extra, "aspect_ratio_embedder") if sized else ()),
        *linear("adaln_single.linear", 6 * width, width),
        *(_caption(width, caption) if caption else ()),
        *linear("proj_out", _out_channels(keys) * area(keys, default=2), width),
    )
    return denoiser(width, blocks(keys.layers("num_layers"), heads, block), outer)


def _caption(width: int, channels: int) -> Weights:
    return (
        *linear("caption_projection.linear_1", width, channels),
        *linear("caption_projection.linear_2", width, width),
    )


def dit(keys: Keys) -> Draft:
    """DiT: every block embeds the timestep and the class for itself."""
    width, heads = width_of(keys), heads_of(keys)
    bias = keys.flag("attention_bias", default=True)
    classes = keys.size("num_embeds_ada_norm", default=1000)
    block = (
        *timestep(width, "norm1.emb.timestep_embedder"),
        table("norm1.emb.class_embedder", classes + 1, width),
        *linear("norm1.linear", 6 * width, width),
        *attend(Attend(width=width, bias=bias, prefix="attn1")),
        *feed(width, 4 * width),
    )
    outer = (
        *patch("pos_embed.proj", width, keys.size("in_channels"), area(keys, default=2)),
        *linear("proj_out_1", 2 * width, width),
        *linear("proj_out_2", _out_channels(keys) * area(keys, default=2), width),
    )
    return denoiser(width, blocks(keys.layers("num_layers"), heads, block), outer)


def hunyuan_dit(keys: Keys) -> Draft:
    """HunyuanDiT: a U of blocks with skips, CLIP and T5 side by side."""
    width, heads = width_of(keys), heads_of(keys)
    cross, t5 = keys.size("cross_attention_dim"), keys.size("cross_attention_dim_t5")
    normed = Attend(width=width, norm_width=heads.dim, norm_shift=True, prefix="attn1")
    inner = int(width * keys.number("mlp_ratio", default=4.0))
    plain = (
        *linear("norm1.linear", width, width),
        *norm("norm1.norm", width, "layer"),
        *attend(normed),
        *norm("norm2", width, "layer"),
        *attend(Attend(width=width, source=cross, norm_width=heads.dim, norm_shift=True, prefix="attn2")),
        *norm("norm3", width, "layer"),
        *feed(width, inner),
    )
    skip = (*plain, *norm("skip_norm", 2 * width, "layer"), *linear("skip_linear", width, 2 * width))
    count = keys.layers("num_layers")
    skipped = count - count // 2 - 1
    pooled = keys.size("pooled_projection_dim", default=1024)
    lengths = keys.size("text_len", default=77) + keys.size("text_len_t5", default=256)
    styled = keys.flag("use_style_cond_and_image_meta_size", default=True)
    extra = pooled + (256 * 6 + width if styled else 0)
    outer = (
        table("text_embedding_padding", lengths, cross),
        *linear("text_embedder.linear_1", 4 * t5, t5),
        *linear("text_embedder.linear_2", cross, 4 * t5),
        *patch("pos_embed.proj", width, keys.size("in_channels"), area(keys, default=2)),
        *timestep(width),
        table("pooler.positional_embedding", keys.size("text_len_t5", default=256) + 1, t5),
        *(weight for name in ("q", "k", "v") for weight in linear(f"pooler.{name}_proj", t5, t5)),
        *linear("pooler.c_proj", pooled, t5),
        *((table("style_embedder", 1, width),) if styled else ()),
        *linear("extra_embedder.linear_1", 4 * width, extra),
        *linear("extra_embedder.linear_2", width, 4 * width),
        *linear("norm_out.linear", 2 * width, width),
        *linear(
            "proj_out",
            keys.size("in_channels") * (2 if keys.flag("learn_sigma", default=True) else 1) * area(keys, default=2),
            width,
        ),
    )
    layers = (*blocks(count - skipped, heads, plain), *blocks(skipped, heads, skip))
    return denoiser(width, layers, outer)


def sana(keys: Keys) -> Draft:
    """Sana: linear attention, a gated depthwise convolution for an MLP."""
    width, heads = width_of(keys), heads_of(keys)
    cross = keys.maybe("cross_attention_dim") or width
    inner = int(keys.number("mlp_ratio", default=2.5) * width)
    normed = width if keys.raw("qk_norm") else 0
    bias = keys.flag("attention_bias")
    block = (
        vector("scale_shift_table", 6 * width),
        *attend(Attend(width=width, bias=bias, norm_width=normed, prefix="attn1")),
        *attend(Attend(width=width, source=cross, norm_width=normed, prefix="attn2")),
        *conv("ff.conv_inverted", (2 * inner, width), 1),
        *conv("ff.conv_depth", (2 * inner, 1), 9),
        *conv("ff.conv_point", (width, inner), 1, bias=False),
    )
    guided = timestep(width, "guidance_embedder") if keys.flag("guidance_embeds") else ()
    outer = (
        vector("scale_shift_table", 2 * width),
        *patch("patch_embed.proj", width, keys.size("in_channels"), area(keys)),
        *timestep(width),
        *guided,
        *linear("time_embed.linear", 6 * width, width),
        *_caption(width, keys.size("caption_channels")),
        *norm("caption_norm", width),
        *linear("proj_out", _out_channels(keys) * area(keys), width),
    )
    return denoiser(width, blocks(keys.layers("num_layers"), heads, block), outer)


def auraflow(keys: Keys) -> Draft:
    """AuraFlow: some double blocks, many single ones, gated MLPs, register tokens, no biases."""
    width, heads = width_of(keys), heads_of(keys)
    inner = -(-(int(8 * width / 3)) // 256) * 256
    plain = Attend(width=width, bias=False, out_bias=False)
    names = ("add_q_proj", "add_k_proj", "add_v_proj", "to_add_out")
    gated = (
        *linear("ff.linear_1", inner, width, bias=False, part="mlp"),
        *linear("ff.linear_2", inner, width, bias=False, part="mlp"),
        *linear("ff.out_projection", width, inner, bias=False, part="mlp"),
    )
    modulation = linear("norm1.linear", 6 * width, width, bias=False)
    single = (*modulation, *attend(plain), *gated)
    double = (*single, *modulation, *attend(Attend(width=width, bias=False, out_bias=False, names=names)), *gated)
    channels, taps = keys.size("in_channels"), area(keys, default=2)
    outer = (
        *linear("pos_embed.proj", width, channels * taps),
        vector("pos_embed.pos_embed", keys.size("pos_embed_max_size", default=1024) * width, "embedding"),
        *linear(
            "context_embedder",
            keys.size("caption_projection_dim", default=width),
            keys.size("joint_attention_dim"),
            bias=False,
        ),
        *timestep(width, "time_step_proj"),
        vector("register_tokens", 8 * width, "embedding"),
        *linear("norm_out.linear", 2 * width, width, bias=False),
        *linear("proj_out", _out_channels(keys) * taps, width, bias=False),
    )
    layers = (
        *blocks(keys.layers("num_mmdit_layers"), heads, double),
        *blocks(keys.layers("num_single_dit_layers"), heads, single),
    )
    return denoiser(width, layers, outer)


def lumina2(keys: Keys) -> Draft:
    """Lumina 2: refiners for noise and text, four norms a block, gated MLP."""
    width = keys.size("hidden_size")
    count, kv = keys.size(*HEADS, least=1), keys.size("num_kv_heads", default=8)
    dim = width // count
    multiple = keys.size("multiple_of", default=256, least=1)
    inner = int(4 * width * keys.number("ffn_dim_multiplier", default=1.0))
    inner = -(-inner // multiple) * multiple
    core = (
        *linear("attn.to_q", width, width, bias=False, part="attention"),
        *linear("attn.to_k", kv * dim, width, bias=False, part="attention"),
        *linear("attn.to_v", kv * dim, width, bias=False, part="attention"),
        *linear("attn.to_out", width, width, bias=False, part="attention"),
        vector("attn.norms", 2 * dim),
        vector("norms", 4 * width),
        *(linear("feed_forward.linear", inner, width, bias=False, part="mlp") * 3),
    )
    embedding = min(width, 1024)
    modulated = (*core, *linear("norm1.linear", 4 * width, embedding))
    refiners = keys.layers("num_refiner_layers")
    caption = keys.size("cap_feat_dim", default=1024)
    taps = area(keys, default=2)
    outer = (
        *linear("x_embedder", width, keys.size("in_channels") * taps),
        *timestep(embedding),
        *norm("caption_embedder.0", caption),
        *linear("caption_embedder.1", width, caption),
        *(core * refiners),
        *(modulated * refiners),
        *linear("norm_out.linear_1", width, embedding),
        *linear("norm_out.linear_2", taps * _out_channels(keys), width),
    )
    heads = heads_of(keys.also(attention_head_dim=dim))
    return denoiser(width, blocks(keys.layers("num_layers"), heads, modulated), outer)


READERS = {
    "FluxTransformer2DModel": flux,
    "ChromaTransformer2DModel": chroma,
    "SD3Transformer2DModel": sd3,
    "QwenImageTransformer2DModel": qwen_image,
    "PixArtTransformer2DModel": pixart,
    "DiTTransformer2DModel": dit,
    "HunyuanDiT2DModel": hunyuan_dit,
    "SanaTransformer2DModel": sana,
    "AuraFlowTransformer2DModel": auraflow,
    "Lumina2Transformer2DModel": lumina2,
}
