"""The fit of what no document says of training memory, cross-validated by leaving sources out.

What a trainer keeps stands in `training_recipes.csv` with its document; here are the few numbers that all trainers
share. Where a source is left out, so is what its recipe was given for its sake (`data/training_memory_priors.csv`).
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from calibrate.priors import DATA
from chipwise.audit.items import Context, SkipError
from chipwise.audit.replay import DEFECTS
from chipwise.audit.table import Row, read_table
from chipwise.audit.training import GIB, peak_gib
from chipwise.audit.training_cases import Case
from chipwise.audit.training_runs import case_of
from chipwise.memory.training import training_memory
from chipwise.memory.training_recipes import Fitted, fitted, recipe_of

STEPS = {
    "eager_factor": 0.02,
    "fused_factor": 0.02,
    "process_bytes": 0.1e9,
    "group_bytes": 0.1e9,
    "slack_fraction": 0.01,
}
"""What is fitted, and how finely."""
START = {"eager_factor": 1.0, "fused_factor": 1.0, "process_bytes": 1.0e9, "group_bytes": 1.0e9, "slack_fraction": 0.05}
"""Textbook values, to which a small penalty a step pulls."""
PULL = 2e-4
SOURCE_EXPONENT = -0.5
"""A row weighs less, the more its source has."""
SWEEPS = 4
USABLE = np.arange(0.90, 1.0001, 0.01)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A row that states a peak, an end, or both, with its question."""

    row: Row
    case: Case
    peak_gib: float | None

    @property
    def source(self) -> str:
        """Whose figures: the repository without its revision."""
        return self.row.source

    def gib(self, numbers: Fitted, *, without: str | None = None) -> float:
        """Predicted GiB of the fullest device, as if the source `without` had never been read."""
        recipe = recipe_of(self.case.job)
        for name, value in _priors().get((without or "", recipe.name), {}).items():
            recipe = replace(recipe, **{name: value})  # type: ignore[arg-type]  # the table names numbers
        asked = replace(self.case.asked, fitted=numbers, recipe=recipe)
        return float(training_memory(asked).total_bytes) / GIB


@cache
def _priors() -> dict[tuple[str, str], dict[str, float]]:
    """By source and recipe: what would stand in the table without that source."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    with (DATA / "training_memory_priors.csv").open(encoding="utf-8", newline="") as handle:
        for row in csv.DictReader(handle):
            found.setdefault((row["source"], row["recipe"]), {})[row["name"]] = float(row["value"])
    return found


def runs(folder: Path) -> list[Run]:
    """The rows of the table that the product can size."""
    file = folder / "training.csv"
    context = Context(file=file, models=folder / "models.csv")
    found = []
    for row in read_table(file, ("model", "method")):
        try:
            found.append(Run(row=row, case=case_of(row, context), peak_gib=peak_gib(row)))
        except (SkipError, *DEFECTS):
            continue
    return found


def _loss(found: Sequence[Run], weights: Sequence[float], numbers: Fitted) -> float:
    away = sum(abs((getattr(numbers, name) - START[name]) / step) for name, step in STEPS.items())
    logs = [abs(np.log(run.gib(numbers) / (run.peak_gib or 1.0))) for run in found]
    return float(np.average(logs, weights=weights) + PULL * away)


def _distinct(found: Iterable[Run]) -> list[Run]:
    """One run of those that are one question with one answer."""
    kept: dict[str, Run] = {}
    for run in found:
        if run.peak_gib is not None:
            kept.setdefault(f"{run.case.model.name}{run.case.layout}{run.case.job}{run.peak_gib}", run)
    return list(kept.values())


def fit(found: Sequence[Run], start: Fitted) -> Fitted:
    """Coordinate descent on the mean of |ln(predicted / measured)|, sources weighted evenly but for a root."""
    peaks = _distinct(found)
    counts = Counter(run.source for run in peaks)
    weights = [float(counts[run.source]) ** SOURCE_EXPONENT for run in peaks]
    best = replace(start, **START)
    least = _loss(peaks, weights, best)
    for width in (8, 4, 2, 1)[:SWEEPS]:
        for name, step in STEPS.items():
            for sign in (1, -1):
                while True:
                    tried = replace(best, **{name: max(getattr(best, name) + sign * width * step, 0.0)})
                    loss = _loss(peaks, weights, tried)
                    if loss >= least:
                        break
                    best, least = tried, loss
    return best


Judged = tuple[Run, float]
"""A run and its predicted GiB."""


def _out(found: Sequence[Run], source: str, start: Fitted) -> tuple[list[Judged], Fitted]:
    """The runs of a source, predicted without it."""
    numbers = fit([run for run in found if run.source != source], start)
    return [(run, run.gib(numbers, without=source)) for run in found if run.source == source], numbers


def _usable(judged: Sequence[Judged]) -> float:
    """The share of a device that decides best between what ran and what did not; the largest of equals."""
    scores = [_balanced([(run, gib, share) for run, gib in judged])[2] for share in USABLE]
    return float(USABLE[len(scores) - 1 - int(np.argmax(scores[::-1]))])


def _balanced(judged: Sequence[tuple[Run, float, float]]) -> tuple[float, float, float]:
    """Recall of what ran, of what ran out of memory, and their mean."""
    recalls = []
    for ran in (True, False):
        own = [
            (gib * GIB <= share * run.case.capacity_bytes) == ran
            for run, gib, share in judged
            if run.row.yes("oom") != ran
        ]
        recalls.append(float(np.mean(own)) if own else float("nan"))
    return recalls[0], recalls[1], float(np.mean(recalls))


def calibrate(folder: Path, file: Path) -> list[str]:
    """Fit, leave sources out, write the table; the score page in parts."""
    found, start = runs(folder), fitted()
    inside = fit(found, start)
    sources = sorted({run.source for run in found})
    with_peaks = {run.source for run in found if run.peak_gib is not None}
    left_out: list[Judged] = []
    for source in sources:
        if source in with_peaks:
            left_out += _out(found, source, start)[0]
        else:
            left_out += [(run, run.gib(inside)) for run in found if run.source == source]
    usable = _usable(left_out)
    shares = {source: _usable([one for one in left_out if one[0].source != source]) for source in sources}
    held = [(run, gib, shares[run.source]) for run, gib in left_out]
    low, high = _spread(left_out)
    numbers = replace(inside, usable_fraction=usable, low_fraction=low, high_fraction=high)
    _write(file, numbers)
    textbook = replace(start, **START)
    return [
        _report("Textbook values, not fitted", [(run, run.gib(textbook)) for run in found]),
        _report("Fitted, in sample", [(run, run.gib(inside)) for run in found]),
        _report("Cross-validated: sources left out", left_out),
        _ends("Ran or ran out of memory, sources left out of peaks and threshold", held),
        f"Fitted: {', '.join(f'{name} {value:.4g}' for name, value in asdict(numbers).items())}.\n",
    ]


def _spread(judged: Sequence[Judged]) -> tuple[float, float]:
    """Measured over predicted: what 8 in 10 of the left-out runs lie between, every source's root counted."""
    logs, weights = [], []
    counts = Counter(run.source for run, _ in judged if run.peak_gib is not None)
    for run, gib in judged:
        if run.peak_gib is not None:
            logs.append(np.log(run.peak_gib / gib))
            weights.append(float(counts[run.source]) ** SOURCE_EXPONENT)
    order = np.argsort(logs)
    along = np.cumsum(np.array(weights)[order]) / np.sum(weights)
    low, high = (np.array(logs)[order][np.searchsorted(along, share)] for share in (0.1, 0.9))
    return float(np.exp(low)), float(np.exp(high))


def _write(file: Path, numbers: Fitted) -> None:
    """The table with new values; what is assumed stays as it is."""
    with file.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    for row in rows:
        if row["kind"] == "derived":
            row["value"] = f"{getattr(numbers, row['name']):.4g}"
    with file.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _report(title: str, judged: Sequence[Judged]) -> str:
    lines = [f"### {title}", "", "| rows | n | median, % | p90, % | bias of ln |", "|---|---|---|---|---|"]
    peaks = [(run, np.log(gib / run.peak_gib)) for run, gib in judged if run.peak_gib is not None]
    parts: dict[str, Callable[[Run], bool]] = {
        **{source: lambda run, own=source: run.source == own for source in sorted({run.source for run, _ in peaks})},  # type: ignore[misc]  # mypy knows no default argument of a lambda
        "quality A": lambda run: run.row.text("quality") == "A",
        "quality B": lambda run: run.row.text("quality") == "B",
        "all": lambda run: run.peak_gib is not None,
    }
    for name, mine in parts.items():
        logs = np.array([log for run, log in peaks if mine(run)])
        off = 100.0 * np.abs(np.expm1(logs))
        lines.append(
            f"| {name} | {len(logs)} | {np.median(off):.1f} | {np.quantile(off, 0.9):.1f} | {np.mean(logs):+.3f} |"
        )
    return "\n".join(lines) + "\n"


def _ends(title: str, judged: Sequence[tuple[Run, float, float]]) -> str:
    ran, out, both = _balanced(judged)
    lines = [f"### {title}", "", "| | n | recall, % |", "|---|---|---|"]
    lines.append(f"| ran | {sum(not run.row.yes('oom') for run, _, _ in judged)} | {100 * ran:.1f} |")
    lines.append(f"| ran out of memory | {sum(run.row.yes('oom') for run, _, _ in judged)} | {100 * out:.1f} |")
    lines.append(f"| balanced accuracy | {len(judged)} | {100 * both:.1f} |")
    return "\n".join(lines) + "\n"
