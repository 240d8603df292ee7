"""Which models answer whole, and what they are made for: no stream of tokens, so that no lengths are asked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from chipwise.perf.other.facts import speech_of

if TYPE_CHECKING:
    from chipwise.model import ModelSpec

WHOLE = frozenset({"encoder", "vision", "cnn", "diffusion", "audio", "recommender", "tabular"})
"""Classes of models whose answers come whole."""


def class_of(model: ModelSpec) -> str:
    """The class that chooses a preset: what sees and generates nothing is a vision model, whatever else it reads.

    CLIP pairs a text encoder with an image encoder; neither has a layer that only looks back.
    """
    generates = any(layer.attention.causal for layer in model.layers) or not model.layers
    return "vision" if model.architecture == "vision-language" and not generates else model.architecture


_BY_NAME = (("rerank", re.compile(r"rerank", re.IGNORECASE)), ("embed", re.compile(r"embed", re.IGNORECASE)))
_READS = frozenset({"encoder", "dense-llm", "moe-llm"})
"""Classes of models that may be made to embed, to classify or to rank."""


def made_for(model: ModelSpec) -> str | None:
    """The preset that a model's own parts or its name speak for; None where its class decides.

    What turns tokens into sound speaks; an encoder with a head of one score ranks, with more it classifies; a model
    that reads and is called so embeds or ranks.
    """
    if speech_of(model.model_type) is not None:
        return "tts"
    if model.architecture not in _READS:
        return None
    named = next((preset for preset, word in _BY_NAME if word.search(model.name.rpartition("/")[2])), None)
    if named is not None or model.architecture != "encoder":
        return named
    scores = [weight.out_features for weight in model.outer if weight.part == "head" and "classifier" in weight.name]
    return None if not scores else "rerank" if scores[-1] == 1 else "classify"


def answers_whole(model: ModelSpec) -> bool:
    """Whether a request to the model is answered whole."""
    return class_of(model) in WHOLE or made_for(model) is not None
