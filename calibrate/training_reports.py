"""Public reports of whole runs against predictions: none of them was fitted. Writes a page of docs/decisions."""

from __future__ import annotations

from pathlib import Path

from calibrate.priors import DATA
from chipwise.audit.items import Context
from chipwise.audit.table import Row, read_table
from chipwise.audit.training_cases import Case, asked_of, coefficients_of
from chipwise.audit.training_runs import case_of
from chipwise.perf.training import step_arrays
from chipwise.perf.training_run import (
    checkpoint_bytes,
    checkpoint_interval_s,
    goodput_fraction,
    mean_time_between_failures_s,
    restart_s,
    stall_s,
)

SECONDS_PER_HOUR = 3600.0
AMPLE_BYTES = float("inf")
"""Host memory that no report states: enough for a copy of the states."""
INTRO = (
    "Published runs and recipes beside the fit (other runs of the TinyLlama and BLOOM teams were fitted), in the "
    "layout they state; where one states none, in the one predicted fastest. GPU hours count failures, checkpoints and "
    "restarts as `plan` does. DeepSeek-V3 was trained by code written for it: two-way pipelines without the bubble, "
    "exchange of tokens wholly hidden.\n"
)


def page(folder: Path) -> list[str]:
    """The page in parts: a table, and what it says."""
    file = DATA / "training_reports.csv"
    context = Context(file=file, models=folder / "models.csv")
    rows = read_table(file, ("model", "method"))
    lines = ["| run | chips | conditions | what | reported | predicted | ratio |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        lines += _lines(row, case_of(row, context))
    sources = [f"- {row.text('name')}: {row.text('source')}, {row.text('where')}" for row in rows]
    return [INTRO, "\n".join(lines) + "\n", "\n".join(["Sources:", "", *sources]) + "\n"]


def _lines(row: Row, case: Case) -> list[str]:
    rate = float(step_arrays(asked_of(case, coefficients_of(case))).tokens_per_s_per_chip)
    hours = (row.positive("tokens") or 0.0) / (rate * _goodput(case)) / SECONDS_PER_HOUR
    figures = (
        ("tokens/s a chip", row.positive("tokens_s_per_device"), rate),
        ("GPU hours", row.positive("gpu_hours"), hours),
    )
    head = f"| {row.text('name')} | {case.chips:.0f} x {case.chip.id} | {_said(row)}"
    return [
        f"{head} | {what} | {reported:,.0f} | {predicted:,.0f} | {predicted / reported:.2f} |"
        for what, reported, predicted in figures
        if reported is not None
    ]


def _said(row: Row) -> str:
    return "stated" if row.text("stated") == "yes" else "partly stated"


def _goodput(case: Case) -> float:
    stops_s = float(mean_time_between_failures_s(case.chips))
    size = checkpoint_bytes(params=float(case.model.params_total), job=case.job)
    stands_s = float(stall_s(size_bytes=size, chips=case.chips, write_s=AMPLE_BYTES, host_bytes=AMPLE_BYTES))
    interval_s = float(checkpoint_interval_s(write_s=stands_s, mtbf_s=stops_s))
    return float(goodput_fraction(write_s=stands_s, interval_s=interval_s, mtbf_s=stops_s, restart_s=restart_s()))
