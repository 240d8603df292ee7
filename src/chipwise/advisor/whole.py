"""Which models answer whole: no stream of tokens, so that no prompt and answer lengths are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


def answers_whole(model: ModelSpec) -> bool:
    """Whether a request to the model is answered whole."""
    return class_of(model) in WHOLE
