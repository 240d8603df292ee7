"""Takes what the user wants (preset, flags, file of lengths); gives a `Workload`, each value with its origin.

Read `types.py` first, then `resolve.py`.
"""

from chipwise.workload.lengths import read_lengths
from chipwise.workload.presets import Goal, Preset, PresetValue, goals, load_preset, parse_goals, presets
from chipwise.workload.request import parse_request, request_keys
from chipwise.workload.resolve import as_json, request_rate_per_s, requests_in_flight, resolve_workload
from chipwise.workload.types import (
    Given,
    LengthTable,
    LoadKind,
    ModelHints,
    Origin,
    OtherWorkload,
    ServingWorkload,
    TrainingWorkload,
    Workload,
    WorkloadRequest,
)

__all__ = [
    "Given",
    "Goal",
    "LengthTable",
    "LoadKind",
    "ModelHints",
    "Origin",
    "OtherWorkload",
    "Preset",
    "PresetValue",
    "ServingWorkload",
    "TrainingWorkload",
    "Workload",
    "WorkloadRequest",
    "as_json",
    "goals",
    "load_preset",
    "parse_goals",
    "parse_request",
    "presets",
    "read_lengths",
    "request_keys",
    "request_rate_per_s",
    "requests_in_flight",
    "resolve_workload",
]
