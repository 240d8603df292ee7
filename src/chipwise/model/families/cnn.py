"""Convolutional networks: ResNet, RegNet, ConvNeXt, EfficientNet, MobileNet; DETR over a ResNet; wide ViT hybrids.

Batch norms count two parameters a channel; frozen ones (DETR's) none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chipwise.model.blocks import Heads, Projections, Weights, attention_weights, conv, matrix, norm, table, vector
from chipwise.model.defaults import backbone
from chipwise.model.draft import Draft, stack
from chipwise.model.families.encdec import Side, decoder_side, encoder_side
from chipwise.model.keys import Keys, divide
from chipwise.model.spec import Layer


def convolutional(outer: Weights, width: int) -> Draft:
    """The draft of a convolutional network."""
    return Draft(kind="cnn", outer=outer, hidden_size=width)


def classified(keys: Keys, width: int) -> Weights:
    """A classifier where the architecture's name asks for one."""
    if not keys.head.endswith("ForImageClassification"):
        return ()
    return matrix("classifier", (keys.labels, width), "head", bias=True)


def normed(name: str, out: int, inside: int, kernel: int, *, frozen: bool = False) -> Weights:
    """A convolution without bias and its batch norm."""
    return (*conv(name, (out, inside), kernel, bias=False), *(() if frozen else norm(f"{name}.norm", out, "layer")))


def resnet_stages(
    widths: Sequence[int], depths: Sequence[int], *, stem: int, bottleneck: bool, frozen: bool = False
) -> Weights:
    """The stages of a ResNet after its stem: basic blocks, or bottlenecks a quarter as wide inside."""
    out: Weights = ()
    before = stem
    for width, depth in zip(widths, depths, strict=True):
        inner = width // 4 if bottleneck else width
        for index in range(depth):
            narrow = ((inner, before, 1), (inner, inner, 9), (width, inner, 1))
            kernels = narrow if bottleneck else ((width, before, 9), (width, width, 9))
            for each in kernels:
                out += normed("conv", *each, frozen=frozen)
            if before != width or (index == 0 and width != widths[0]):
                out += normed("shortcut", width, before, 1, frozen=frozen)
            before = width
    return out


def resnet(keys: Keys) -> Draft:
    """ResNet 18 to 152."""
    widths, depths = keys.sizes("hidden_sizes"), keys.sizes("depths")
    keys.need(("hidden_sizes",), ("depths",))
    _same_length(keys, widths, depths)
    stem = keys.size("embedding_size", default=64)
    bottleneck = keys.text("layer_type", default="bottleneck") == "bottleneck"
    outer = (
        *normed("embedder", stem, keys.size("num_channels", default=3), 49),
        *resnet_stages(widths, depths, stem=stem, bottleneck=bottleneck),
        *classified(keys, widths[-1]),
    )
    return convolutional(outer, widths[-1])


def _same_length(keys: Keys, widths: Sequence[int], depths: Sequence[int]) -> None:
    if not widths or len(widths) != len(depths):
        raise keys.wrong("depths", list(depths), f"one depth for each of {len(widths)} widths")
    keys.few("depths", depths)


def regnet(keys: Keys) -> Draft:
    """RegNet X and Y: grouped convolutions of equal width, squeeze-and-excitation in Y."""
    widths, depths = keys.sizes("hidden_sizes"), keys.sizes("depths")
    _same_length(keys, widths, depths)
    group = keys.size("groups_width", default=64, least=1)
    squeezes = keys.text("layer_type", default="y") == "y"
    before = keys.size("embedding_size", default=32)
    outer = normed("embedder", before, keys.size("num_channels", default=3), 9)
    for width, depth in zip(widths, depths, strict=True):
        groups = max(1, width // group)
        for index in range(depth):
            outer += (
                *normed("conv1", width, before, 1),
                *normed("conv2", width, width // groups, 9),
                *normed("conv3", width, width, 1),
            )
            if squeezes:
                reduced = round(before / 4)
                outer += (*conv("se.0", (reduced, width), 1), *conv("se.2", (width, reduced), 1))
            if before != width or index == 0:
                outer += normed("shortcut", width, before, 1)
            before = width
    return convolutional((*outer, *classified(keys, widths[-1])), widths[-1])


def convnext(keys: Keys) -> Draft:
    """ConvNeXt 1 and 2: depthwise 7x7, an MLP; a layer scale (1) or a response norm (2)."""
    widths, depths = keys.sizes("hidden_sizes"), keys.sizes("depths")
    _same_length(keys, widths, depths)
    second = keys.text("model_type") == "convnextv2"
    scaled = not second and keys.number("layer_scale_init_value", default=1e-6) > 0
    patch = keys.size("patch_size", default=4) ** 2
    outer: Weights = (
        *conv("patch_embeddings", (widths[0], keys.size("num_channels", default=3)), patch),
        *norm("embeddings.layernorm", widths[0], "layer"),
    )
    before = widths[0]
    for index, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        if index:
            outer += (*norm("downsampling.norm", before, "layer"), *conv("downsampling.conv", (width, before), 4))
        block = (
            *conv("dwconv", (width, 1), 49),
            *norm("layernorm", width, "layer"),
            *matrix("pwconv1", (4 * width, width), "other", bias=True),
            *matrix("pwconv2", (width, 4 * width), "other", bias=True),
            *((vector("layer_scale", width),) if scaled else ()),
            *((vector("grn", 8 * width),) if second else ()),
        )
        outer += block * depth
        before = width
    outer += (*norm("layernorm", before, "layer"), *classified(keys, before))
    return convolutional(outer, before)


def _rounded(value: float, divisor: int) -> int:
    new = max(divisor, int(value + divisor / 2) // divisor * divisor)
    return new + divisor if new < 0.9 * value else new


def efficientnet(keys: Keys) -> Draft:
    """EfficientNet: inverted bottlenecks with squeeze-and-excitation, scaled in width and depth."""
    ins, outs = keys.sizes("in_channels"), keys.sizes("out_channels")
    kernels, expands, repeats = (keys.sizes(name) for name in ("kernel_sizes", "expand_ratios", "num_block_repeats"))
    keys.need(("in_channels",), ("out_channels",), ("kernel_sizes",), ("expand_ratios",), ("num_block_repeats",))
    width, depth = keys.number("width_coefficient", default=1.0), keys.number("depth_coefficient", default=1.0)
    divisor = keys.size("depth_divisor", default=8, least=1)
    ratio = keys.number("squeeze_expansion_ratio", default=0.25)
    stem = _rounded(32 * width, divisor)
    outer = normed("embeddings", stem, keys.size("num_channels", default=3), 9)
    blocks = keys.few("num_block_repeats", [int(-(-(depth * count) // 1)) for count in repeats])
    for each in zip(ins, outs, kernels, expands, blocks, strict=True):
        first, last = _rounded(each[0] * width, divisor), _rounded(each[1] * width, divisor)
        for index in range(each[4]):
            before = first if index == 0 else last
            outer += _inverted(before, last, each[2], each[3], ratio)
    hidden = keys.size("hidden_dim", default=_rounded(1280 * width, divisor))
    top = _rounded(outs[-1] * width, divisor)
    outer += (*normed("top", hidden, top, 1), *classified(keys, hidden))
    return convolutional(outer, hidden)


def _inverted(before: int, after: int, kernel: int, expand: int, ratio: float) -> Weights:
    wide = before * expand
    squeezed = max(1, int(before * ratio))
    return (
        *(normed("expand", wide, before, 1) if expand != 1 else ()),
        *normed("depthwise", wide, 1, kernel**2),
        *conv("se.reduce", (squeezed, wide), 1),
        *conv("se.expand", (wide, squeezed), 1),
        *normed("project", after, wide, 1),
    )


def mobilenet_v1(keys: Keys) -> Draft:
    """MobileNet 1: thirteen depthwise-separable convolutions."""
    multiplier, least = keys.number("depth_multiplier", default=1.0), keys.size("min_depth", default=8)

    def scaled(value: int) -> int:
        return max(round(value * multiplier), least)

    outer = normed("conv_stem", scaled(32), keys.size("num_channels", default=3), 9)
    before = scaled(32)
    for plain in (64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024):
        width = scaled(plain)
        outer += (*normed("depthwise", before, 1, 9), *normed("pointwise", width, before, 1))
        before = width
    return convolutional((*outer, *classified(keys, before)), before)


# (channels, repeats) of MobileNet 2's stages after the first.
_MOBILE2 = ((24, 2), (32, 3), (64, 4), (96, 3), (160, 3), (320, 1))


def mobilenet_v2(keys: Keys) -> Draft:
    """MobileNet 2: inverted residuals with linear bottlenecks."""
    multiplier = keys.number("depth_multiplier", default=1.0)
    divisor, least = keys.size("depth_divisible_by", default=8, least=1), keys.size("min_depth", default=8)
    expand = keys.number("expand_ratio", default=6.0)

    def rounded(value: float) -> int:
        new = max(least, int(value + divisor / 2) // divisor * divisor)
        return int(new + divisor if new < 0.9 * value else new)

    stem, first = rounded(32 * multiplier), rounded(16 * multiplier)
    outer = (
        *normed("stem", stem, keys.size("num_channels", default=3), 9),
        *normed("stem.3x3", stem, 1, 9),
        *normed("stem.reduce", first, stem, 1),
    )
    before = first
    for plain, repeats in _MOBILE2:
        width = rounded(plain * multiplier)
        for _ in range(repeats):
            wide = rounded(before * expand)
            outer += (*normed("expand", wide, before, 1), *normed("3x3", wide, 1, 9), *normed("reduce", width, wide, 1))
            before = width
    fine = keys.flag("finegrained_output", default=True) and multiplier < 1
    last = 1280 if fine else rounded(1280 * multiplier)
    return convolutional((*outer, *normed("conv_1x1", last, before, 1), *classified(keys, last)), last)


def frozen_resnet(keys: Keys) -> tuple[Weights, int]:
    """A ResNet that a detector names as its backbone, its batch norms frozen."""
    inner = keys.mapping("backbone_config")
    if inner.get("hidden_sizes"):
        part = Keys(data=inner, defaults={"embedding_size": 64}, nested=True, path="backbone_config.")
        widths, depths = part.sizes("hidden_sizes"), part.sizes("depths")
        keys.few("depths", depths)
        bottleneck = part.text("layer_type", default="bottleneck") == "bottleneck"
    else:
        name = keys.text("backbone") or str(inner.get("backbone") or "") or "resnet50"
        shape = backbone(name)
        if shape is None:
            raise keys.missing(f"backbone_config (the backbone is only named: {name})")
        widths, depths, bottleneck = tuple(shape["widths"]), tuple(shape["depths"]), bool(shape["bottleneck"])
    stem = conv("stem", (64, keys.size("num_channels", default=3)), 49, bias=False)
    return (*stem, *resnet_stages(widths, depths, stem=64, bottleneck=bottleneck, frozen=True)), widths[-1]


def detr(keys: Keys) -> Draft:
    """DETR and Table Transformer: a ResNet, a transformer over its last stage, queries, two heads."""
    keys.need(("d_model",), ("encoder_layers",), ("decoder_layers",))
    hidden = keys.size("d_model")
    sides = []
    for name in ("encoder", "decoder"):
        count = keys.size(f"{name}_attention_heads", least=1)
        heads = Heads(hidden=hidden, query=count, kv=count, dim=divide(keys, hidden, count, "d_model"))
        sides.append(Side(count=keys.layers(f"{name}_layers"), heads=heads, ffn=keys.size(f"{name}_ffn_dim")))
    seen, width = frozen_resnet(keys)
    pre = keys.text("model_type") == "table-transformer"
    outer = (
        *seen,
        *conv("input_projection", (hidden, width), 1),
        table("query_position_embeddings", keys.size("num_queries", default=100), hidden),
        *norm("decoder.layernorm", hidden, "layer"),
        *(norm("encoder.layernorm", hidden, "layer") if pre else ()),
        *_detection_heads(keys, hidden),
    )
    layers = (*encoder_side(sides[0]).layers, *_looking(sides[1]))
    return Draft(kind="cnn", layers=layers, outer=outer, hidden_size=hidden)


def _looking(side: Side) -> tuple[Layer, ...]:
    return tuple(replace(layer, attention=replace(layer.attention, causal=False)) for layer in decoder_side(side))


def _detection_heads(keys: Keys, hidden: int) -> Weights:
    if keys.head.endswith("Model"):
        return ()
    return (
        *matrix("class_labels_classifier", (keys.labels + 1, hidden), "head", bias=True),
        *(matrix("bbox_predictor", (hidden, hidden), "other", bias=True) * 2),
        *matrix("bbox_predictor.out", (4, hidden), "head", bias=True),
    )


def segformer(keys: Keys) -> Draft:
    """SegFormer: four stages of attention over reduced keys, MLPs with a depthwise convolution."""
    widths, depths = keys.sizes("hidden_sizes"), keys.sizes("depths")
    _same_length(keys, widths, depths)
    count = len(widths)
    heads = keys.sizes("num_attention_heads", count=count)
    reduces, patches = keys.sizes("sr_ratios", count=count), keys.sizes("patch_sizes", count=count)
    ratios = keys.numbers("mlp_ratios") or (4.0,) * count
    before = keys.size("num_channels", default=3)
    outer: Weights = ()
    layers: list[Layer] = []
    for index, width in enumerate(widths):
        outer += (
            *conv("patch_embeddings", (width, before), patches[index] ** 2),
            *norm("patch_embeddings.norm", width, "layer"),
            *norm("layer_norm", width, "layer"),
        )
        shape = Heads(
            hidden=width, query=heads[index], kv=heads[index], dim=divide(keys, width, heads[index], "hidden_sizes")
        )
        inner = int(width * ratios[index])
        reduction: Weights = ()
        if reduces[index] > 1:
            reduction = (*conv("sr", (width, width), reduces[index] ** 2), *norm("sr.norm", width, "layer"))
        block = (
            *attention_weights(shape, Projections(bias="qkvo", prefix="attention")),
            *reduction,
            *matrix("mlp.fc1", (inner, width), "mlp", bias=True),
            *conv("mlp.dwconv", (inner, 1), 9, part="mlp"),
            *matrix("mlp.fc2", (width, inner), "mlp", bias=True),
            *norm("layernorm_before", width, "layer"),
            *norm("layernorm_after", width, "layer"),
        )
        layers += stack(depths[index], block, shape.attention(causal=False))
        before = width
    return Draft(
        kind="vision", layers=tuple(layers), outer=(*outer, *_segformer_head(keys, widths)), hidden_size=widths[-1]
    )


def _segformer_head(keys: Keys, widths: Sequence[int]) -> Weights:
    if keys.head.endswith("ForImageClassification"):
        return matrix("classifier", (keys.labels, widths[-1]), "head", bias=True)
    if not keys.head.endswith("ForSemanticSegmentation"):
        return ()
    hidden = keys.size("decoder_hidden_size", default=256)
    projected = tuple(weight for width in widths for weight in matrix("linear_c", (hidden, width), "other", bias=True))
    return (
        *projected,
        *normed("linear_fuse", hidden, hidden * len(widths), 1),
        *conv("classifier", (keys.labels, hidden), 1, part="head"),
    )


READERS = {
    "resnet": resnet,
    "regnet": regnet,
    "convnext": convnext,
    "convnextv2": convnext,
    "efficientnet": efficientnet,
    "mobilenet_v1": mobilenet_v1,
    "mobilenet_v2": mobilenet_v2,
    "detr": detr,
    "table-transformer": detr,
    "segformer": segformer,
}
