"""Rows of the table of serving measurements as blocks of runs that the product predicts in one call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from chipwise.audit.figures import Wanted, wanted
from chipwise.audit.inference import COMPLETE, flags_of, items_of
from chipwise.audit.items import Context, Item, SkipError
from chipwise.audit.replay import DEFECTS, asked_of
from chipwise.audit.runs import Run, run_of
from chipwise.audit.table import read_table
from chipwise.perf.load import ServingInput, ServingPrediction
from chipwise.perf.parameters import runtime_of, scopes_of
from chipwise.perf.spread import ttft_spread

MEANS = frozenset({"mean", "p50"})
"""Statistics that a mean stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One figure of a run: what it is, in base units, and whether its table calls it complete."""

    item: Item
    asked: Wanted
    value: float
    run: Run
    complete: bool

    @property
    def quantity(self) -> str:
        """Token times of one kind count together."""
        return "tpot" if self.asked.quantity == "itl" else self.asked.quantity

    @property
    def source(self) -> str:
        """Who measured."""
        return self.item.row.source


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Runs of one model, kind of load, runtime and chip generation, with what was measured of them."""

    runs: tuple[Run, ...]
    asked: ServingInput
    measurements: tuple[Measurement, ...]
    places: Any
    """For each measurement, the place of its run."""

    @property
    def kind(self) -> str:
        """The kind of load."""
        return self.runs[0].load.kind


def scopes(run: Run) -> tuple[str, ...]:
    """The scopes whose factors a run's parameters take."""
    chip = run.chip
    return scopes_of(
        chip=run.chip_id,
        generation=chip.architecture,
        engine=runtime_of(run.engine.name, run.engine.version),
        fabric=chip.link.kind if chip.link else "none",
    )


def measurements(folder: Path) -> list[Measurement]:
    """Every figure of the table that its flags do not rule out and that a prediction has."""
    file = folder / "inference.csv"
    context = Context(file=file, models=folder / "models.csv", incomplete=True)
    runs: dict[tuple[str, ...], Run | None] = {}
    found = []
    for item in items_of(read_table(file, ("metric", "value")), context):
        one = None if item.barred else _measurement(item, context, runs)
        if one is not None:
            found.append(one)
    return found


def _measurement(item: Item, context: Context, runs: dict[tuple[str, ...], Run | None]) -> Measurement | None:
    row = item.row
    key = tuple(value for name, value in row.cells.items() if name not in {"id", "metric", "value", "unit", "flags"})
    if key not in runs:
        try:
            runs[key] = run_of(row, context.models)
        except SkipError:
            runs[key] = None
    run = runs[key]
    try:
        asked = wanted(item.metric)
    except SkipError:
        return None
    value = item.measured
    if run is None or isinstance(value, bool | str) or value is None or value <= 0:
        return None
    if asked.quantity != "throughput" and asked.statistic not in MEANS:
        return None
    return Measurement(item=item, asked=asked, value=value / asked.scale, run=run, complete=COMPLETE in flags_of(row))


def groups(found: Iterable[Measurement]) -> list[Group]:
    """The measurements, grouped; a group that the product cannot compute is left out."""
    parts: dict[tuple[object, ...], list[Measurement]] = {}
    for one in found:
        parts.setdefault((one.run.model, one.run.load.kind, scopes(one.run)), []).append(one)
    return [group for own in parts.values() if (group := _group(own)) is not None]


def _group(own: list[Measurement]) -> Group | None:
    runs = list(dict.fromkeys(one.run for one in own))
    place = {run: index for index, run in enumerate(runs)}
    try:
        asked = asked_of(runs)
    except (SkipError, *DEFECTS):
        return None
    return Group(
        runs=tuple(runs),
        asked=asked,
        measurements=tuple(own),
        places=np.array([place[one.run] for one in own]),
    )


def log_figures(group: Group, found: ServingPrediction) -> Any:
    """Ln of what is predicted of each measurement (last axis), not a number where it does not count.

    TTFT and the time of a request above capacity are the length of the run: they do not count.
    """
    columns = {asked: _figure(asked, group, found) for asked in {one.asked for one in group.measurements}}
    shape = np.broadcast_shapes(*(np.shape(value) for value in columns.values()), (len(group.runs),))
    whole = {asked: np.broadcast_to(value, shape) for asked, value in columns.items()}
    picked = [whole[one.asked][..., at] for one, at in zip(group.measurements, group.places, strict=True)]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.stack(picked, axis=-1))
    return np.where(np.isfinite(logs), logs, np.nan)


def _figure(asked: Wanted, group: Group, found: ServingPrediction) -> Any:
    if asked.quantity in {"ttft", "e2e"}:
        value = _ttft(asked, found) if asked.quantity == "ttft" else found.e2e_s
        over = np.asarray(found.saturated) > 0
        return np.where(over | (group.kind == "offline"), np.nan, value)
    if asked.quantity in {"tpot", "itl"}:
        return found.tpot_s
    if asked.statistic == "per_user":
        return 1.0 / np.asarray(found.tpot_s)
    output, total = np.asarray(found.output_tokens_per_s), np.asarray(found.total_tokens_per_s)
    rates = {"output_tok": output, "total_tok": total, "req": np.asarray(found.requests_per_s)}
    rate = rates.get(asked.of, total - output)
    chips = np.array([run.place.chips for run in group.runs])
    return rate if asked.statistic == "total" else rate / chips


def _ttft(asked: Wanted, found: ServingPrediction) -> Any:
    with np.errstate(invalid="ignore"):  # a saturated load waits for ever: infinite less infinite
        return ttft_spread(found).p50 if asked.statistic == "p50" else found.ttft_s
