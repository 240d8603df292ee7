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
from chipwise.audit.items import Context, SkipError
from chipwise.audit.replay import DEFECTS
from chipwise.audit.table import Row, read_table
from chipwise.audit.training import COMPLETE, asked_of
from chipwise.audit.training_runs import Case, case_of
from chipwise.perf.training import step_arrays
from chipwise.perf.training_coefficients import NAMES, TrainingCoefficients

SCALE = 0.10
"""Expected scatter of ln(predicted / measured)."""
SOURCE_EXPONENT, SWEEP_EXPONENT = -0.7, -0.5
"""A run weighs less, the more its source and its configuration have."""
SPREAD, STAND_IN_SPREAD, HELD_SHARE = "spread_factor", 1.4, 0.8
INCOMPLETE_WEIGHT = 0.5
REINFORCED = frozenset({"grpo", "ppo", "dpo"})
FEWEST_PAIRS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """A row of `data/training_priors.csv`. Without a deviation it is fixed; with `follows` it takes another's value."""

    name: str
    scope: str
    start: float
    deviation: float | None
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
    moved = {(one.name, one.scope): theta[..., at] for at, one in enumerate(fitted_rows())}
    for one in coefficients():
        by = moved.get((one.name, one.scope), 0.0)
        if one.name.endswith("_fraction") and 0.0 < one.start < 1.0:
            found[one.name, one.scope] = 1.0 / (1.0 + (1.0 / one.start - 1.0) * np.exp(-np.asarray(by)))
        else:
            found[one.name, one.scope] = one.start * np.exp(np.asarray(by))
    for one in coefficients():
        if one.follows:
            found[one.name, one.scope] = found[one.name, one.follows]
    found[SPREAD, "all"] = np.asarray(STAND_IN_SPREAD)
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
    own |= {one.follows for one in coefficients() if one.scope in own}
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


def errors(found: Sequence[Run], theta: Array) -> list[tuple[str, float]]:
    """Source and ln(predicted / measured tokens a second) of every complete run."""
    result = []
    for one in (one for one in found if one.complete):
        log = float(_block([one], [1.0]).predict(theta[None])[0, 0])
        result.append((one.source, one.log_measured - log))
    return result


@cache
def _table(folder: Path) -> list[Run]:
    return runs(folder)


def _without(task: tuple[Path, str]) -> list[tuple[str, float]]:
    folder, source = task
    found = _table(folder)
    theta = fitted([one for one in found if one.source != source], 6)
    return errors([one for one in found if one.source == source], theta)


def calibrate(folder: Path, file: Path, workers: int) -> list[str]:
    """Fit, cross-validate, write the table; the score page in parts."""
    found = _table(folder)
    theta = fitted(found, 10)
    tasks = [(folder, source) for source in sorted({one.source for one in found if one.complete})]
    with ProcessPoolExecutor(max_workers=workers) as pool:
        left_out = [one for own in pool.map(_without, tasks) for one in own]
    spread = float(np.exp(np.quantile(np.abs([log for _, log in left_out]), HELD_SHARE)))
    _write(file, theta, spread)
    return [
        _noise_floor(found),
        _report("Naive model: 6 N (adapters 4 N) at one MFU", _naive(found)),
        _report("Operator model, not fitted", errors(found, np.zeros(len(theta)))),
        _report("Fitted, in sample", errors(found, theta)),
        _report("Cross-validated: sources left out", left_out),
        f"{HELD_SHARE:.0%} of the left-out runs lie within {spread:.2f} times and divided by.\n",
    ]


def _write(file: Path, theta: Array, spread: float) -> None:
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
        where = "80 % of the runs of left-out sources lie within it"
        source = "training measurements of public repositories"
        writer.writerow((SPREAD, "all", f"{spread:.2f}", "derived", source, where, READ_ON))


READ_ON = "2026-11-30"
"""When the measurements were collected."""


def _naive(found: Sequence[Run]) -> list[tuple[str, float]]:
    """`tokens/s = MFU x peak / (6 N)`, the MFU being the median of the other sources."""
    logs = [(one.source, _naive_mfu(one)) for one in found if one.per_chip and one.complete]
    result = []
    for source, log in logs:
        others = [other for name, other in logs if name != source]
        result.append((source, float(np.median(others)) - log))
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


def _report(title: str, found: Sequence[tuple[str, float]]) -> str:
    lines = [f"### {title}", "", "| source | n | median, % | p90, % | bias of ln |", "|---|---|---|---|---|"]
    names = [*sorted({source for source, _ in found}), "all"]
    for name in names:
        logs = np.array([log for source, log in found if name in {source, "all"}])
        off = 100.0 * np.abs(np.exp(logs) - 1.0)
        lines.append(
            f"| {name} | {len(logs)} | {np.median(off):.1f} | {np.quantile(off, 0.9):.1f} | {np.mean(logs):+.3f} |"
        )
    return "\n".join(lines) + "\n"
