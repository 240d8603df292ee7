"""Qwen VL: 2, 2.5, 3 and 3.5: a tower whose patches span two frames, merged four to one into the language model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from chipwise.model.blocks import EncoderStyle, Heads, Weights, conv, encoder_layers, matrix, norm, table
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys, divide
from chipwise.model.nested import part_keys, text_part
from chipwise.model.spec import Tower

_PLAIN = EncoderStyle()


def _merged(keys: Keys) -> int:
    return keys.size("spatial_merge_size", default=2) ** 2


def _heads(keys: Keys, hidden: int) -> Heads:
    heads = keys.size("num_heads", least=1)
    return Heads(hidden=hidden, query=heads, kv=heads, dim=divide(keys, hidden, heads, "hidden_size"))


def _patches(keys: Keys, hidden: int, *, bias: bool) -> Weights:
    channels = keys.size("in_channels", "in_chans", default=3)
    taps = keys.size("temporal_patch_size", default=2) * keys.size("patch_size", "spatial_patch_size") ** 2
    return conv("patch_embed.proj", (hidden, channels), taps, bias=bias)


def _merger(inner: int, out: int, first: Weights) -> Weights:
    return (
        *first,
        *matrix("merger.mlp.0", (inner, inner), "other", bias=True),
        *matrix("merger.mlp.2", (out, inner), "other", bias=True),
    )


def vision2(keys: Keys) -> Tower:
    """Qwen 2 VL: `embed_dim` wide, `hidden_size` is the language model's."""
    hidden = keys.size("embed_dim")
    width = int(hidden * keys.number("mlp_ratio", default=4))
    layers = encoder_layers(keys.layers("depth"), _heads(keys, hidden), width)
    merger = _merger(hidden * _merged(keys), keys.size("hidden_size"), norm("merger.ln_q", hidden, "layer"))
    return Tower(name="visual", layers=layers, weights=(*_patches(keys, hidden, bias=False), *merger))


def vision2_5(keys: Keys) -> Tower:
    """Qwen 2.5 VL: RMS norms and a gated MLP with biases."""
    hidden = keys.size("hidden_size")
    style = replace(_PLAIN, norm="rms", gated=True)
    layers = encoder_layers(keys.layers("depth"), _heads(keys, hidden), keys.size("intermediate_size"), style)
    merger = _merger(hidden * _merged(keys), keys.size("out_hidden_size"), norm("merger.ln_q", hidden))
    return Tower(name="visual", layers=layers, weights=(*_patches(keys, hidden, bias=False), *merger))


def vision3(keys: Keys) -> Tower:
    """Qwen 3 VL and 3.5: learned positions, and a merger for each of `deepstack_visual_indexes`."""
    hidden, out = keys.size("hidden_size"), keys.size("out_hidden_size")
    inner = hidden * _merged(keys)
    layers = encoder_layers(keys.layers("depth"), _heads(keys, hidden), keys.size("intermediate_size"))
    deep = len(keys.items("deepstack_visual_indexes"))
    stacked: Weights = tuple(
        weight for _ in range(deep) for weight in _merger(inner, out, norm("merger.norm", inner, "layer"))
    )
    return Tower(
        name="visual",
        layers=layers,
        weights=(
            *_patches(keys, hidden, bias=True),
            table("pos_embed", keys.size("num_position_embeddings", default=2304), hidden),
            *_merger(inner, out, norm("merger.norm", hidden, "layer")),
            *stacked,
        ),
    )


def _both(keys: Keys, text: str, vision: str, tower: Callable[[Keys], Tower]) -> Draft:
    seen = tower(part_keys(keys, "vision_config", default=vision))
    return text_part(keys, default=text).beside(seen, kind="vision-language")


def qwen2_vl(keys: Keys) -> Draft:
    """Qwen 2 VL."""
    return _both(keys, "qwen2_vl_text", "qwen2_vl_vision", vision2)


def qwen2_5_vl(keys: Keys) -> Draft:
    """Qwen 2.5 VL."""
    return _both(keys, "qwen2_5_vl_text", "qwen2_5_vl_vision", vision2_5)


def qwen3_vl(keys: Keys) -> Draft:
    """Qwen 3 VL, dense."""
    return _both(keys, "qwen3_vl_text", "qwen3_vl_vision", vision3)


def qwen3_vl_moe(keys: Keys) -> Draft:
    """Qwen 3 VL, MoE."""
    return _both(keys, "qwen3_vl_moe_text", "qwen3_vl_moe_vision", vision3)


def _no_deepstack(keys: Keys) -> Tower:
    return vision3(keys.also(deepstack_visual_indexes=[]))


def qwen3_5(keys: Keys) -> Draft:
    """Qwen 3.5, dense: Qwen 3 VL's tower without deep stacking."""
    return _both(keys, "qwen3_5_text", "qwen3_5_vision", _no_deepstack)


def qwen3_5_moe(keys: Keys) -> Draft:
    """Qwen 3.5, MoE."""
    return _both(keys, "qwen3_5_moe_text", "qwen3_5_moe_vision", _no_deepstack)


def as_draft(tower: Callable[[Keys], Tower]) -> Callable[[Keys], Draft]:
    """A tower that stands alone."""

    def read(keys: Keys) -> Draft:
        seen = tower(keys)
        width = keys.size("embed_dim", "hidden_size")
        return Draft(kind="vision", layers=seen.layers, outer=seen.weights, hidden_size=width)

    return read


READERS = {
    "qwen2_vl": qwen2_vl,
    "qwen2_5_vl": qwen2_5_vl,
    "qwen3_vl": qwen3_vl,
    "qwen3_vl_moe": qwen3_vl_moe,
    "qwen3_5": qwen3_5,
    "qwen3_5_moe": qwen3_5_moe,
    "qwen2_vl_vision": as_draft(vision2),
    "qwen2_5_vl_vision": as_draft(vision2_5),
    "qwen2_5_omni_vision_encoder": as_draft(vision2_5),
    "qwen3_vl_vision": as_draft(vision3),
    "qwen3_vl_moe_vision": as_draft(vision3),
    "qwen3_omni_moe_vision_encoder": as_draft(vision3),
    "qwen3_5_vision": as_draft(_no_deepstack),
    "qwen3_5_moe_vision": as_draft(_no_deepstack),
}
