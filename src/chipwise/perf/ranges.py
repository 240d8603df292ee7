"""How far a prediction may be off: `evidence_of` says what backs it, `range_of` how wide that makes it.

`data/coverage.csv` lists what was measured (chip, runtime, model); `data/ranges.csv` the factor that held
80 % of left-out measurements by evidence, metric and kind of load.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources
from typing import Literal

from chipwise.units import Range

Evidence = Literal["measured", "calibrated", "transferred", "physics"]
Metric = Literal["ttft", "tpot", "throughput"]


def _rows(name: str) -> list[dict[str, str]]:
    text = resources.files("chipwise.perf").joinpath(f"data/{name}").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@cache
def _coverage() -> tuple[frozenset[tuple[str, str, str]], frozenset[tuple[str, str]]]:
    rows = _rows("coverage.csv")
    measured = frozenset((row["chip"], row["runtime"], row["model_type"]) for row in rows)
    return measured, frozenset((chip, runtime) for chip, runtime, _ in measured)


@cache
def _factors() -> dict[tuple[str, str, str], tuple[float, float]]:
    return {
        (row["evidence"], row["metric"], row["load"]): (float(row["low_factor"]), float(row["high_factor"]))
        for row in _rows("ranges.csv")
    }


def evidence_of(*, chip: str, runtime: str, model_type: str) -> Evidence:
    """What backs a prediction of a model on a chip under a runtime.

    `measured`: that family of models was measured there. `calibrated`: the chip and the runtime were measured
    together, with other models. `transferred`: each of them, or one, with something else. `physics`: neither.
    """
    measured, pairs = _coverage()
    if (chip, runtime, model_type) in measured:
        return "measured"
    if (chip, runtime) in pairs:
        return "calibrated"
    known = any(chip == one or runtime == other for one, other in pairs)
    return "transferred" if known else "physics"


def range_of(mid: float, *, evidence: Evidence, metric: Metric, load: str) -> Range:
    """The range around a median that is meant to hold 80 % of measurements like it.

    `mid * low_factor .. mid * high_factor`; a kind of load without a row of its own takes the row `any`.

    Raises:
        KeyError: no such evidence or metric.
    """
    factors = _factors()
    low, high = factors.get((evidence, metric, load)) or factors[evidence, metric, "any"]
    return Range(low=mid * low, mid=mid, high=mid * high)
