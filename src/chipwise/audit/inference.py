"""Replays `inference.csv`: one metric a row, `run_id` joins the rows of a run."""

from __future__ import annotations

import re
from typing import cast, get_args

from chipwise.audit.figures import Wanted, figure_of, terms_of, wanted
from chipwise.audit.items import ASSUMED, FLAGGED, RELEASE, Context, Item, Line, Prediction, SkipError, each, missing
from chipwise.audit.replay import Replayed, replay
from chipwise.audit.runs import Run, run_of
from chipwise.audit.table import Row
from chipwise.perf.parameters import runtime_of
from chipwise.perf.ranges import Evidence, evidence_of, range_of

REQUIRED = ("metric", "value")
COMPLETE = "conditions-complete"
BARRING = frozenset(
    {
        "caution",
        "disaggregated",
        "speculative",
        "prefix-cache",
        "layout-suspect",
        "layout-inferred",
        "below-hbm-floor",
        "littles-law-mismatch",
        "wip",
        "suspect",
    }
)
"""Flags with which a table rules its own row out."""


def items_of(rows: list[Row], context: Context) -> list[Item]:
    """One item a row."""
    return [
        Item(row=row, metric=row.text("metric"), measured=row.finite("value"), barred=_barred(row, context))
        for row in rows
    ]


def flags_of(row: Row) -> frozenset[str]:
    """The flags of a row, whatever parts them."""
    return frozenset(re.split(r"[\s;,|]+", row.text("flags").lower())) - {""}


def _barred(row: Row, context: Context) -> str | None:
    """Flags first; then what the table itself does not call complete, by the first condition that is blank.

    A release of the engine can be assumed: a row that lacks nothing else is predicted.
    """
    flags = flags_of(row)
    if flags & BARRING:
        return FLAGGED
    if row.finite("value") is None:
        return missing("value")
    if "flags" not in row.cells or COMPLETE in flags or context.incomplete:
        return None
    blank = (name for name in ("isl", "osl", "n_devices", "tp", "weight_precision", "engine") if not row.text(name))
    lacking = next(blank, None)
    if lacking is None and not row.text("engine_version"):
        return None
    return missing(lacking or "flags")


def predict(items: list[Item], context: Context) -> list[Line]:
    """A line an item; the runs are predicted in few calls."""
    runs: dict[str, Run | SkipError] = {}
    for item in items:
        if item.barred is None:
            runs.setdefault(_key(item.row), _run(item.row, context))
    answers = replay(run for run in runs.values() if isinstance(run, Run))

    def one(item: Item) -> Prediction:
        asked = wanted(item.metric)
        run = runs[_key(item.row)]
        found = run if isinstance(run, SkipError) else answers[run]
        if isinstance(found, SkipError):
            raise SkipError(found.code)
        return predicted(asked, found)

    return each(items, one)


def _key(row: Row) -> str:
    """What makes two rows one run: everything but the metric, its value and its unit."""
    return "\x1f".join(value for name, value in row.cells.items() if name not in _OF_THE_METRIC)


_OF_THE_METRIC = frozenset({"id", "metric", "value", "unit", "flags", "source"})


def _run(row: Row, context: Context) -> Run | SkipError:
    try:
        return run_of(row, context.models)
    except SkipError as skipped:
        return skipped


def weaker(evidence: Evidence) -> Evidence:
    """What backs a prediction whose engine release is only assumed: one step less."""
    steps = get_args(Evidence)
    return cast("Evidence", steps[min(steps.index(evidence) + 1, len(steps) - 1)])


def predicted(asked: Wanted, found: Replayed) -> Prediction:
    """The figure with its range, evidence and terms."""
    run, model = found.run, found.model
    runtime = runtime_of(run.engine.name, run.engine.version)
    evidence = evidence_of(chip=run.chip_id, runtime=runtime, model_type=model.model_type)
    if run.assumed_release:
        evidence = weaker(evidence)
    span = range_of(figure_of(asked, found), evidence=evidence, metric=asked.ranged, load=run.load.kind)
    return Prediction(
        low=span.low,
        mid=span.mid,
        high=span.high,
        evidence=evidence,
        terms=terms_of(asked, found),
        labels={
            "chip": run.chip_id,
            "runtime": runtime,
            "family": model.model_type,
            "class": model.architecture,
            "quantity": asked.quantity,
            "load": run.load.kind,
            RELEASE: ASSUMED if run.assumed_release else "stated",
        },
    )
