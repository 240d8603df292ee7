"""Segment Anything: a ViT with relative positions by axis, a prompt encoder, a small two-way mask decoder."""

from __future__ import annotations

from dataclasses import replace

from chipwise.model.blocks import EncoderStyle, Heads, Weights, conv, encoder_layers, matrix, norm, table, vector
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys, divide
from chipwise.model.nested import part_keys
from chipwise.model.spec import Layer
from chipwise.model.towers import sides, width_of


def image_encoder(keys: Keys) -> tuple[tuple[Layer, ...], Weights, int]:
    """The image encoder: its layers, what stands around them, its width."""
    hidden = keys.size("hidden_size")
    count = keys.size("num_attention_heads", least=1)
    heads = Heads(hidden=hidden, query=count, kv=count, dim=divide(keys, hidden, count, "hidden_size"))
    height, _ = sides(keys, "image_size", 1024)
    patch, _ = sides(keys, "patch_size", 16)
    grid = height // max(patch, 1)
    depth = keys.layers()
    wide = [index for index in keys.sizes("global_attn_indexes") if index < depth]
    width = width_of(keys.also(intermediate_size=keys.maybe("mlp_dim")), hidden)
    bias = "qkvo" if keys.flag("qkv_bias", default=True) else "o"
    layers: tuple[Layer, ...] = ()
    window = keys.size("window_size", default=14)
    for number, side in ((depth - len(wide), window), (len(wide), grid)):
        relative = (vector("attn.rel_pos", 2 * (2 * side - 1) * heads.dim, "attention"),)
        extra = relative if keys.flag("use_rel_pos", default=True) else ()
        seen = encoder_layers(number, heads, width, EncoderStyle(bias=bias, extra=extra))
        if side == window:
            seen = tuple(replace(one, attention=replace(one.attention, window_tokens=window**2)) for one in seen)
        layers += seen
    out = keys.size("output_channels", default=256)
    front = (
        *((table("pos_embed", grid * grid, hidden),) if keys.flag("use_abs_pos", default=True) else ()),
        *conv("patch_embed", (hidden, keys.size("num_channels", default=3)), patch * patch),
        *conv("neck.conv1", (out, hidden), 1, bias=False),
        *conv("neck.conv2", (out, out), 9, bias=False),
        *norm("neck.layer_norm1", out, "layer"),
        *norm("neck.layer_norm2", out, "layer"),
    )
    return layers, front, hidden


def _prompts(keys: Keys, features: int) -> Weights:
    hidden, channels = keys.size("hidden_size", default=256), keys.size("mask_input_channels", default=16)
    few = channels // 4
    points = keys.size("num_point_embeddings", default=4)
    return (
        vector("shared_image_embedding", 2 * features, "embedding"),
        *conv("mask_embed.conv1", (few, 1), 4),
        *conv("mask_embed.conv2", (channels, few), 4),
        *conv("mask_embed.conv3", (hidden, channels), 1),
        *norm("mask_embed.layer_norm1", few, "layer"),
        *norm("mask_embed.layer_norm2", channels, "layer"),
        table("point_embed", points + 2, hidden),
    )


def _cross(name: str, hidden: int, inner: int) -> Weights:
    return (
        *(
            weight
            for part in ("q", "k", "v")
            for weight in matrix(f"{name}.{part}_proj", (inner, hidden), "attention", bias=True)
        ),
        *matrix(f"{name}.out_proj", (hidden, inner), "attention", bias=True),
    )


def _decoder(keys: Keys) -> Weights:
    hidden, width = keys.size("hidden_size", default=256), keys.size("mlp_dim", default=2048)
    inner = hidden // keys.size("attention_downsample_rate", default=2, least=1)
    masks = keys.size("num_multimask_outputs", default=3) + 1
    layer = (
        *_cross("self_attn", hidden, hidden),
        *(_cross("cross_attn", hidden, inner) * 2),
        *matrix("mlp.lin1", (width, hidden), "mlp", bias=True),
        *matrix("mlp.lin2", (hidden, width), "mlp", bias=True),
        *(norm("layer_norm", hidden, "layer") * 4),
    )
    quality = keys.size("iou_head_hidden_dim", default=256)
    between = max(keys.size("iou_head_depth", default=3) - 2, 0)
    hyper = (
        *(matrix("hypernetwork", (hidden, hidden), "other", bias=True) * 2),
        *matrix("hypernetwork.proj_out", (hidden // 8, hidden), "other", bias=True),
    )
    return (
        table("tokens", masks + 1, hidden),
        *(layer * keys.layers("num_hidden_layers")),
        *_cross("final_attn_token_to_image", hidden, inner),
        *norm("layer_norm_final_attn", hidden, "layer"),
        *matrix("upscale_conv1", (hidden, hidden // 4 * 4), "other"),
        vector("upscale_conv1.bias", hidden // 4, "other"),
        *matrix("upscale_conv2", (hidden // 4, hidden // 8 * 4), "other"),
        vector("upscale_conv2.bias", hidden // 8, "other"),
        *norm("upscale_layer_norm", hidden // 4, "layer"),
        *(hyper * masks),
        *matrix("iou_head.proj_in", (quality, hidden), "other", bias=True),
        *(matrix("iou_head.layers", (quality, quality), "other", bias=True) * between),
        *matrix("iou_head.proj_out", (masks, quality), "head", bias=True),
    )


def sam(keys: Keys) -> Draft:
    """SAM: base, large and huge."""
    seen = part_keys(keys, "vision_config", default="sam_vision_model")
    layers, front, hidden = image_encoder(seen)
    prompts = _prompts(
        part_keys(keys, "prompt_encoder_config", default="sam_prompt_encoder"),
        seen.size("num_pos_feats", default=128),
    )
    decoder = _decoder(part_keys(keys, "mask_decoder_config", default="sam_mask_decoder"))
    return Draft(kind="vision", layers=layers, outer=(*front, *prompts, *decoder), hidden_size=hidden)


READERS = {"sam": sam}
