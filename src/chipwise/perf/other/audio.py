"""Sound to text or to a label: an encoder over frames, and where it answers in tokens a decoder, token by token."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from chipwise.perf.operators import elementwise_bytes
from chipwise.perf.other.encoders import lacking
from chipwise.perf.other.facts import sound_of
from chipwise.perf.other.layers import attended, hidden_width, layer_stack, multiplied, widest_bytes
from chipwise.perf.other.passes import ELEMENT_BYTES, Forward, Item, Passes
from chipwise.perf.work import OTHER_KERNELS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chipwise.model import ModelSpec
    from chipwise.model.spec import Layer, Weight
    from chipwise.perf.other.facts import Sound

_ONCE_A_WINDOW = ("encoder_attn.k_proj", "encoder_attn.v_proj")
_A_FRAME = ("feature_projection", "pos_conv")
_TOWERS = ("encoder", "audio_tower")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Windows:
    """Sound as the encoder takes it: windows of `frames` frames, `answered` tokens in all."""

    count: float
    frames: float
    answered: float


def audio_passes(model: ModelSpec, item: Item) -> Passes:
    """`item.audio_s` seconds of sound through the encoder, and its answer through the decoder.

    Raises:
        KnowledgeError: nobody says how the model takes sound; it speaks rather than listens.
    """
    sound = sound_of(model.model_type)
    if sound is None or item.audio_s is None:
        raise lacking(
            model, "how it takes sound", f"no source that was read gives frames a second of {model.model_type}"
        )
    windows = _windows(item, sound)
    layers, loose = _encoder(model)
    encode = _encode(layers, loose, windows, item.batch)
    peak = widest_bytes(layers, tokens=windows.frames * windows.count * item.batch)
    forwards: tuple[Forward, ...] = (encode,)
    notes: tuple[str, ...] = ()
    kept = 0.0
    if windows.answered and any(layer.attention.causal for layer in model.layers):
        heard = _prompt_tokens(model, windows)
        if heard and not item.taught:
            sequences = windows.count * item.batch
            forwards += (layer_stack("prompt", model.layers, tokens=heard, sequences=sequences),)
        if item.taught:
            forwards += (_taught(model, windows, item.batch, heard),)
        else:
            forwards += (_decode(model, windows, item.batch, heard),)
            each = _cache_bytes(model, windows, heard, answered=windows.answered / windows.count)
            kept = each * windows.count * item.batch
        notes = (f"{sound.answer_tokens_per_s:g} tokens a second of speech are taken ({sound.kind}: {sound.source})",)
    return Passes(
        unit=item.unit,
        units=item.audio_s * item.batch,
        forwards=forwards,
        peak_bytes=peak,
        cache_bytes=kept,
        notes=notes,
    )


def _windows(item: Item, sound: Sound) -> _Windows:
    seconds = float(item.audio_s or 0.0)
    answered = seconds * sound.answer_tokens_per_s
    if sound.padded_s is None:
        return _Windows(count=1.0, frames=seconds * sound.frames_per_s, answered=answered)
    count = float(math.ceil(seconds / sound.padded_s))
    return _Windows(count=count, frames=sound.padded_s * sound.frames_per_s, answered=answered)


def _encoder(model: ModelSpec) -> tuple[tuple[Layer, ...], tuple[Weight, ...]]:
    tower = next((one for one in model.towers if one.name in _TOWERS), None)
    return (model.layers, model.outer) if tower is None else (tower.layers, tower.weights)


def _encode(layers: Iterable[Layer], loose: Iterable[Weight], windows: _Windows, batch: float) -> Forward:
    """Frames through the layers, and through the convolutions in front of them.

    A convolution makes more places than frames come out behind the strides after it: those places follow from the
    strides of the later ones, of which each halves (the first of wav2vec 2.0 aside, which is small).
    """
    sequences = windows.count * batch
    one = layer_stack("encoder", layers, tokens=windows.frames, sequences=sequences)
    strided = [weight for weight in loose if weight.gemm and _convolves(weight)]
    for place, weight in enumerate(strided):
        rows = windows.frames * 2.0 ** (len(strided) - 1 - place) * sequences
        one = one.plus(multiplied(weight, rows=rows))
    for weight in loose:
        if weight.name.startswith(_A_FRAME):
            one = one.plus(multiplied(weight, rows=windows.frames * sequences))
    return one


def _convolves(weight: Weight) -> bool:
    return weight.name.startswith(("conv1", "conv2", "feature_extractor"))


def _crosses(layer: Layer) -> bool:
    return any(weight.name.startswith("encoder_attn") for weight in layer.weights)


def _prompt_tokens(model: ModelSpec, windows: _Windows) -> float:
    """Tokens that a window is to a language model; none where a decoder looks across at the encoder instead.

    The projector takes several frames at once: its inputs over what the encoder gives.

    Raises:
        KnowledgeError: no projector says how many.
    """
    if any(_crosses(layer) for layer in model.layers):
        return 0.0
    layers, _ = _encoder(model)
    given = next((weight.in_features for layer in layers for weight in layer.weights if weight.gemm), 0)
    projector = next((one for one in model.towers if "projector" in one.name), None)
    taken = next((weight.in_features for weight in projector.weights if weight.gemm), 0) if projector else 0
    if not given or not taken:
        raise lacking(
            model, "how many tokens a second of sound is", "no projector between encoder and decoder was read"
        )
    return windows.frames * given / taken


def _cache_bytes(model: ModelSpec, windows: _Windows, heard: float, *, answered: float) -> float:
    """Keys and values of one window: what was heard, and `answered` tokens."""
    total = 0.0
    for layer in model.layers:
        span = answered + (windows.frames if _crosses(layer) else heard)
        total += layer.count * span * layer.attention.cache_elements_per_token * ELEMENT_BYTES
    return total


def _decode(model: ModelSpec, windows: _Windows, batch: float, heard: float) -> Forward:
    """One token of every window through the decoder; what it reads of its past and of the sound counts as moved."""
    sequences, steps = windows.count * batch, windows.answered / windows.count
    one = Forward(name="decoder", graphed=True)
    for layer in model.layers:
        count = float(layer.count)
        span = steps / 2.0 + (windows.frames if _crosses(layer) else heard)
        for weight in layer.weights:
            if weight.name not in _ONCE_A_WINDOW:
                one = one.plus(multiplied(weight, rows=sequences, count=count))
        one = one.plus(attended(layer.attention, tokens=1.0, seen=span, count=count, sequences=sequences))
    for weight in model.outer:
        one = one.plus(multiplied(weight, rows=sequences))
    cached = _cache_bytes(model, windows, heard, answered=steps / 2.0) * sequences
    return replace(one, moved_bytes=one.moved_bytes + cached).times(steps)


def _taught(model: ModelSpec, windows: _Windows, batch: float, heard: float) -> Forward:
    """All tokens of a known answer at once, behind what was heard; the head makes a choice for each."""
    sequences, tokens = windows.count * batch, heard + windows.answered / windows.count
    one = Forward(name="decoder")
    for layer in model.layers:
        count = float(layer.count)
        for weight in layer.weights:
            rows = windows.frames if weight.name in _ONCE_A_WINDOW else tokens
            one = one.plus(multiplied(weight, rows=rows * sequences, count=count))
        seen = (tokens, windows.frames) if _crosses(layer) else (tokens,)
        for span in seen:
            one = one.plus(attended(layer.attention, tokens=tokens, seen=span, count=count, sequences=sequences))
        moved = float(elementwise_bytes(tokens=tokens * sequences, hidden_size=hidden_width(layer)))
        one = one.plus(Forward(name="decoder", elementwise_bytes=count * moved, kernels=count * (OTHER_KERNELS - 1)))
    for weight in model.outer:
        one = one.plus(multiplied(weight, rows=tokens * sequences))
    return one
