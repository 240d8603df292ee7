"""The inputs of the page: which flags of `plan` it shows, in which groups, and the steps of their sliders.

No default stands here: what is left empty takes the preset's value, which the answer then shows in its place.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from chipwise.interfaces.verbs import command_of
from chipwise.units import show_count

_TWOS = tuple(str(2**power) for power in range(14))
_CONTEXTS = ("1k", "2k", "4k", "8k", "16k", "32k", "64k", "128k", "256k", "512k", "1M")
_LENGTHS = ("64", "128", "256", "512", "1k", "2k", "4k", "8k", "16k", "32k", "64k")
_STEPS: Mapping[str, tuple[str, ...]] = {
    "users": _TWOS,
    "context": _CONTEXTS,
    "isl": _LENGTHS,
    "osl": _LENGTHS,
    "ttft-p99": ("100ms", "200ms", "300ms", "500ms", "1s", "2s", "5s", "10s"),
    "tpot-p99": ("10ms", "15ms", "20ms", "30ms", "40ms", "60ms", "100ms", "200ms"),
    "rate": ("0.1", "0.5", "1", "2", "5", "10", "20", "50", "100", "200"),
    "prefix-hit": ("0", "0.25", "0.5", "0.75", "0.9"),
    "throughput": ("100", "500", "1k", "5k", "10k", "50k", "100k"),
    "tokens": ("1M", "10M", "100M", "1B", "10B", "100B", "1T", "15T"),
    "deadline": ("1d", "3d", "7d", "14d", "30d", "60d", "90d"),
    "budget": ("1k", "5k", "10k", "50k", "100k", "500k", "1M", "10M"),
}
"""Where a slider stops; the field beside it takes any value."""
_GROUPS: Mapping[str, tuple[str, ...]] = {
    "What it must do": ("for", "goal"),
    "How much": ("users", "rate", "throughput", "isl", "osl", "context", "prefix-hit"),
    "How fast it must be": ("ttft-p99", "tpot-p99"),
    "A training run": ("tokens", "deadline", "budget"),
    "What may be bought": ("region", "vendor", "purchase", "min-precision", "isolation", "ha"),
}
_GOALS = ("latency", "latency,cost", "cost", "concurrency,cost", "quality,cost", "time-to-train", "training-cost")
_SERVED = {
    "for": "preset",
    "goal": "goals",
    "ttft-p99": "ttft_p99_s",
    "tpot-p99": "tpot_p99_s",
    "rate": "rate_per_s",
    "prefix-hit": "prefix_hit_fraction",
    "throughput": "throughput_tokens_per_s",
    "deadline": "deadline_s",
    "budget": "budget_usd",
}
"""Names under which the answer's workload holds what a flag sets."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One input: its flag, label, help, what it holds, what it takes when empty, its choices or steps."""

    name: str
    label: str
    help: str
    value: str
    otherwise: str
    choices: tuple[str, ...]
    steps: tuple[str, ...]


def groups(said: Mapping[str, Any], workload: Mapping[str, Any] | None) -> Iterator[tuple[str, list[Field]]]:
    """Every group with its fields, filled with what was said and, where nothing was, what the answer used."""
    flags = {flag.name.lstrip("-"): flag for flag in command_of("plan").flags}
    for title, names in _GROUPS.items():
        yield title, [_field(flags[name], name, said, workload or {}) for name in names]


_COMPARED = ("users", "context", "ttft-p99", "tpot-p99", "vendor", "purchase", "region", "min-precision")
"""What is most often changed between two scenarios."""


def compared(said: Mapping[str, Any], workload: Mapping[str, Any] | None) -> list[Field]:
    """The fields in which two scenarios are compared."""
    flags = {flag.name.lstrip("-"): flag for flag in command_of("plan").flags}
    fields = (_field(flags[name], name, said, workload or {}) for name in _COMPARED)
    return [dataclasses.replace(one, steps=()) for one in fields]


def _field(flag: Any, name: str, said: Mapping[str, Any], workload: Mapping[str, Any]) -> Field:
    value = said.get(name, "")
    used = workload.get(_SERVED.get(name, name), workload.get(name.replace("-", "_"), {}))
    return Field(
        name=name,
        label=_LABELS.get(name, name),
        help=flag.help,
        value=",".join(value) if isinstance(value, list) else str(value),
        otherwise=_shown(name, used.get("value") if isinstance(used, Mapping) else None),
        choices=_choices(name, flag.metavar),
        steps=_STEPS.get(name, ()),
    )


def _shown(name: str, value: Any) -> str:
    """A value as its field would take it; seconds where it is a time."""
    if value is None:
        return ""
    if isinstance(value, list):
        return ",".join(map(str, value))
    if name in _UNITS and 0 < value < 1:
        return f"{1000 * value:g}ms"
    if name not in _UNITS and isinstance(value, int | float) and value >= _LONG:
        return show_count(value)
    return f"{value:g}{_UNITS.get(name, '')}" if isinstance(value, int | float) else str(value)


def _choices(name: str, metavar: str) -> tuple[str, ...]:
    if name == "for":
        return tuple(one for one in _presets())
    if name == "goal":
        return _GOALS
    parts = tuple(metavar.split("|"))
    return parts if len(parts) > 1 else ()


@cache
def _presets() -> tuple[str, ...]:
    from chipwise.workload import presets

    return tuple(one.name for one in presets())


_LONG = 1e6
"""From here on a count is written with its letter: 50.0M."""
_UNITS = {"ttft-p99": "s", "tpot-p99": "s", "deadline": "s"}
_LABELS = {
    "for": "Work",
    "goal": "Goal, then",
    "users": "Users at once",
    "rate": "Requests a second",
    "throughput": "Output tokens a second",
    "isl": "Prompt, tokens",
    "osl": "Answer, tokens",
    "context": "Context, tokens",
    "prefix-hit": "Prompt in the cache, share",
    "ttft-p99": "P99 time to first token",
    "tpot-p99": "P99 time per token",
    "tokens": "Training tokens",
    "deadline": "Deadline",
    "budget": "Budget, USD",
    "region": "Regions",
    "vendor": "Chips",
    "purchase": "Bought",
    "min-precision": "Weights not below",
    "isolation": "Isolation",
    "ha": "Headroom for failures",
}


def labelled(text: str) -> str:
    """A text that names flags, as somebody reads it who has the inputs before the eyes.

    >>> labelled("--context 262144 is beyond what the model takes; see --quality-floor")
    'Context 262144 is beyond what the model takes; see --quality-floor'
    """
    return re.sub(r"--([a-z0-9-]+)", lambda found: _LABELS.get(found[1], found[0]).partition(",")[0], text)
