"""A change that `why` found to be enough, as the question that takes it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from chipwise.units import show_seconds

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
_SHOWN = {"ttft-p99": "P99 TTFT", "tpot-p99": "P99 TPOT"}
MOST_OFFERED = 3
"""Of the sizes that miss the bars, how many are offered."""


def changed(body: Mapping[str, Any], answer: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """The question `body` with one change of `answer`, put for that size alone as `why` tried it.

    >>> answer = {"instance": "g6e.xlarge"}
    >>> changed({"model": "m"}, answer, {"kind": "bars", "change": "--ttft-p99 2000ms --tpot-p99 90ms"})
    {'model': 'm', 'ttft-p99': '2000ms', 'tpot-p99': '90ms', 'only': 'g6e.xlarge'}
    >>> changed({"model": "m", "needs": "fp8"}, answer, {"kind": "features", "change": "leave out --needs"})
    {'model': 'm', 'only': 'g6e.xlarge'}
    """
    kind = change["kind"]
    taken = {"vendor", "only", "exclude", *_DROPPED.get(kind, ())}
    made = {name: value for name, value in body.items() if name not in taken}
    if kind not in _DROPPED:
        made |= re.findall(r"--([\w-]+) (\S+)", change["change"])
    return {**made, "only": answer["instance"]}


def offered(body: Mapping[str, Any], plan: Mapping[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """The sizes that miss the bars by the least: size, what it takes in words, and the question that allows it.

    Only the bars it misses are moved, to what it reaches at best (two digits, rounded up).

    >>> row = {"instance": "g6e.xlarge", "nearest": {"ttft_p99_s": 0.4, "tpot_p99_s": 0.0412}}
    >>> plan = {"workload": {"tpot_p99_s": {"value": 0.02}, "ttft_p99_s": {"value": 1.0}}, "rejected": [row]}
    >>> offered({"model": "m", "tpot-p99": "20ms"}, plan)
    [('g6e.xlarge', 'P99 TPOT 42.0 ms instead of 20.0 ms', {'model': 'm', 'tpot-p99': '42ms'})]
    """
    asked = _asked(plan["workload"])
    missed = [(row["instance"], _missed(row["nearest"], asked)) for row in plan["rejected"]]
    near = sorted((one for one in missed if one[1]), key=lambda one: max(one[1][flag] / asked[flag] for flag in one[1]))
    return [
        (
            size,
            " and ".join(
                f"{_SHOWN[flag]} {show_seconds(bar)} instead of {show_seconds(asked[flag])}"
                for flag, bar in bars.items()
            ),
            {**body, **{flag: _written(bar) for flag, bar in bars.items()}},
        )
        for size, bars in near[:MOST_OFFERED]
    ]


def _missed(nearest: Mapping[str, Any], asked: Mapping[str, float]) -> dict[str, float]:
    """The bars that the nearest configuration misses, each as loose as it needs, in seconds."""
    reached = {flag: nearest.get(_BARS[flag]) for flag in asked}
    return {flag: _up(value) for flag, value in reached.items() if value is not None and value > asked[flag]}


def _up(seconds: float) -> float:
    """Rounded up to two digits.

    >>> _up(0.0412)
    0.042
    """
    step = 10.0 ** (math.floor(math.log10(seconds)) - 1)
    return float(f"{math.ceil(seconds / step) * step:.6g}")


def _asked(workload: Mapping[str, Any]) -> dict[str, float]:
    """The bars of a question, in seconds."""
    bars = {flag: (workload.get(name) or {}).get("value") for flag, name in _BARS.items()}
    return {flag: value for flag, value in bars.items() if value}


def _written(seconds: float) -> str:
    return f"{1000.0 * seconds:.6g}ms"
