"""Replays choices: where a question was measured on two or more kinds of hardware, which would be picked, at what loss.

A question is a model, its lengths and a load. Options are the measured configurations. What decides is output tokens a
second and chip; for a single request and for a given rate, where throughput is given, the time of a request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from chipwise.audit import inference
from chipwise.audit.figures import wanted
from chipwise.audit.items import Context, Line, SkipError
from chipwise.audit.names import chip_named
from chipwise.audit.runs import kind_of
from chipwise.audit.table import Row

Measure = Literal["tokens", "time", "step"]
Figures = Mapping[str, float]
"""Seconds or tokens a second of one run, by `ttft`, `tpot`, `e2e`, `output_tok`, `total_tok`, `req`."""
FIRST = 3
QUESTION = ("model", "isl", "osl", "load_kind", "concurrency_or_batch", "request_rate")
MEASURES: tuple[Measure, ...] = ("tokens", "time", "step")
"""What may decide, the first that two kinds of hardware have: tokens a second and chip, seconds a request, a token."""
_LAYOUT = ("n_devices", "tp", "pp", "ep", "dp", "engine", "engine_version", "weight_precision", "kv_precision")
_LATENCY_LOADS = frozenset({"single", "rate"})
_MEANS = frozenset({"mean", "p50"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One measured configuration of a question: how good it was predicted to be, and was. More is better."""

    hardware: str
    configuration: str
    predicted: float
    measured: float


Runs = dict[tuple[str, ...], list[Line]]


def replayed(rows: list[Row], context: Context) -> list[Line]:
    """Every item of `inference.csv` that its table does not rule out, complete or not, predicted."""
    items = inference.items_of(rows, replace(context, incomplete=True))
    return inference.predict([item for item in items if item.barred is None], context)


def decisions(lines: list[Line], *, rows: int) -> dict[str, Any]:
    """Every question with two or more kinds of hardware, and how the picks did.

    A pick is the configuration predicted best; `top1` counts picks on the hardware measured best, `top3` best hardware
    among the first three predicted. `regret = measured(best) / measured(pick) - 1`.
    """
    cases = [case for key, runs in _questions(lines).items() if (case := _case(key, runs)) is not None]
    regrets = np.array([case["regret"] for case in cases] or [np.nan])
    figures = {"mean": np.mean(regrets), "median": np.median(regrets), "p90": np.quantile(regrets, 0.9)}
    return {
        "schema_version": 1,
        "cases": len(cases),
        "top1": _share([case["top1"] for case in cases]),
        "top3": _share([case["top3"] for case in cases]),
        "regret": {name: float(value) if cases else None for name, value in figures.items()},
        "cases_detail": sorted(cases, key=lambda case: -case["regret"]),
        "rows": rows,
    }


def _share(hits: list[bool]) -> float | None:
    return float(np.mean(hits)) if hits else None


def _questions(lines: list[Line]) -> dict[tuple[str, ...], Runs]:
    """The predicted lines by question, then by run."""
    found: dict[tuple[str, ...], Runs] = {}
    for line in lines:
        if line.prediction is not None:
            row = line.item.row
            runs = found.setdefault(tuple(row.text(name) for name in QUESTION), {})
            run = (row.run_id, *(row.text(name) for name in ("hardware", *_LAYOUT)))
            runs.setdefault(run, []).append(line)
    return found


def _case(key: tuple[str, ...], runs: Runs) -> dict[str, Any] | None:
    """One question as a detail of the answer; None where fewer than two kinds of hardware can be compared."""
    tried = ((measure, _options(runs, measure)) for measure in MEASURES)
    found = next((pair for pair in tried if len({option.hardware for option in pair[1]}) > 1), None)
    if found is None:
        return None
    measure, options = found
    ranked = sorted(options, key=lambda option: -option.predicted)
    order = list(dict.fromkeys(option.hardware for option in ranked))
    pick, best = ranked[0], max(options, key=lambda option: option.measured)
    return {
        "model": key[0],
        "question": _question(key),
        "decided_by": measure,
        "picked": pick.hardware,
        "configuration": pick.configuration,
        "best": best.hardware,
        "best_configuration": best.configuration,
        "regret": best.measured / pick.measured - 1.0,
        "top1": pick.hardware == best.hardware,
        "top3": best.hardware in order[:FIRST],
        "hardware": order,
    }


def _question(key: tuple[str, ...]) -> str:
    named = dict(zip(QUESTION, key, strict=True))
    load = named["concurrency_or_batch"] or (f"{named['request_rate']}/s" if named["request_rate"] else "")
    return f"{named['isl']}/{named['osl']} {named['load_kind']} {load}".strip()


def _options(runs: Runs, measure: Measure) -> list[Option]:
    """The runs that have this measure, predicted and measured."""
    found = []
    for lines in runs.values():
        row = lines[0].item.row
        measured = _merit(row, _figures(lines, predicted=False), measure)
        predicted = _merit(row, _figures(lines, predicted=True), measure)
        if measured and predicted:
            chip = chip_named(row.text("hardware"), "hardware").id
            found.append(
                Option(hardware=chip, configuration=_configuration(row), predicted=predicted, measured=measured)
            )
    return found


def _configuration(row: Row) -> str:
    parts = (f"{name}={row.text(name)}" for name in ("n_devices", "tp", "ep", "engine", "weight_precision"))
    return " ".join(part for part in parts if not part.endswith("="))


def _figures(lines: list[Line], *, predicted: bool) -> dict[str, float]:
    """What a run's lines say in base units, its means and medians only."""
    found: dict[str, float] = {}
    for line in lines:
        try:
            asked = wanted(line.item.metric)
        except SkipError:
            continue
        value = line.prediction.mid if predicted and line.prediction else line.item.measured
        if value is None or isinstance(value, bool | str) or value <= 0:
            continue
        if asked.quantity == "throughput":
            chips = line.item.row.positive("n_devices") or 1.0
            per_chip = {"total": 1.0 / chips, "per_user": 0.0}.get(asked.statistic, 1.0)
            found.setdefault(asked.of, float(value) * per_chip)
        elif asked.statistic in _MEANS:
            found.setdefault("tpot" if asked.quantity == "itl" else asked.quantity, float(value) / asked.scale)
    return found


def _merit(row: Row, figures: Figures, measure: Measure) -> float | None:
    """How good a run is: output tokens a second and chip, or one over the seconds it takes; None: it does not say."""
    if measure == "step":
        return 1.0 / figures["tpot"] if "tpot" in figures else None
    osl, isl = row.positive("osl") or 1.0, row.positive("isl") or 0.0
    seconds = figures.get("e2e")
    if seconds is None and {"ttft", "tpot"} <= set(figures):
        seconds = figures["ttft"] + figures["tpot"] * (osl - 1.0)
    if measure == "time":
        return 1.0 / seconds if seconds else None
    if kind_of(row) in _LATENCY_LOADS:
        return None
    tokens = _tokens(figures, osl / (osl + isl), osl)
    if tokens is None and seconds:
        chips, together = row.positive("n_devices") or 1.0, row.positive("concurrency_or_batch") or 1.0
        return together * osl / seconds / chips
    return tokens


def _tokens(figures: Figures, share: float, osl: float) -> float | None:
    """Output tokens a second and chip, whichever rate is printed."""
    if "output_tok" in figures:
        return figures["output_tok"]
    if "total_tok" in figures:
        return figures["total_tok"] * share
    return figures["req"] * osl if "req" in figures else None
