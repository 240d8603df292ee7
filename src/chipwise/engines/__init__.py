"""Takes an engine, a version, plain words for model, chip and format; gives defaults, limits, flags, support.

Read `profile.py` first, then `defaults.py`, `support.py` and `flags.py`. An engine is what runs a model:
vLLM, SGLang, TensorRT-LLM, TGI, vLLM on Neuron, or a trainer.
"""

from chipwise.engines.caches import default_kv_format
from chipwise.engines.defaults import DeviceFacts, EngineDefaults, engine_defaults
from chipwise.engines.disaggregation import Disaggregation, disaggregation
from chipwise.engines.flags import EngineFlags, command_arguments, engine_flags
from chipwise.engines.neuron import NeuronSupport, neuron_sdk, neuron_support
from chipwise.engines.profile import (
    EngineFact,
    EngineProfile,
    SpareLayers,
    engine_names,
    kv_formats,
    load_engine,
    spare_layers,
)
from chipwise.engines.support import Support, SupportQuestion, supports
from chipwise.engines.versions import Version, parse_version

__all__ = [
    "DeviceFacts",
    "Disaggregation",
    "EngineDefaults",
    "EngineFact",
    "EngineFlags",
    "EngineProfile",
    "NeuronSupport",
    "SpareLayers",
    "Support",
    "SupportQuestion",
    "Version",
    "command_arguments",
    "default_kv_format",
    "disaggregation",
    "engine_defaults",
    "engine_flags",
    "engine_names",
    "kv_formats",
    "load_engine",
    "neuron_sdk",
    "neuron_support",
    "parse_version",
    "spare_layers",
    "supports",
]
