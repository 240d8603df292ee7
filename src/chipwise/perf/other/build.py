"""Which model becomes which passes: by what is asked of it, then by what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.perf.other.audio import audio_passes
from chipwise.perf.other.diffusion import diffusion_passes
from chipwise.perf.other.encoders import image_passes, lacking, text_passes
from chipwise.perf.other.rows import recommender_passes, tabular_passes
from chipwise.perf.other.speech import speech_passes

if TYPE_CHECKING:
    from chipwise.model import ModelSpec
    from chipwise.perf.other.passes import Item, Passes

_BUILDERS = {
    "embed": text_passes,
    "classify": text_passes,
    "rerank": text_passes,
    "vision": image_passes,
    "diffusion": diffusion_passes,
    "transcribe": audio_passes,
    "recommend": recommender_passes,
    "tabular": tabular_passes,
    "tts": speech_passes,
}


def passes_of(model: ModelSpec, item: Item) -> Passes:
    """What one request of that preset makes a device do.

    Raises:
        KnowledgeError: the model's file, or what is known of its pipeline, does not say enough; names what is missing.
    """
    if item.preset not in _BUILDERS:
        raise lacking(model, f"what a request of {item.preset} is", "no passes are written for that preset")
    return _BUILDERS[item.preset](model, item)
