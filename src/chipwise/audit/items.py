"""What is replayed and what comes of it: an `Item` is one (run, metric), a `Line` the item with its outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from chipwise.audit.table import Row

Measured = float | bool | str | None
CHIP_UNKNOWN = "chip-unknown"
MODEL_UNKNOWN = "model-unknown"
MODEL_UNREADABLE = "model-unreadable"
ENGINE_UNKNOWN = "engine-unknown"
LOAD_NOT_COVERED = "load-kind-not-covered"
SATURATED = "saturated"
METRIC_NOT_COVERED = "metric-not-covered"
FLAGGED = "flagged"
RELEASE, ASSUMED = "release", "assumed"
"""Label of a prediction, and its value where the engine's release is not stated: judged apart."""


MOST_STAGES = 1000.0
"""More pipeline stages than any published run has: a cell beyond it says nothing that can be replayed."""


def stages(pp: float) -> float:
    """The pipeline stages of a row.

    Raises:
        SkipError: more than `MOST_STAGES`.
    """
    if pp > MOST_STAGES:
        raise SkipError(missing("pp"))
    return pp


def missing(column: str) -> str:
    """The code that says which condition the source does not state."""
    return f"conditions-missing:{column}"


class SkipError(Exception):
    """An item that is not predicted, and the code that says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One metric of one run as the table prints it. `barred` is a code where the table itself rules it out."""

    row: Row
    metric: str
    measured: Measured
    barred: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What chipwise says of an item, in the table's own unit; numbers, a truth value or a name.

    `labels` hold what `--by` may group by beside the table's columns (chip, family, class, evidence).
    """

    low: Any
    mid: Any
    high: Any
    evidence: str
    terms: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An item with its prediction, or with the code of why there is none."""

    item: Item
    prediction: Prediction | None = None
    code: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The line of `--rows`."""
        found = self.prediction
        return {
            "run_id": self.item.row.run_id,
            "metric": self.item.metric,
            "status": "skipped" if found is None else "predicted",
            "reason": self.code,
            "low": _plain(found.low) if found else None,
            "mid": _plain(found.mid) if found else None,
            "high": _plain(found.high) if found else None,
            "evidence": found.evidence if found else None,
            "terms": {name: _short(value) for name, value in found.terms.items()} if found else {},
        }


def _plain(value: Any) -> Any:
    """A truth value, a name or a whole number as it is, else a float."""
    return value if isinstance(value, bool | str | int) or value is None else float(value)


def _short(value: float) -> float | None:
    """Six digits that matter; what is not finite is unknown."""
    return float(f"{float(value):.6g}") if math.isfinite(value) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Where names are looked up and what is replayed. `incomplete` also predicts what the table calls incomplete."""

    file: Path
    models: Path | None = None
    incomplete: bool = False


Answer = TypeVar("Answer")
Predict = Callable[["list[Item]", Context], "list[Line]"]


def each(items: list[Item], predict: Callable[[Item], Prediction]) -> list[Line]:
    """One line an item: `predict` answers or raises `SkipError`; a barred item is not asked about."""
    return [Line(item=item, code=item.barred) if item.barred is not None else _line(item, predict) for item in items]


def each_row(
    items: list[Item], answer: Callable[[Row], Answer | SkipError], predict: Callable[[Item, Answer], Prediction]
) -> list[Line]:
    """One line an item, where every row is answered once for all of its items.

    Args:
        items: of any number of rows.
        answer: what is computed of a row, or why nothing is.
        predict: an item's figure out of its row's answer.
    """
    answers: dict[int, Answer | SkipError] = {}

    def one(item: Item) -> Prediction:
        place = item.row.number
        if place not in answers:
            answers[place] = answer(item.row)
        found = answers[place]
        if isinstance(found, SkipError):
            raise SkipError(found.code)
        return predict(item, found)

    return each(items, one)


def _line(item: Item, predict: Callable[[Item], Prediction]) -> Line:
    try:
        return Line(item=item, prediction=predict(item))
    except SkipError as skipped:
        return Line(item=item, code=skipped.code)
