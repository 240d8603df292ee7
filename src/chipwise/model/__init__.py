"""Takes a name, a config.json or a checkpoint's header; gives a `ModelSpec`. Read `spec.py` first, then `load.py`."""

from chipwise.model.load import load_model
from chipwise.model.registry import Known, all_known
from chipwise.model.spec import Attention, Experts, Layer, ModelSpec, Quantisation, Tower, Weight
from chipwise.model.stored import stored_format

__all__ = [
    "Attention",
    "Experts",
    "Known",
    "Layer",
    "ModelSpec",
    "Quantisation",
    "Tower",
    "Weight",
    "all_known",
    "load_model",
    "stored_format",
]
