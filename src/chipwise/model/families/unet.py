"""Convolutional diffusion networks: UNets for images and video, ControlNet, the autoencoder, Stable Cascade."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from chipwise.model.blocks import Weights, conv, norm, table, vector
from chipwise.model.diffusion import Attend, attend, denoiser, feed, linear
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys, side_by_side

_DOWN = {"CrossAttnDownBlock2D": True, "DownBlock2D": False, "CrossAttnDownBlock3D": True, "DownBlock3D": False}
_UP = {"CrossAttnUpBlock2D": True, "UpBlock2D": False, "CrossAttnUpBlock3D": True, "UpBlock3D": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Net:
    """What every block of a UNet needs to know. `video` puts a temporal part behind each spatial one."""

    widths: tuple[int, ...]
    layers: tuple[int, ...]
    crossed: tuple[int, ...]
    heads: tuple[int, ...]
    depths: tuple[int, ...]
    embedding: int
    block_embedding: int
    video: bool
    scale_shift: bool


def resnet(inside: int, out: int, embedding: int = 0, *, scale_shift: bool = False) -> Weights:
    """Two convolutions with norms before them, the timestep added between, a shortcut where the width changes."""
    return (
        *norm("norm1", inside, "layer"),
        *conv("conv1", (out, inside), 9),
        *(linear("time_emb_proj", out * (2 if scale_shift else 1), embedding) if embedding else ()),
        *norm("norm2", out, "layer"),
        *conv("conv2", (out, out), 9),
        *(conv("conv_shortcut", (out, inside), 1) if inside != out else ()),
    )


def _transformer(width: int, cross: int, depth: int) -> Weights:
    """Projections around `depth` blocks: self-attention, cross-attention, gated MLP, three norms."""
    plain = Attend(width=width, bias=False, prefix="attn1")
    block: Weights = (
        *attend(plain),
        *(attend(Attend(width=width, source=cross, bias=False, prefix="attn2")) if cross else ()),
        *(weight for name in ("norm1", "norm3", "norm2")[: 3 if cross else 2] for weight in norm(name, width, "layer")),
        *feed(width, 4 * width, gated=True),
    )
    return (
        *norm("norm", width, "layer"),
        *linear("proj_in", width, width),
        *(block * depth),
        *linear("proj_out", width, width),
    )


def _temporal_conv(width: int) -> Weights:
    return (*norm("temp.norm", width, "layer"), *conv("temp.conv", (width, width), 3)) * 4


def _pair(net: _Net, index: int, inside: int, out: int, *, attends: bool) -> Weights:
    weights = resnet(inside, out, net.block_embedding, scale_shift=net.scale_shift)
    if net.video:
        weights += _temporal_conv(out)
    if attends:
        weights += _transformer(out, net.crossed[index], net.depths[index])
        if net.video:
            weights += _transformer(out, out, 1)
    return weights


def _down(keys: Keys, net: _Net) -> tuple[Weights, list[int]]:
    """The way down, and the width of every skip."""
    weights: Weights = ()
    skips = [net.widths[0]]
    before = net.widths[0]
    kinds = keys.items("down_block_types")
    for index, (kind, width) in enumerate(zip(kinds, net.widths, strict=True)):
        for _ in range(net.layers[index]):
            weights += _pair(net, index, before, width, attends=_known(keys, kind, _DOWN))
            before = width
            skips.append(width)
        if index < len(net.widths) - 1:
            weights += conv("downsampler", (width, width), 9)
            skips.append(width)
    return weights, skips


def _known(keys: Keys, kind: object, table_of: dict[str, bool]) -> bool:
    if not isinstance(kind, str) or kind not in table_of:
        raise keys.wrong("block types", kind, f"one of {', '.join(table_of)}")
    return table_of[kind]


def _up(keys: Keys, net: _Net, skips: list[int]) -> Weights:
    weights: Weights = ()
    before = net.widths[-1]
    kinds = keys.items("up_block_types")
    count = len(net.widths)
    for step, kind in enumerate(kinds):
        index = count - 1 - step
        width = net.widths[index]
        for _ in range(net.layers[index] + 1):
            weights += _pair(net, index, before + skips.pop(), width, attends=_known(keys, kind, _UP))
            before = width
        if step < count - 1:
            weights += conv("upsampler", (width, width), 9)
    return weights


def _mid(keys: Keys, net: _Net) -> Weights:
    kind = keys.raw("mid_block_type") if "mid_block_type" in keys.data else "UNetMidBlock2DCrossAttn"
    if kind is None:
        return ()
    width, last = net.widths[-1], len(net.widths) - 1
    one = resnet(width, width, net.block_embedding, scale_shift=net.scale_shift)
    temporal = _temporal_conv(width) if net.video else ()
    if kind == "UNetMidBlock2D":
        return one
    attention = _transformer(width, net.crossed[last], net.depths[last])
    if net.video:
        attention += _transformer(width, width, 1)
    return (*one, *temporal, *attention, *one, *temporal)


def _per_block(keys: Keys, name: str, count: int, default: int) -> tuple[int, ...]:
    value = keys.raw(name)
    if value is None:
        return (default,) * count
    listed = keys.sizes(name, count=count)
    if len(listed) != count:
        raise keys.wrong(name, value, f"one number or {count}")
    return listed


def _net(keys: Keys, *, video: bool = False) -> _Net:
    keys.need(("block_out_channels",), ("down_block_types",), ("in_channels",))
    widths = keys.sizes("block_out_channels")
    if not widths or len(widths) != len(keys.items("down_block_types")):
        raise keys.wrong("block_out_channels", widths, "one width for each of down_block_types")
    count = len(widths)
    depths = keys.raw("transformer_layers_per_block")
    embedding = keys.maybe("time_embedding_dim") or 4 * widths[0]
    net = _Net(
        widths=widths,
        layers=_per_block(keys, "layers_per_block", count, 2),
        crossed=_per_block(keys, "cross_attention_dim", count, 0),
        heads=_per_block(keys, "attention_head_dim", count, 8),
        depths=_per_block(keys, "transformer_layers_per_block", count, 1) if depths is not None else (1,) * count,
        embedding=embedding,
        block_embedding=2 * embedding if keys.flag("class_embeddings_concat") else embedding,
        video=video,
        scale_shift=keys.text("resnet_time_scale_shift", default="default") == "scale_shift",
    )
    keys.few("layers_per_block", net.layers)
    keys.few("transformer_layers_per_block", net.depths)
    return net


def _conditions(keys: Keys, net: _Net) -> Weights:
    """What is added to the timestep, and a projection of the text where its width is another."""
    embedding = net.embedding
    out: Weights = ()
    kind = keys.raw("class_embed_type")
    into = keys.size("projection_class_embeddings_input_dim", default=0)
    if kind == "timestep":
        out += _embedding("class_embedding", embedding, net.widths[0])
    elif kind == "projection":
        out += _embedding("class_embedding", embedding, into)
    elif kind == "simple_projection":
        out += linear("class_embedding", embedding, into)
    elif keys.maybe("num_class_embeds"):
        out += (table("class_embedding", keys.size("num_class_embeds"), embedding),)
    if keys.raw("addition_embed_type") == "text_time":
        out += _embedding("add_embedding", embedding, into)
    text = keys.maybe("encoder_hid_dim")
    if text and (keys.raw("encoder_hid_dim_type") or "text_proj") == "text_proj":
        out += linear("encoder_hid_proj", net.crossed[0], text)
    return out


def _embedding(name: str, width: int, inside: int) -> Weights:
    return (*linear(f"{name}.linear_1", width, inside), *linear(f"{name}.linear_2", width, width))


def unet2d(keys: Keys) -> Draft:
    """The UNet of Stable Diffusion 1, 2 and XL, Kolors, AudioLDM."""
    return _unet(keys, _net(keys))


def unet3d(keys: Keys) -> Draft:
    """The UNet of text-to-video: a temporal convolution and a temporal transformer behind each spatial one."""
    net = _net(keys, video=True)
    draft = _unet(keys, net)
    first = _transformer_in(net.widths[0], 8 * net.heads[0])
    return denoiser(draft.hidden_size, (), (*draft.outer, *first))


def _transformer_in(width: int, inner: int) -> Weights:
    block = _transformer(inner, inner, 1)
    kept = tuple(weight for weight in block if not weight.name.startswith(("proj_", "norm.")) and weight.name != "norm")
    return (
        *norm("norm", width, "layer"),
        *linear("proj_in", inner, width),
        *kept,
        *linear("proj_out", width, inner),
    )


def _unet(keys: Keys, net: _Net) -> Draft:
    down, skips = _down(keys, net)
    first = net.widths[0]
    taps = keys.size("conv_in_kernel", default=3) ** 2
    outer = (
        *conv("conv_in", (first, keys.size("in_channels")), taps),
        *_embedding("time_embedding", net.embedding, first),
        *_conditions(keys, net),
        *down,
        *_mid(keys, net),
        *_up(keys, net, skips),
        *norm("conv_norm_out", first, "layer"),
        *conv("conv_out", (keys.size("out_channels"), first), keys.size("conv_out_kernel", default=3) ** 2),
    )
    return denoiser(first, (), outer)


def controlnet(keys: Keys) -> Draft:
    """ControlNet: the way down and the middle of a UNet, an embedding of the condition."""
    net = _net(keys)
    down, skips = _down(keys, net)
    first, last = net.widths[0], net.widths[-1]
    steps = keys.sizes("conditioning_embedding_out_channels") or (16, 32, 96, 256)
    hint = conv("cond.conv_in", (steps[0], keys.size("conditioning_channels", default=3)), 9)
    for before, after in pairwise(steps):
        hint += (*conv("cond.same", (before, before), 9), *conv("cond.down", (after, before), 9))
    zero = tuple(weight for width in skips for weight in conv("controlnet_down_blocks", (width, width), 1))
    outer = (
        *conv("conv_in", (first, keys.size("in_channels")), 9),
        *_embedding("time_embedding", net.embedding, first),
        *_conditions(keys, net),
        *hint,
        *conv("cond.conv_out", (first, steps[-1]), 9),
        *down,
        *_mid(keys, net),
        *zero,
        *conv("controlnet_mid_block", (last, last), 1),
    )
    return denoiser(first, (), outer)


def _middle(width: int, *, attends: bool) -> Weights:
    attention = (*norm("group_norm", width, "layer"), *attend(Attend(width=width)))
    return (*resnet(width, width), *(attention if attends else ()), *resnet(width, width))


def autoencoder(keys: Keys) -> Draft:
    """The autoencoder of latent diffusion: an encoder and a decoder of plain convolutional blocks."""
    keys.need(("block_out_channels",), ("latent_channels",))
    widths = keys.sizes("block_out_channels")
    if not widths:
        raise keys.missing("block_out_channels")
    latent, depth = keys.size("latent_channels"), keys.size("layers_per_block", default=1)
    keys.few("layers_per_block", [depth])
    attends = keys.flag("mid_block_add_attention", default=True)
    encoder = _stages(widths, depth, keys.size("in_channels", default=3), "encoder")
    decoder = _stages(widths[::-1], depth + 1, latent, "decoder")
    outer = (
        *encoder,
        *_middle(widths[-1], attends=attends),
        *norm("encoder.conv_norm_out", widths[-1], "layer"),
        *conv("encoder.conv_out", (2 * latent, widths[-1]), 9),
        *(conv("quant_conv", (2 * latent, 2 * latent), 1) if keys.flag("use_quant_conv", default=True) else ()),
        *(conv("post_quant_conv", (latent, latent), 1) if keys.flag("use_post_quant_conv", default=True) else ()),
        *decoder,
        *_middle(widths[-1], attends=attends),
        *norm("decoder.conv_norm_out", widths[0], "layer"),
        *conv("decoder.conv_out", (keys.size("out_channels", default=3), widths[0]), 9),
    )
    return denoiser(widths[-1], (), outer)


def _stages(widths: Sequence[int], depth: int, channels: int, name: str) -> Weights:
    weights: Weights = conv(f"{name}.conv_in", (widths[0], channels), 9)
    before = widths[0]
    for index, width in enumerate(widths):
        for _ in range(depth):
            weights += resnet(before, width)
            before = width
        if index < len(widths) - 1:
            weights += conv(f"{name}.sampler", (width, width), 9)
    return weights


def stable_cascade(keys: Keys) -> Draft:
    """Stable Cascade (Wuerstchen 3): depthwise blocks, timestep blocks and attention by turns."""
    widths = keys.sizes("block_out_channels")
    names = ("down_num_layers_per_block", "up_num_layers_per_block")
    keys.need(("block_out_channels",), ("block_types_per_layer",), *((name,) for name in names))
    downs, ups = (keys.sizes(name) for name in names)
    side_by_side(keys, "block_out_channels", widths, downs, ups)
    cond, seq = keys.size("conditioning_dim"), keys.size("clip_seq", default=4)
    patched = keys.size("patch_size", default=1) ** 2
    outer: Weights = (
        *linear("clip_txt_pooled_mapper", cond * seq, keys.size("clip_text_pooled_in_channels")),
        *_mapped(keys, "clip_text_in_channels", "clip_txt_mapper", cond),
        *_mapped(keys, "clip_image_in_channels", "clip_img_mapper", cond * seq),
        *conv("embedding", (widths[0], keys.size("in_channels") * patched), 1),
        *_cascade_extras(keys, widths[0]),
    )
    for index, width in enumerate(widths):
        if index:
            outer += _resample(keys, widths[index - 1], width)
        outer += _cascade_block(keys, index, width, skip=0) * downs[index]
        outer += conv("repeat", (width, width), 1) * (_repeats(keys, "down", index) - 1)
    for step, width in enumerate(widths[::-1]):
        index = len(widths) - 1 - step
        joined = width if step else 0
        outer += _cascade_block(keys, index, width, skip=joined)
        outer += _cascade_block(keys, index, width, skip=0) * (ups[step] - 1)
        outer += conv("repeat", (width, width), 1) * (_repeats(keys, "up", step) - 1)
        if index:
            outer += _resample(keys, width, widths[index - 1])
    outer += conv("clf", (keys.size("out_channels") * patched, widths[0]), 1)
    return denoiser(widths[0], (), outer)


def _mapped(keys: Keys, name: str, label: str, out: int) -> Weights:
    channels = keys.maybe(name)
    return linear(label, out, channels) if channels else ()


def _cascade_extras(keys: Keys, width: int) -> Weights:
    out: Weights = ()
    for name in ("effnet", "pixel_mapper"):
        channels = keys.maybe(f"{name}_in_channels" if name == "effnet" else "pixel_mapper_in_channels")
        if channels:
            out += (*conv(f"{name}.0", (4 * width, channels), 1), *conv(f"{name}.2", (width, 4 * width), 1))
    return out


def _repeats(keys: Keys, way: str, index: int) -> int:
    values = keys.sizes(f"{way}_blocks_repeat_mappers")
    return values[index] if index < len(values) else 1


def _resample(keys: Keys, before: int, after: int) -> Weights:
    """A strided convolution, or a 1x1 one where `switch_level` replaces it by interpolation."""
    switched = keys.raw("switch_level")
    return conv("resample", (after, before), 1 if isinstance(switched, list) else 4)


def _cascade_block(keys: Keys, index: int, width: int, *, skip: int) -> Weights:
    types = keys.items("block_types_per_layer")[index]
    time = keys.size("timestep_ratio_embedding_dim", default=64)
    kernel = keys.size("kernel_size", default=3) ** 2
    out: Weights = ()
    for kind in types if isinstance(types, list) else ():
        if kind == "SDCascadeResBlock":
            out += (
                *conv("depthwise", (width, 1), kernel),
                *linear("channelwise.0", 4 * width, width + skip),
                vector("channelwise.grn", 8 * width, "other"),
                *linear("channelwise.4", width, 4 * width),
            )
        elif kind == "SDCascadeTimestepBlock":
            mappers = 1 + len(keys.items("timestep_conditioning_type"))
            out += linear("mapper", 2 * width, time) * mappers
        else:
            out += (*attend(Attend(width=width)), *linear("kv_mapper", width, keys.size("conditioning_dim")))
    return out


READERS = {
    "UNet2DConditionModel": unet2d,
    "UNet3DConditionModel": unet3d,
    "ControlNetModel": controlnet,
    "AutoencoderKL": autoencoder,
    "StableCascadeUNet": stable_cascade,
}
