"""What was asked, in words, with where each value comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chipwise.report.document import Pairs, join, line
from chipwise.report.phrases import amount
from chipwise.units import show_count, show_seconds, show_usd

_LABELS = {
    "user": "you asked",
    "preset": "from the preset",
    "model": "from the model",
    "default": "by default",
}
_UNITS = (
    ("usd_per_hour", show_usd),
    ("usd", show_usd),
    ("tokens_per_s", lambda value: f"{amount(value)} tok/s"),
    ("units_per_s", lambda value: f"{amount(value)} a second"),
    ("per_s", lambda value: f"{amount(value)} req/s"),
    ("s", show_seconds),
    ("weeks", lambda value: f"{amount(value)} weeks"),
    ("tokens", lambda value: f"{value:,}" if value < 10_000_000 else show_count(value)),
    ("factor", amount),
    ("fraction", lambda value: f"{value:.0%}"),
)
_TOKENS = ("isl", "osl", "context", "seq_len")
_WORDS = {
    "purpose": "for",
    "preset": "for",
    "goals": "goal",
    "isl": "prompt",
    "osl": "answer",
    "users": "users in flight",
    "ttft_p99": "P99 TTFT ≤",
    "tpot_p99": "P99 TPOT ≤",
    "deadline": "within",
    "budget": "budget",
    "prices": "price",
}


def workload_block(workload: Mapping[str, Mapping[str, Any]]) -> Pairs:
    """One row for each origin: what you asked, what the preset added, what the model says."""
    origins = list(dict.fromkeys(str(entry["from"]) for entry in workload.values()))
    order = [
        *(name for name in _LABELS if name in origins),
        *(name for name in origins if name not in _LABELS),
    ]
    rows = []
    for origin in order:
        said = (said_as(key, entry["value"]) for key, entry in workload.items() if entry["from"] == origin)
        content = join(line(text) for text in said if text)
        rows += [(_LABELS.get(origin, f"from {origin}"), content)] if content else []
    return Pairs(rows=tuple(rows))


def said_as(key: str, value: Any) -> str:
    """One value with its name and unit; empty where nothing was asked.

    >>> said_as("ttft_p99_s", 1.0), said_as("users", 64), said_as("context_tokens", 8192)
    ('P99 TTFT ≤ 1.00 s', '64 users in flight', 'context 8,192')
    >>> said_as("tokens", 2e12)
    'tokens 2.00T'
    """
    if value is None or value is False or value in ([], {}, ""):
        return ""
    name, shown = _named(key, value)
    name = _WORDS.get(name, name.replace("_", " "))
    if value is True:
        return name
    return f"{shown} {name}" if key == "users" else f"{name} {shown}"


def _named(key: str, value: Any) -> tuple[str, str]:
    if isinstance(value, Mapping):
        return key, ", ".join(f"{name} {_share(one)}" for name, one in value.items())
    if isinstance(value, list):
        ordered = ", then " if key == "goals" else ", "
        return key, ordered.join(_plain(one) for one in value)
    if key in _TOKENS:
        return key, f"{value:,}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        for unit, show in _UNITS:
            if key == unit or key.endswith(f"_{unit}"):
                return key.removesuffix(f"_{unit}"), show(value)
    return key, _plain(value)


def _share(value: Any) -> str:
    """What one of several models is asked: its load alone, as the lengths and bars stand beside."""
    if not isinstance(value, Mapping):
        return _plain(value)
    key = next(name for name in ("users", "rate_per_s") if name in value)
    return said_as(key, value[key])


def _plain(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return amount(value)
    return str(value)
