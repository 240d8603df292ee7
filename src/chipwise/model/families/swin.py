"""Swin Transformer 1 and 2: windows of attention that shift, merged by stages."""

from __future__ import annotations

from chipwise.model.blocks import (
    Heads,
    Projections,
    Weights,
    attention_weights,
    conv,
    matrix,
    mlp,
    norm,
    norms,
    table,
    vector,
)
from chipwise.model.draft import Draft, stack
from chipwise.model.keys import Keys, divide, side_by_side
from chipwise.model.spec import Layer
from chipwise.model.towers import sides


def swin(keys: Keys) -> Draft:
    """Swin: relative position tables (1) or a small network for them and a scale for each head (2)."""
    keys.need(("embed_dim",), ("depths",), ("num_heads",))
    second = keys.text("model_type") == "swinv2"
    width, depths = keys.size("embed_dim"), keys.sizes("depths")
    heads = keys.sizes("num_heads", count=len(depths))
    ratio = keys.number("mlp_ratio", default=4.0)
    outer = _patches(keys, width)
    layers: list[Layer] = []
    for index, (depth, count) in enumerate(side_by_side(keys, "num_heads", depths, heads)):
        shape = Heads(hidden=width, query=count, kv=count, dim=divide(keys, width, count, "embed_dim"))
        block = (
            *attention_weights(shape, Projections(bias=_bias(keys, second=second), prefix="attention")),
            *_positions(keys, count, second=second),
            *mlp(width, int(width * ratio), gated=False, bias=True),
            *norms(("layernorm_before", "layernorm_after"), width, "layer"),
        )
        layers += stack(depth, block, shape.attention(causal=False))
        if index < len(depths) - 1:
            outer += matrix("downsample.reduction", (2 * width, 4 * width), "other")
            outer += norm("downsample.norm", 2 * width if second else 4 * width, "layer")
            width *= 2
    if keys.text("model_type") != "donut-swin" or keys.head.endswith("Classification"):
        outer += norm("layernorm", width, "layer")
    if keys.head.endswith("ForImageClassification"):
        outer += matrix("classifier", (keys.labels, width), "head", bias=True)
    return Draft(kind="vision", layers=tuple(layers), outer=outer, hidden_size=width)


def _patches(keys: Keys, width: int) -> Weights:
    """The patches, their norm, and a table of positions where they are absolute."""
    patch = keys.size("patch_size", default=4, least=1)
    out = (
        *conv("patch_embeddings", (width, keys.size("num_channels", default=3)), patch**2),
        *norm("embeddings.norm", width, "layer"),
    )
    if not keys.flag("use_absolute_embeddings"):
        return out
    rows, columns = sides(keys, "image_size", 224)
    return (*out, table("position_embeddings", -(-rows // patch) * -(-columns // patch), width))


def _bias(keys: Keys, *, second: bool) -> str:
    if not keys.flag("qkv_bias", default=True):
        return "o"
    return "qvo" if second else "qkvo"


def _positions(keys: Keys, heads: int, *, second: bool) -> Weights:
    if second:
        return (
            vector("logit_scale", heads, "attention"),
            *matrix("continuous_position_bias_mlp.0", (512, 2), "other", bias=True),
            *matrix("continuous_position_bias_mlp.2", (heads, 512), "other"),
        )
    window = keys.size("window_size", default=7)
    return (table("relative_position_bias_table", (2 * window - 1) ** 2, heads, part="attention"),)


READERS = {"swin": swin, "swinv2": swin, "donut-swin": swin}
