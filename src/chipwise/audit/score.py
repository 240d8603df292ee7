"""How far predictions are off: errors by metric, source and group, coverage of the ranges, right classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chipwise.audit.items import ASSUMED, RELEASE, Line

WORST = 10
TRUTHS = frozenset({"fits"})
NAMES = frozenset({"architecture"})
LEAST = 1e-3
"""A prediction of nothing counts as this share of the measurement, so that it has a ratio."""
APART = frozenset({"mfu"})
"""Metrics that sources define differently: not pooled with the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A predicted line with numbers, both above zero."""

    line: Line
    predicted: float
    measured: float

    @property
    def log_ratio(self) -> float:
        """ln(predicted / measured)."""
        return float(np.log(self.predicted / self.measured))

    @property
    def ape(self) -> float:
        """|predicted / measured - 1|."""
        return abs(self.predicted / self.measured - 1.0)

    @property
    def covered(self) -> bool:
        """Whether the measurement lies in the printed range."""
        found = self.line.prediction
        slack = 1e-9 * abs(self.measured)  # a range of no width holds its own value
        return found is not None and float(found.low) - slack <= self.measured <= float(found.high) + slack


def scored_of(lines: Iterable[Line]) -> list[Scored]:
    """The lines that errors can be taken of: measurements above zero with a number predicted."""
    found = []
    for line in lines:
        measured = line.item.measured
        if line.prediction is None or isinstance(measured, bool | str) or measured is None or measured <= 0:
            continue
        mid = line.prediction.mid
        if isinstance(mid, bool | str) or not 0 <= float(mid) < np.inf:
            continue
        found.append(Scored(line=line, predicted=max(float(mid), LEAST * measured), measured=measured))
    return found


def errors(scored: Sequence[Scored]) -> dict[str, Any]:
    """Count, median and 90th percentile of the error, bias and coverage; None where nothing is scored.

    `mdape` is the median of |predicted / measured - 1|, `bias_log` the median of ln(predicted / measured).
    """
    if not scored:
        empty = ("mdape", "median_abs_log", "p90_ape", "bias_log", "coverage80")
        return {"n": 0, **dict.fromkeys(empty)}
    logs = np.array([one.log_ratio for one in scored])
    apes = np.array([one.ape for one in scored])
    return {
        "n": len(scored),
        "mdape": float(np.median(apes)),
        "median_abs_log": float(np.median(np.abs(logs))),
        "p90_ape": float(np.quantile(apes, 0.9)),
        "bias_log": float(np.median(logs)),
        "coverage80": float(np.mean([one.covered for one in scored])),
    }


def summary(lines: list[Line], *, rows: int, by: Sequence[Sequence[str]]) -> dict[str, Any]:
    """CONTRACT's object for the kinds that are scored item by item; `by` are the keys of one grouping after another.

    Rows that name no release of their engine are in `groups` and, by themselves, in `release_assumed`: their range is
    what is judged, not their median. A table without any release is judged whole.
    """
    every = scored_of(lines)
    scored = [one for one in every if not _assumed(one.line)] or every
    assumed = [one for one in every if _assumed(one.line)]
    pooled = errors([one for one in scored if one.line.item.metric not in APART])
    predicted = sum(line.prediction is not None for line in lines)
    skipped = Counter(line.code for line in lines if line.code is not None)
    return {
        "schema_version": 1,
        "items": len(lines),
        "scored": predicted,
        "skipped": dict(skipped.most_common()),
        "metrics": _metrics(lines, scored),
        "by_source": _by_source(scored),
        "release_assumed": {"n": len(assumed), "metrics": _by_metric(assumed)},
        "classification": classification(lines),
        "groups": [group for keys in by for group in groups(every, keys)],
        "worst": worst(scored),
        "overall": {
            "mdape": pooled["mdape"],
            "p90_ape": pooled["p90_ape"],
            "bias": pooled["bias_log"],
            "coverage80": pooled["coverage80"],
        },
        "rows": rows,
    }


def _metrics(lines: list[Line], scored: list[Scored]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for metric in dict.fromkeys(line.item.metric for line in lines if line.prediction is not None):
        found[metric] = errors([one for one in scored if one.line.item.metric == metric])
        if metric in TRUTHS | NAMES:
            right = [_right(line) for line in lines if line.item.metric == metric and line.prediction is not None]
            found[metric] |= {"n": len(right), "accuracy": float(np.mean(right))}
    return found


def _assumed(line: Line) -> bool:
    return line.prediction is not None and line.prediction.labels.get(RELEASE) == ASSUMED


def _by_metric(scored: list[Scored]) -> dict[str, Any]:
    parts: dict[str, list[Scored]] = {}
    for one in scored:
        parts.setdefault(one.line.item.metric, []).append(one)
    return {metric: errors(own) for metric, own in parts.items()}


def _right(line: Line) -> bool:
    return line.prediction is not None and line.prediction.mid == line.item.measured


def _by_source(scored: list[Scored]) -> dict[str, Any]:
    """Every source counted once: the mean over sources of what each has by itself."""
    parts: dict[tuple[str, str], list[Scored]] = {}
    for one in scored:
        parts.setdefault((one.line.item.metric, one.line.item.row.source), []).append(one)
    alone: dict[str, list[dict[str, Any]]] = {}
    for (metric, _), own in parts.items():
        alone.setdefault(metric, []).append(errors(own))
    return {
        name: {metric: float(np.mean([one[name] for one in each])) for metric, each in alone.items()}
        for name in ("mdape", "p90_ape", "bias_log", "coverage80")
    } | {"sources": {metric: len(each) for metric, each in alone.items()}}


def classification(lines: list[Line]) -> dict[str, float | None] | None:
    """Recall of what did fit and of what ran out of memory, and the mean of the two."""
    judged = [line for line in lines if line.item.metric in TRUTHS and line.prediction is not None]
    if not judged:
        return None
    recalls = {
        name: _mean([_right(line) for line in judged if line.item.measured is truth])
        for name, truth in (("fits_recall", True), ("oom_recall", False))
    }
    known = [value for value in recalls.values() if value is not None]
    return {**recalls, "balanced_accuracy": float(np.mean(known)) if len(known) == len(recalls) else None}


def _mean(values: list[bool]) -> float | None:
    return float(np.mean(values)) if values else None


def key_of(line: Line, names: Sequence[str]) -> dict[str, str]:
    """What a line is grouped by: `source`, `metric`, `evidence`, a label of the prediction, or any column."""
    return {name: _value(line, name) for name in names}


def _value(line: Line, name: str) -> str:
    found = line.prediction
    special: dict[str, Callable[[], str]] = {
        "source": lambda: line.item.row.source,
        "metric": lambda: line.item.metric,
        "evidence": lambda: found.evidence if found else "",
    }
    if name in special:
        return special[name]()
    label = (found.labels if found else {}).get(name, "")
    return label or line.item.row.text(name) or "unknown"


def groups(scored: list[Scored], by: Sequence[str]) -> list[dict[str, Any]]:
    """Errors by the keys asked, the largest group first."""
    if not by:
        return []
    parts: dict[tuple[str, ...], list[Scored]] = {}
    for one in scored:
        parts.setdefault(tuple(key_of(one.line, by).values()), []).append(one)
    ordered = sorted(parts.items(), key=lambda item: (-len(item[1]), item[0]))
    return [{"key": dict(zip(by, key, strict=True)), **errors(own)} for key, own in ordered]


def worst(scored: list[Scored]) -> list[dict[str, Any]]:
    """The ten that are furthest off in ratio, with what their prediction is made of."""
    furthest = sorted(scored, key=lambda one: -abs(one.log_ratio))[:WORST]
    return [
        {
            "run_id": one.line.item.row.run_id,
            "metric": one.line.item.metric,
            "predicted": one.predicted,
            "measured": one.measured,
            "source": one.line.item.row.source,
            "terms": dict(one.line.prediction.terms) if one.line.prediction else {},
        }
        for one in furthest
    ]
