"""Texts and images through an encoder: every token through every layer once, nothing generated."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.errors import KnowledgeError
from chipwise.perf.other.facts import convolutions_of, training_fact
from chipwise.perf.other.layers import layer_stack, multiplied, widest_bytes
from chipwise.perf.other.passes import ELEMENT_BYTES, Forward, Item, Passes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chipwise.model import ModelSpec
    from chipwise.model.spec import Layer, Weight
    from chipwise.perf.other.facts import Convolutions

CHANNELS = 3
"""Colours of an image, a byte each; what compression saves on the way is not counted."""
_PATCHES = frozenset({"embeddings.patch_embedding", "patch_embed"})
_POSITIONS = frozenset({"embeddings.positions", "pos_embed"})
_ON_PATCHES = ("neck.",)
"""Matrices outside of the layers that every patch goes through, beside the patch embedding itself."""


def lacking(model: ModelSpec, what: str, why: str) -> KnowledgeError:
    """The refusal of a model whose passes cannot be counted."""
    return KnowledgeError(
        f"{model.name}: nothing read says {what}",
        why=why,
        fix="give the model's full config; nothing is guessed (chipwise model MODEL shows what was read)",
    )


def text_passes(model: ModelSpec, item: Item) -> Passes:
    """Texts of `item.tokens` tokens: the main stack, then poolers and heads once a text.

    A head over the vocabulary is left out: an encoder's answer is a vector or a few scores.

    Raises:
        KnowledgeError: the model has no stack of layers.
    """
    if not model.layers or item.tokens is None:
        raise lacking(model, "what a text costs", "a text encoder is a stack of layers, and none was read")
    one = layer_stack("encoder", model.layers, tokens=item.tokens, sequences=item.batch)
    for weight in model.outer:
        if weight.gemm and weight.out_features < model.vocab_size and "visual" not in weight.name:
            one = one.plus(multiplied(weight, rows=item.batch))
    peak = widest_bytes(model.layers, tokens=item.tokens * item.batch)
    return Passes(unit=item.unit, units=item.batch, forwards=(one,), peak_bytes=peak)


def image_passes(model: ModelSpec, item: Item) -> Passes:
    """Images through a vision transformer: patches and class tokens through its layers, then its heads.

    Raises:
        KnowledgeError: the model has no stack of layers over patches, or its patch size does not follow from it.
    """
    published = convolutions_of(model)
    if published is not None and item.image_px is not None:
        return _published_passes(model, item, published)
    layers, loose = _vision_part(model)
    patch_px = _patch_px(loose)
    if not layers or patch_px is None or item.image_px is None:
        why = "neither layers over a patch embedding were read, nor the strides of convolutions, nor published FLOPs"
        raise lacking(model, "what an image costs", why)
    if _shrinks(layers):
        raise lacking(model, "the resolution of its stages", "attention in windows shrinks the image between stages")
    patches = max(item.image_px // patch_px, 1.0) ** 2
    tokens = patches + _class_tokens(loose, layers)
    one = layer_stack("image encoder", layers, tokens=tokens, sequences=item.batch)
    for weight in loose:
        spread = weight.name in _PATCHES or weight.name.startswith(_ON_PATCHES)
        rows = item.batch * (patches if spread else 1.0)
        one = one.plus(multiplied(weight, rows=rows))
    peak = widest_bytes(layers, tokens=tokens * item.batch)
    sent = item.batch * CHANNELS * item.image_px**2
    return Passes(unit=item.unit, units=item.batch, forwards=(one,), peak_bytes=peak, input_bytes=sent)


def _published_passes(model: ModelSpec, item: Item, published: Convolutions) -> Passes:
    """A convolutional network by its published FLOPs, which grow with the pixels: `flops * (edge / edge)^2`.

    The widest map has at most as many places as the image has pixels, of the first convolution's channels. Served,
    norms are folded into their convolutions; to train, every map goes through one and an activation.
    """
    edge_px = float(item.image_px or 0.0)
    grown = (edge_px / published.image_px) ** 2
    found = [weight for weight in model.outer if weight.gemm]
    one = Forward(
        name="convolutions",
        gemm_flops=item.batch * published.flops * grown,
        weights=float(sum(weight.params for weight in found)),
        kernels=float(len(found)),
    )
    peak = 2.0 * ELEMENT_BYTES * item.batch * edge_px**2 * found[0].out_features
    source = f"FLOPs as published ({published.source})"
    notes: tuple[str, ...] = (f"{source}; what the maps move is not counted",)
    if item.taught:
        one = _taught(one, maps=item.batch * published.map_elements * grown)
        maps = () if published.counted else ("its maps are taken as many a FLOP as ResNet-50's: nobody counted them",)
        notes = (source, *maps)
    sent = item.batch * CHANNELS * edge_px**2
    return Passes(unit=item.unit, units=item.batch, forwards=(one,), peak_bytes=peak, input_bytes=sent, notes=notes)


def _taught(one: Forward, *, maps: float) -> Forward:
    """The pass with what its maps move: each comes out of one convolution and goes into the next."""
    return replace(
        one,
        moved_bytes=2.0 * ELEMENT_BYTES * maps,
        elementwise_bytes=training_fact("map_accesses") * ELEMENT_BYTES * maps,
        kernels=one.kernels * training_fact("map_kernels"),
    )


def native_image_px(model: ModelSpec) -> int | None:
    """Edge of the images that a model was trained on; None where neither positions nor publications say it.

    `patch * sqrt(positions - class tokens)`; where the places are no square, a square of as many whole ones.
    """
    published = convolutions_of(model)
    if published is not None:
        return round(published.image_px)
    layers, loose = _vision_part(model)
    patch_px = _patch_px(loose)
    rows = next((weight.out_features for weight in loose if weight.name in _POSITIONS), None)
    if patch_px is None or rows is None or not layers:
        return None
    edges = (math.isqrt(count) for count in (rows, rows - 1, rows - 2) if count > 0 and math.isqrt(count) ** 2 == count)
    return next(edges, math.isqrt(rows)) * patch_px


def _vision_part(model: ModelSpec) -> tuple[tuple[Layer, ...], tuple[Weight, ...]]:
    """The part that sees: the model itself, or the tower that has patches."""
    if any(weight.name in _PATCHES for weight in model.outer):
        return model.layers, model.outer
    for tower in model.towers:
        if any(weight.name in _PATCHES for weight in tower.weights):
            shown = tuple(weight for weight in model.outer if "visual" in weight.name)
            return tower.layers, (*tower.weights, *shown)
    return (), ()


def _shrinks(layers: Iterable[Layer]) -> bool:
    """Whether windows go with stages that merge patches: the width grows from one to the next."""
    windowed = [layer for layer in layers if layer.attention.window_tokens]
    widths = {next(weight.in_features for weight in layer.weights if weight.gemm) for layer in layers}
    return bool(windowed) and len(widths) > 1


def _patch_px(loose: Iterable[Weight]) -> int | None:
    taps = next((weight.in_features / CHANNELS for weight in loose if weight.name in _PATCHES), None)
    edge = math.isqrt(round(taps)) if taps else 0
    return edge if taps and edge * edge == taps else None


def _class_tokens(loose: Iterable[Weight], layers: tuple[Layer, ...]) -> float:
    hidden = next(weight.in_features for weight in layers[0].weights if weight.gemm)
    held = next((weight.out_features for weight in loose if weight.name == "embeddings.tokens"), 0)
    return float(held // hidden)
