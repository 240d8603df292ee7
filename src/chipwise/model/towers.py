"""Vision transformers: patches in, layers that look both ways, norms around. Families name the variations."""

from __future__ import annotations

from dataclasses import dataclass, field

from chipwise.model import keys as k
from chipwise.model.blocks import (
    EncoderStyle,
    Heads,
    Weights,
    conv,
    encoder_layers,
    matrix,
    norm,
    table,
    vector,
)
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys, divide

VISION_LAYERS = ("num_hidden_layers", "depth", "num_layers", "layers")
VISION_WIDTH = ("hidden_size", "embed_dim", "width")


@dataclass(frozen=True, slots=True, kw_only=True)
class Vit:
    """A vision transformer: what is in front of its layers, in them, and behind."""

    style: EncoderStyle = field(default_factory=EncoderStyle)
    patch_bias: bool = True
    class_tokens: int = 1
    more_tokens: int = 0
    positions: bool = True
    pre_norm: bool = False
    post_norm: bool = True
    frames: int = 1
    as_linear: bool = False
    extra: Weights = ()


VIT = Vit()


def sides(keys: Keys, name: str, default: int) -> tuple[int, int]:
    """Height and width where a config gives one number for both or a list of two."""
    value = keys.raw(name)
    if isinstance(value, list | tuple) and len(value) >= 2:
        pair = keys.sizes(name)
        return pair[0], pair[1]
    if isinstance(value, list | tuple) and value:
        value = keys.sizes(name)[0]
        return value, value
    size = keys.size(name, default=default)
    return size, size


def patch_count(keys: Keys) -> int:
    """Patches of an image: (height / patch) * (width / patch)."""
    height, width = sides(keys, "image_size", 224)
    patch_h, patch_w = sides(keys, "patch_size", 16)
    return (height // max(patch_h, 1)) * (width // max(patch_w, 1))


def vision_heads(keys: Keys, hidden: int) -> Heads:
    """The attention shape of a tower: as many KV heads as heads unless said."""
    heads = keys.size("num_attention_heads", "num_heads", "attention_heads", least=1)
    dim = keys.maybe("head_dim") or divide(keys, hidden, heads, "hidden_size")
    return Heads(hidden=hidden, query=heads, kv=keys.size("num_key_value_heads", default=heads), dim=dim)


def width_of(keys: Keys, hidden: int) -> int:
    """The MLP width: stated, or a ratio of the hidden size."""
    stated = keys.maybe("intermediate_size", "mlp_dim", "ffn_dim")
    return stated if stated is not None else int(hidden * keys.number("mlp_ratio", default=4.0))


def vision(keys: Keys, shape: Vit = VIT) -> Draft:
    """A vision transformer by its common keys."""
    keys.need(VISION_WIDTH, VISION_LAYERS)
    hidden = keys.size(*VISION_WIDTH, least=1)
    heads = vision_heads(keys, hidden)
    layers = encoder_layers(keys.layers(*VISION_LAYERS), heads, width_of(keys, hidden), shape.style)
    return Draft(
        kind="vision", layers=layers, outer=(*embeddings(keys, hidden, shape), *shape.extra), hidden_size=hidden
    )


def embeddings(keys: Keys, hidden: int, shape: Vit) -> Weights:
    """Patch projection, tokens, positions, and the norms before and after the layers."""
    channels = keys.size("num_channels", "in_channels", "in_chans", default=3)
    patch_h, patch_w = sides(keys, "patch_size", 16)
    kernel = patch_h * patch_w * shape.frames
    if shape.as_linear:
        patches = matrix("embeddings.patch_embedding", (hidden, channels * kernel), "other", bias=shape.patch_bias)
    else:
        patches = conv("embeddings.patch_embedding", (hidden, channels), kernel, bias=shape.patch_bias)
    tokens = shape.class_tokens + shape.more_tokens
    kind = shape.style.norm
    rows = keys.maybe("num_patches") or patch_count(keys)
    return (
        *patches,
        *((vector("embeddings.tokens", tokens * hidden, "embedding"),) if tokens else ()),
        *((table("embeddings.positions", rows + shape.class_tokens, hidden),) if shape.positions else ()),
        *(norm("pre_layernorm", hidden, kind) if shape.pre_norm else ()),
        *(norm("post_layernorm", hidden, kind) if shape.post_norm else ()),
    )


def attention_pool(hidden: int, width: int) -> Weights:
    """SigLIP's pooling head: a probe that attends to all patches, and an MLP."""
    return (
        vector("head.probe", hidden, "other"),
        *matrix("head.attention.in_proj", (3 * hidden, hidden), "other", bias=True),
        *matrix("head.attention.out_proj", (hidden, hidden), "other", bias=True),
        *norm("head.layernorm", hidden, "layer"),
        *matrix("head.mlp.fc1", (width, hidden), "other", bias=True),
        *matrix("head.mlp.fc2", (hidden, width), "other", bias=True),
    )


def clip_text(keys: Keys, *, head: bool, final: Weights = ()) -> Draft:
    """CLIP's and SigLIP's text tower: a small transformer with learned positions.

    CLIP masks the future, yet embeds in one pass, so that nothing is cached.
    """
    keys.need(k.HIDDEN, k.LAYERS, k.HEADS, k.VOCAB)
    hidden = keys.size(*k.HIDDEN, least=1)
    heads = vision_heads(keys, hidden)
    layers = encoder_layers(keys.layers(), heads, width_of(keys, hidden))
    vocab = keys.size(*k.VOCAB)
    positions = keys.size(*k.CONTEXT)
    projection = keys.size("projection_size", default=hidden) if keys.has("projection_size") else hidden
    outer = (
        table("embeddings.token_embedding", vocab, hidden, units=vocab),
        table("embeddings.position_embedding", positions, hidden),
        *norm("final_layer_norm", hidden, "layer"),
        *(matrix("head", (projection, hidden), "head", bias=True) if head else ()),
        *final,
    )
    return Draft(
        kind="encoder",
        layers=layers,
        outer=outer,
        hidden_size=hidden,
        vocab_size=vocab,
        max_context_tokens=positions,
    )
