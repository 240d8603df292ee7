"""The fit of the training coefficients, cross-validated by leaving sources out; complete runs are what is scored."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from calibrate.priors import DATA
from calibrate.robust import Array, Block, Settings, fit
from calibrate.training_scores import (
    HELD_SHARE,
    MIXTURE_SPREAD,
    SPREAD,
    STAND_IN_SPREAD,
    Error,
    Factors,
    ranges,
    report,
    spreads,
)
from chipwise.audit.items import Context, SkipError
from chipwise.audit.replay import DEFECTS
from chipwise.audit.table import Row, read_table
from chipwise.audit.training import COMPLETE
from chipwise.audit.training_cases import Case, asked_of
from chipwise.audit.training_runs import case_of
from chipwise.perf.training import step_arrays
from chipwise.perf.training_coefficients import NAMES, TrainingCoefficients

SCALE = 0.10
"""Expected scatter of ln(predicted / measured)."""
SOURCE_EXPONENT, SWEEP_EXPONENT = -0.7, -0.5
"""A run weighs less, the more its source and its configuration have."""
ITERATIONS, LEFT_OUT_ITERATIONS = 25, 15
INCOMPLETE_WEIGHT = 0.5
REINFORCED = frozenset({"grpo", "ppo", "dpo"})
FEWEST_PAIRS = 1
DEPTH = 3
"""Scopes that may stand above one another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """A row of `data/training_priors.csv`. Without a deviation it is fixed; with `follows` it takes another's value.

    With `under` it is moved by what moves that scope of the same name too: the deviation is what it may differ by.
    """

    name: str
    scope: str
    start: float
    deviation: float | None
    under: str
    follows: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A complete run of the table: tokens a second and chip, or seconds a step."""

    row: Row
    case: Case
    per_chip: float | None
    step_s: float | None

    @property
    def source(self) -> str:
        """Whose figures: the repository without its revision."""
        return self.row.source

    @property
    def complete(self) -> bool:
        """Whether the table calls its configuration complete."""
        return self.row.text("quality") in COMPLETE

    @property
    def log_measured(self) -> float:
        """Ln of the seconds a step takes, or of the chip-seconds a token takes."""
        return float(-np.log(self.per_chip)) if self.per_chip else float(np.log(self.step_s or 1.0))


@cache
def coefficients() -> tuple[Coefficient, ...]:
    """The table of starting values and priors."""
    with (DATA / "training_priors.csv").open(encoding="utf-8", newline="") as handle:
        return tuple(
            Coefficient(
                name=row["name"],
                scope=row["scope"],
                start=float(row["start"] or 0.0),
                deviation=float(row["deviation"]) if row["deviation"] else None,
                under=row["under"],
                follows=row["follows"],
                where=row["where"],
            )
            for row in csv.DictReader(handle)
        )


def fitted_rows() -> list[Coefficient]:
    """Those that are variables, in the order of the table."""
    return [one for one in coefficients() if one.deviation is not None]


def values_at(theta: Array) -> dict[tuple[str, str], Any]:
    """Every coefficient at `theta` (rows: sets of variables): logarithms, for fractions logits."""
    found: dict[tuple[str, str], Any] = {}
    moved: dict[tuple[str, str], Any] = {}
    for at, one in enumerate(fitted_rows()):
        moved[one.name, one.scope] = theta[..., at] + moved.get((one.name, one.under), 0.0)
    for one in coefficients():
        by = moved.get((one.name, one.scope), 0.0)
        if one.name.endswith("_fraction") and 0.0 < one.start < 1.0:
            found[one.name, one.scope] = 1.0 / (1.0 + (1.0 / one.start - 1.0) * np.exp(-np.asarray(by)))
        else:
            found[one.name, one.scope] = one.start * np.exp(np.asarray(by))
    for one in coefficients():
        if one.follows:
            found[one.name, one.scope] = found[one.name, one.follows]
    found[SPREAD, "all"] = found[MIXTURE_SPREAD, "all"] = np.asarray(STAND_IN_SPREAD)
    return found


def scopes(case: Case) -> tuple[str, ...]:
    """The scopes of a case, the narrowest first, as the product resolves them."""
    generation, precision = case.chip.architecture, case.job.precision
    return (
        f"generation:{generation}/{precision}",
        f"generation:{generation}+trainer:{case.trainer}",
        f"generation:{generation}",
        f"trainer:{case.trainer}",
        "all",
    )


def resolved(case: Case, values: dict[tuple[str, str], Any]) -> TrainingCoefficients:
    """The coefficients of a case."""
    own = scopes(case)
    return TrainingCoefficients(
        **{name: next(values[name, scope] for scope in own if (name, scope) in values) for name in NAMES}
    )


def runs(folder: Path) -> list[Run]:
    """The runs of the table that state a speed and that the product can compute.

    Training by reinforcement is left out: what its answers take to generate is the serving model's to predict.
    """
    file = folder / "training.csv"
    context = Context(file=file, models=folder / "models.csv")
    found = []
    for row in read_table(file, ("model", "method")):
        one = _run(row, context)
        if one is not None and one.case.job.method not in REINFORCED:
            found.append(one)
    return found


def _run(row: Row, context: Context) -> Run | None:
    per_chip, total, step_s = (row.positive(name) for name in ("tokens_s_per_device", "tokens_s_total", "step_s"))
    if per_chip is None and total is None and step_s is None:
        return None
    try:
        case = case_of(row, context)
        step_arrays(asked_of(case, resolved(case, values_at(np.zeros(len(fitted_rows()))))))
    except (SkipError, *DEFECTS):
        return None
    if per_chip is None and total is not None:
        per_chip = total / case.chips
    return Run(row=row, case=case, per_chip=per_chip, step_s=step_s)


def _active(case: Case) -> list[int]:
    """The variables that a case may depend on."""
    own = set(scopes(case))
    for _ in range(DEPTH):
        own |= {scope for one in coefficients() if one.scope in own for scope in (one.follows, one.under)}
    return [at for at, one in enumerate(fitted_rows()) if one.scope in own]


def _same(one: Run) -> tuple[object, ...]:
    case = one.case
    return (
        case.model.name,
        case.chip.id,
        case.trainer,
        str(case.layout),
        str(case.job),
        case.node_chips,
        case.mean_tokens,
    )


def blocks(found: Sequence[Run]) -> list[Block]:
    """Runs that are one question to the product, one block each."""
    parts: dict[tuple[object, ...], list[Run]] = {}
    for one in found:
        parts.setdefault((*_same(one), one.per_chip is None), []).append(one)
    sources, sweeps = Counter(one.source for one in found), Counter(_same(one) for one in found)
    shares = {
        id(one): float(sources[one.source]) ** SOURCE_EXPONENT
        * float(sweeps[_same(one)]) ** SWEEP_EXPONENT
        * (1.0 if one.complete else INCOMPLETE_WEIGHT)
        for one in found
    }
    mean = sum(shares.values()) / len(shares)
    return [_block(own, [shares[id(one)] / mean for one in own]) for own in parts.values()]


def _block(own: list[Run], weight: list[float]) -> Block:
    case, per_chip = own[0].case, own[0].per_chip is not None

    def predict(theta: Array) -> Array:
        with np.errstate(all="ignore"):
            found = step_arrays(asked_of(case, resolved(case, values_at(theta))))
        log = -np.log(found.tokens_per_s_per_chip) if per_chip else np.log(found.step_s)
        return np.repeat(np.broadcast_to(np.asarray(log), (len(theta),))[:, None], len(own), axis=1)

    return Block(
        predict=predict,
        active=_active(case),
        log_measured=np.array([one.log_measured for one in own]),
        scale=np.full(len(own), SCALE),
        weight=np.array(weight),
    )


def fitted(found: Sequence[Run], iterations: int) -> Array:
    """The variables fitted to these runs."""
    deviation = np.array([one.deviation for one in fitted_rows()], dtype=float)
    return fit(blocks(found), deviation, Settings(iterations=iterations, trust=1.0))


def errors(found: Sequence[Run], theta: Array, seen: frozenset[str]) -> list[Error]:
    """The error of every complete run, with variables fitted on runs of the generations `seen`."""
    result = []
    for one in (one for one in found if one.complete):
        log = float(_block([one], [1.0]).predict(theta[None])[0, 0])
        generation = one.case.chip.architecture
        result.append(
            Error(
                source=one.source,
                generation=generation,
                mixture=any(layer.experts for layer in one.case.model.layers),
                seen=generation in seen,
                log=one.log_measured - log,
            )
        )
    return result


def generations(found: Sequence[Run]) -> frozenset[str]:
    """Of the chips that ran."""
    return frozenset(one.case.chip.architecture for one in found)


@cache
def _table(folder: Path) -> list[Run]:
    return runs(folder)


def _without(task: tuple[Path, str]) -> list[Error]:
    folder, source = task
    found = _table(folder)
    kept = [one for one in found if one.source != source]
    own = [one for one in found if one.source == source]
    return errors(own, fitted(kept, LEFT_OUT_ITERATIONS), generations(kept))


def calibrate(folder: Path, file: Path, workers: int) -> list[str]:
    """Fit, cross-validate, write the table; the score page in parts."""
    _begin(file)
    found = _table(folder)
    theta, known = fitted(found, ITERATIONS), generations(found)
    tasks = [(folder, source) for source in sorted({one.source for one in found if one.complete})]
    with ProcessPoolExecutor(max_workers=workers) as pool:
        left_out = [one for own in pool.map(_without, tasks) for one in own]
    factors = spreads(left_out, known)
    _write(file, theta, factors)
    return [
        _noise_floor(found),
        report("Naive model: 6 N (adapters 4 N) at one MFU", _naive(found)),
        report("Operator model, not fitted", errors(found, np.zeros(len(theta)), known)),
        report("Fitted, in sample", errors(found, theta, known)),
        report("Cross-validated: sources left out", left_out),
        ranges(left_out, factors),
    ]


def _begin(file: Path) -> None:
    """Starting values where the table lacks a coefficient: layouts that no table states are chosen by it."""
    with file.open(encoding="utf-8", newline="") as handle:
        held = {row["name"] for row in csv.DictReader(handle)}
    if not held.issuperset(NAMES):
        stand_in = {(SPREAD, "all"): STAND_IN_SPREAD, (MIXTURE_SPREAD, "all"): STAND_IN_SPREAD}
        _write(file, np.zeros(len(fitted_rows())), stand_in)


def _write(file: Path, theta: Array, factors: Factors) -> None:
    values = values_at(theta)
    with file.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(("name", "scope", "value", "kind", "source", "where", "read_on"))
        for one in coefficients():
            measured = one.deviation is not None or (one.follows and not one.where.startswith("as the generation"))
            kind = "derived" if measured else "assumed"
            source = "training measurements of public repositories" if measured else "none"
            value = f"{float(values[one.name, one.scope]):.4g}"
            writer.writerow((one.name, one.scope, value, kind, source, one.where, READ_ON))
        source = "training measurements of public repositories"
        for (name, scope), factor in factors.items():
            what = "generations no other source knows" if (name, scope) == (SPREAD, "all") else "left-out sources"
            where = f"80 % of the runs of {what} lie within it"
            writer.writerow((name, scope, f"{factor:.2f}", "derived", source, where, READ_ON))


READ_ON = "2026-11-30"
"""When the measurements were collected."""


def _naive(found: Sequence[Run]) -> list[Error]:
    """`tokens/s = MFU x peak / (6 N)`, the MFU being the median of the other sources."""
    logs = [(one, _naive_mfu(one)) for one in found if one.per_chip and one.complete]
    result = []
    for run, log in logs:
        others = [other for one, other in logs if one.source != run.source]
        off = float(np.median(others)) - log
        result.append(
            Error(source=run.source, generation=run.case.chip.architecture, mixture=False, seen=True, log=off)
        )
    return result


def _naive_mfu(one: Run) -> float:
    case = one.case
    per_token = (4.0 if case.job.adapts else 6.0) * float(case.model.params_active or case.model.params_total)
    peak = case.chip.dense_flops_per_s.get("bf16") or max(case.chip.dense_flops_per_s.values())
    return float(np.log((one.per_chip or 1.0) * per_token / peak))


def _noise_floor(found: Sequence[Run]) -> str:
    parts: dict[tuple[object, ...], list[Run]] = {}
    for one in found:
        parts.setdefault((*_same(one), one.per_chip is None), []).append(one)
    within: list[float] = []
    across: list[float] = []
    for own in parts.values():
        for a, b in combinations(own, 2):
            (within if a.source == b.source else across).append(abs(a.log_measured - b.log_measured))
    lines = [
        "### Noise floor: runs that are one question",
        "",
        "| pairs | n | median, % | 80 % within |",
        "|---|---|---|---|",
    ]
    for title, gaps in (("within a source", within), ("across sources", across)):
        if len(gaps) >= FEWEST_PAIRS:
            median, most = 100.0 * float(np.expm1(np.median(gaps))), float(np.exp(np.quantile(gaps, HELD_SHARE)))
            lines.append(f"| {title} | {len(gaps)} | {median:.1f} | {most:.2f}x |")
    return "\n".join(lines) + "\n"
