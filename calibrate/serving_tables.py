"""Writes the fitted serving parameters, what they cover and their ranges into perf/data."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from calibrate.priors import starts
from calibrate.robust import Array
from calibrate.scores import weighted_quantile
from calibrate.serving import Model, Residual
from calibrate.serving_items import scopes
from chipwise.perf.parameters import NAMES, runtime_of

LEAST_FACTOR = 0.03
"""A factor nearer to 1 than this in ln is no finding: the scope keeps what stands above it."""
UNBACKED = {"tpot": 2.6, "ttft": 3.2, "throughput": 2.8}
"""Times and divided by, where nothing like it was measured: the middle of what unseen chips and engines showed."""
NARROWEST = (0.9, 1.12)
LEAST_FIGURES = 10
"""A chip, runtime and family with fewer figures than this is not called measured."""
LEAST_FOR_A_LOAD, LEAST_SOURCES = 20, 3
POOLED = 0.9
"""How much a range listens to residuals as they are many, against sources weighed alike: coverage is counted by run."""
RANGED = {"ttft": "ttft", "tpot": "tpot", "e2e": "tpot", "throughput": "throughput"}
"""Whose range a quantity takes."""
LOADS = ("any", "single", "static", "closed", "rate", "offline")
METRICS = ("ttft", "tpot", "throughput")
Backed = Mapping[str, Sequence[Residual]]
"""Residuals by evidence, the strongest first."""


def _write(file: Path, header: str, rows: Iterable[Sequence[object]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(header.split())
        writer.writerows(rows)


def write_parameters(file: Path, model: Model, theta: Array, found: Sequence[Residual]) -> None:
    """One row a value (scope `all`) or factor, with what it was fitted on and what is left of the residual."""
    known, rows = starts(), []
    for variable, log in zip(model.variables, theta, strict=True):
        if variable.scope != "all" and abs(log) < LEAST_FACTOR:
            continue
        start = known.get((variable.name, variable.scope))
        value = float(np.exp(log)) * (start.value if start else 1.0)
        if variable.scope == "all":
            value = min(value, 1.0) if variable.name.endswith("_fraction") else value
        rows.append((variable.name, variable.scope, f"{value:.3g}", "calibrated", *_basis(variable.scope, found)))
    have = {(row[0], row[1]) for row in rows}
    rows += [
        (name, scope, f"{start.value:.3g}", start.kind, start.source, "", "")
        for (name, scope), start in known.items()
        if (name, scope) not in have
    ]
    rows.sort(key=lambda row: (NAMES.index(row[0]), row[1] != "all", row[1]))
    _write(file, "name scope value kind source fitted_on residual", rows)


def _basis(scope: str, found: Sequence[Residual]) -> tuple[str, str, str]:
    own = [one for one in found if scope == "all" or scope in scopes(one.measurement.run)]
    counted = Counter(one.measurement.source.split("@")[0] for one in own)
    named = " · ".join(name for name, _ in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))[:4])
    sources = {one.measurement.laboratory for one in own}
    left = float(np.median([abs(one.log_ratio) for one in own]))
    return (
        f"fit of published measurements: {named}",
        f"{len(own)} measurements of {len(sources)} sources",
        f"median |log| {left:.2f}",
    )


def write_coverage(file: Path, found: Sequence[Residual]) -> None:
    """How many figures stand behind each chip, runtime and family of models."""
    counted = Counter(
        (run.chip_id, runtime_of(run.engine.name, run.engine.version), run.model.model.model_type)
        for run in (one.measurement.run for one in found)
    )
    rows = [(*key, count) for key, count in sorted(counted.items()) if count >= LEAST_FIGURES]
    _write(file, "chip runtime model_type measurements", rows)


def write_ranges(file: Path, backed: Backed) -> None:
    """Factors on a median that hold 80 % of the residuals, never narrower for weaker evidence."""
    pools = judged(backed)
    rows = [row for metric in METRICS for load in LOADS for row in _ranges(metric, load, pools)]
    _write(file, "evidence metric load low_factor high_factor measurements sources", rows)


def judged(backed: Backed) -> Backed:
    """The residuals that a range of each evidence answers for.

    A run whose engine's release is only assumed counts one step weaker than its fold, as where it is predicted.
    """
    names, pools = list(backed), {name: list[Residual]() for name in backed}
    for place, name in enumerate(names):
        weaker = names[min(place + 1, len(names) - 1)]
        for one in backed[name]:
            if one.measurement.run.assumed_release:
                pools[weaker].append(one)
            elif one.measurement.complete:
                pools[name].append(one)
    return pools


def _ranges(metric: str, load: str, pools: Backed) -> Iterable[tuple[object, ...]]:
    if (metric, load) == ("ttft", "offline"):
        return
    low, high = NARROWEST
    for evidence, found in pools.items():
        whole = [one for one in found if RANGED[one.measurement.quantity] == metric]
        own = [one for one in whole if load in {"any", one.measurement.run.load.kind}]
        own = own if len(own) >= LEAST_FOR_A_LOAD else whole
        sources = {one.measurement.laboratory for one in own}
        bounds = _bounds(own)
        if metric != "throughput" and len(sources) < LEAST_SOURCES:
            wide = _bounds(whole)
            bounds = min(bounds[0], wide[0]), max(bounds[1], wide[1])
        least, most = 1.0 / UNBACKED[metric], UNBACKED[metric]
        low, high = min(low, max(bounds[0], least)), max(high, min(bounds[1], most))
        yield evidence, metric, load, f"{low:.2f}", f"{high:.2f}", len(own), len(sources)
    yield "physics", metric, load, f"{1.0 / UNBACKED[metric]:.2f}", f"{UNBACKED[metric]:.2f}", 0, 0


def _bounds(own: Sequence[Residual]) -> tuple[float, float]:
    """Measured / predicted, its 10 % and 90 % quantiles: mostly as pooled, the rest with sources weighed alike."""
    logs = [one.log_ratio for one in own]
    sources = [one.measurement.laboratory for one in own]
    low, high = (
        (1.0 - POOLED) * weighted_quantile(logs, sources, share) + POOLED * float(np.quantile(logs, share))
        for share in (0.9, 0.1)
    )
    return float(np.exp(-low)), float(np.exp(-high))
