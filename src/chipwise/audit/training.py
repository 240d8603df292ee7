"""Replays `training.csv`: speed, model FLOPs, memory, and whether a run fits."""

from __future__ import annotations

import math
from dataclasses import dataclass

from chipwise.audit.items import (
    METRIC_NOT_COVERED,
    MODEL_UNREADABLE,
    Context,
    Item,
    Line,
    Prediction,
    SkipError,
    each_row,
    missing,
)
from chipwise.audit.replay import DEFECTS
from chipwise.audit.table import Row
from chipwise.audit.training_cases import Case, asked_of, coefficients_of
from chipwise.audit.training_runs import case_of
from chipwise.memory.training import TrainingMemory, training_memory
from chipwise.memory.training_fitting import training_fits
from chipwise.memory.training_recipes import fitted
from chipwise.perf.training import TrainingArrays, step_arrays, term_seconds
from chipwise.perf.training_coefficients import training_evidence

REQUIRED = ("model", "method")
GIB, GB = 2**30, 1e9
SPEED = {
    "tokens_s": ("tokens_s_per_device", "tokens_s_total"),
    "step_s": ("step_s",),
    "mfu": ("mfu_pct", "mfu"),
}
MEMORY = {"peak_mem_gib": GIB, "peak_mem_gb": GB}
"""Column to the bytes of its unit; the metric is in GiB."""
TOTAL_MEMORY = "total_mem_gb_all_gpus"
COMPLETE = frozenset({"", "A"})


def items_of(rows: list[Row], context: Context) -> list[Item]:
    """Speed, memory and outcome of every row; speed only of rows whose configuration is complete."""
    found = []
    for row in rows:
        partly = row.text("quality") not in COMPLETE and not context.incomplete
        for metric, columns in SPEED.items():
            column = next((name for name in columns if row.text(name)), None)
            if column is not None:
                value = row.finite(column)
                barred = missing("quality") if partly else missing(column) if value is None else None
                found.append(Item(row=row, metric=metric, measured=value, barred=barred))
        peak = peak_gib(row)
        if peak is not None:
            found.append(Item(row=row, metric="peak_mem_gib", measured=peak))
        found.append(Item(row=row, metric="fits", measured=not row.yes("oom")))
    return found


def peak_gib(row: Row) -> float | None:
    """Peak memory of one device in GiB, whatever unit the row prints it in."""
    for column, unit in MEMORY.items():
        value = row.positive(column)
        if value is not None:
            return value * unit / GIB
    total, devices = row.positive(TOTAL_MEMORY), row.positive("n_devices")
    return total * GB / GIB / devices if total and devices else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What a row's case gives, each part computed once."""

    case: Case
    memory: TrainingMemory
    fits: bool
    speed: TrainingArrays | SkipError
    spread: float


def predict(items: list[Item], context: Context) -> list[Line]:
    """A line an item; every row is computed once."""
    return each_row(items, lambda row: _answer(row, context), _predicted)


def _answer(row: Row, context: Context) -> _Answer | SkipError:
    try:
        case = case_of(row, context)
        memory = training_memory(case.asked)
        fits = bool(training_fits(case.asked, case.capacity_bytes))
        speed, spread = _speed(case)
    except SkipError as skipped:
        return skipped
    except DEFECTS:
        return SkipError(MODEL_UNREADABLE)
    return _Answer(case=case, memory=memory, fits=fits, speed=speed, spread=spread)


def _speed(case: Case) -> tuple[TrainingArrays | SkipError, float]:
    try:
        asked = asked_of(case, coefficients_of(case))
        return step_arrays(asked), float(asked.spread_factor)
    except SkipError as skipped:
        return skipped, 1.0


def _predicted(item: Item, found: _Answer) -> Prediction:
    labels = {
        "chip": found.case.chip.id,
        "trainer": found.case.trainer,
        "family": found.case.model.model_type,
        "class": found.case.model.architecture,
        "precision": found.case.job.precision,
    }
    if any(layer.experts for layer in found.case.model.layers):
        labels["balance"] = "forced" if found.case.job.even_routing else "not forced"
    if item.metric in {"fits", "peak_mem_gib"}:
        return _of_memory(item.metric, found, labels)
    if isinstance(found.speed, SkipError):
        raise SkipError(found.speed.code)
    mid = _rate(item, found.speed)
    if not math.isfinite(mid):
        raise SkipError(MODEL_UNREADABLE)
    terms = {name: float(value) for name, value in term_seconds(found.speed.terms).items() if float(value)}
    backed = training_evidence(generation=found.case.chip.architecture, precision=found.case.job.precision)
    return Prediction(
        low=mid / found.spread, mid=mid, high=mid * found.spread, evidence=backed, terms=terms, labels=labels
    )


def _rate(item: Item, speed: TrainingArrays) -> float:
    """The figure in the table's unit: tokens per chip or of all, seconds, per cent."""
    if item.metric == "tokens_s":
        per_chip = bool(item.row.text("tokens_s_per_device"))
        return float(speed.tokens_per_s_per_chip if per_chip else speed.tokens_per_s)
    if item.metric == "step_s":
        return float(speed.step_s)
    if item.metric == "mfu":
        return float(speed.mfu_fraction) * (100.0 if item.row.text("mfu_pct") else 1.0)
    raise SkipError(METRIC_NOT_COVERED)


def _of_memory(metric: str, found: _Answer, labels: dict[str, str]) -> Prediction:
    memory, total = found.memory, float(found.memory.total_bytes)
    terms = {
        name.replace("_bytes", "_gib"): float(getattr(memory, name)) / GIB
        for name in memory.__slots__
        if float(getattr(memory, name))
    }
    numbers, room = fitted(), found.case.capacity_bytes
    ends = (total * numbers.low_fraction, total, total * numbers.high_fraction)
    if metric == "peak_mem_gib":
        low, mid, high = (size / GIB for size in ends)
        return Prediction(low=low, mid=mid, high=high, evidence="calibrated", terms=terms, labels=labels)
    return Prediction(
        low=found.fits and ends[2] <= room,
        mid=found.fits,
        high=found.fits or ends[0] <= room,
        evidence="calibrated",
        terms=terms | {"capacity_gib": room / GIB},
        labels=labels,
    )
