"""Text to sound: a language model that answers in tokens of sound, and the head that turns each into a frame."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.perf.other.encoders import lacking
from chipwise.perf.other.facts import speech_of
from chipwise.perf.other.layers import attended, layer_stack, multiplied, widest_bytes
from chipwise.perf.other.passes import ELEMENT_BYTES, Forward, Item, Passes

if TYPE_CHECKING:
    from chipwise.model import ModelSpec


def speech_passes(model: ModelSpec, item: Item) -> Passes:
    """`item.audio_s` seconds of speech from `item.tokens` tokens of text: the prompt once, then token by token.

    The whole of the sound is one answer: the first of it is heard earlier. To train, all its tokens go
    through at once, and the head sees each at one level of noise.

    Raises:
        KnowledgeError: nobody says how many tokens a second of its speech is.
    """
    speech = speech_of(model.model_type)
    if speech is None or item.audio_s is None or not model.layers:
        why = f"no source that was read says how {model.model_type} turns tokens into sound"
        raise lacking(model, "how many tokens a second of speech is", why)
    spoken, text = item.audio_s * speech.tokens_per_s, item.tokens or 0.0
    prompt = layer_stack("prompt", model.layers, tokens=text, sequences=item.batch)
    head = Forward(name="head")
    for tower in model.towers:
        for weight in tower.weights if tower.name == speech.head else ():
            head = head.plus(multiplied(weight, rows=item.batch * (spoken if item.taught else 1.0)))
    forwards: tuple[Forward, ...] = (prompt, _speak(model, text + spoken / 2.0, item.batch).times(spoken))
    if item.taught:
        forwards = (layer_stack("decoder", model.layers, tokens=text + spoken, sequences=item.batch),)
    passes = 1.0 if item.taught else spoken * speech.head_passes
    forwards += (head.times(passes),) if head.weights else ()
    return Passes(
        unit=item.unit,
        units=item.audio_s * item.batch,
        forwards=forwards,
        peak_bytes=widest_bytes(model.layers, tokens=max(text, 1.0) * item.batch),
        cache_bytes=_cached_elements(model) * (text + spoken) * ELEMENT_BYTES * item.batch,
        notes=(
            f"{speech.tokens_per_s:g} tokens a second of speech ({speech.source}); the codec is not in time",
            "latency is that of the whole of the sound; its beginning is heard earlier",
        ),
    )


def _cached_elements(model: ModelSpec) -> float:
    """Elements that a token adds to the cache."""
    return float(sum(layer.count * layer.attention.cache_elements_per_token for layer in model.layers))


def _speak(model: ModelSpec, span: float, batch: float) -> Forward:
    """One token of every request after `span` others, read from the cache."""
    one = Forward(name="decoder", graphed=True)
    for layer in model.layers:
        count = float(layer.count)
        for weight in layer.weights:
            one = one.plus(multiplied(weight, rows=batch, count=count))
        one = one.plus(attended(layer.attention, tokens=1.0, seen=span, count=count, sequences=batch))
    return replace(one, moved_bytes=one.moved_bytes + _cached_elements(model) * span * ELEMENT_BYTES * batch)
