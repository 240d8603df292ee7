"""A change that `why` found to be enough, as the question that takes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_DROPPED: Mapping[str, tuple[str, ...]] = {
    "selection": ("only", "exclude", "vendor"),
    "region": ("region",),
    "features": ("needs",),
    "purchase": ("purchase",),
    "engine": ("engine",),
    "budget": ("budget",),
}
"""Kinds of change that leave flags out, and which."""
_BARS = {"ttft-p99": "ttft_p99_s", "tpot-p99": "tpot_p99_s"}


def changed(body: Mapping[str, Any], answer: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """The question `body` with one change of `answer`, put for that size alone as `why` tried it.

    >>> answer = {"instance": "g6e.xlarge", "workload": {"tpot_p99_s": {"value": 0.06}}}
    >>> changed({"model": "m"}, answer, {"kind": "context", "change": "--context 1024"})
    {'model': 'm', 'context': '1024', 'only': 'g6e.xlarge'}
    >>> changed({"model": "m"}, answer, {"kind": "bars", "change": "bars 1.5 times as loose"})
    {'model': 'm', 'tpot-p99': '90ms', 'only': 'g6e.xlarge'}
    >>> changed({"model": "m", "needs": "fp8"}, answer, {"kind": "features", "change": "leave out --needs"})
    {'model': 'm', 'only': 'g6e.xlarge'}
    """
    kind, words = change["kind"], change["change"]
    taken = {"vendor", "only", "exclude", *_DROPPED.get(kind, ())}
    made = {name: value for name, value in body.items() if name not in taken}
    if kind == "bars":
        made |= _loosened(answer["workload"], float(re.findall(r"[\d.]+", words)[0]))
    elif kind not in _DROPPED:
        name, _, value = words.removeprefix("--").partition(" ")
        made[name] = value
    return {**made, "only": answer["instance"]}


def _loosened(workload: Mapping[str, Any], factor: float) -> dict[str, str]:
    bars = {flag: (workload.get(name) or {}).get("value") for flag, name in _BARS.items()}
    return {flag: f"{1000.0 * value * factor:.6g}ms" for flag, value in bars.items() if value}
