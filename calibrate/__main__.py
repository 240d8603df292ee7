"""`python -m calibrate [PART...]`: fits and cross-validates; perf/data and pages of docs/decisions.

Serving is fitted to the table in `measurements/`, which `python -m calibrate collect` writes from what was published
(the folder `shared` beside the repository). What needs that folder is not done without it, and says so.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TRUTH = ROOT.parent / "shared" / "truth"
MEASURED = ROOT / "measurements" / "serving.csv"
DATA = ROOT / "src" / "chipwise" / "perf" / "data"
MEMORY = ROOT / "src" / "chipwise" / "memory" / "data"
NOTES = ROOT / "docs" / "decisions"
WORKERS, ITERATIONS = 2, 10
_NOTE = "<!-- written by `make calibrate`: do not edit -->\n\n"


def say(text: str) -> None:
    """One message, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def serving() -> None:
    """The serving parameters, their ranges and their scores."""
    import numpy as np

    from calibrate import baselines, folds, scores, serving_tables
    from calibrate.serving import residuals
    from calibrate.serving_items import groups

    model, theta, found = folds.whole(MEASURED, ITERATIONS)
    parts = groups(found)
    start = residuals(model, np.zeros(len(model.variables)), parts)
    own = residuals(model, theta, parts)
    by_model = folds.cross_validated(MEASURED, "models", WORKERS)
    by_source = folds.cross_validated(MEASURED, "sources", WORKERS)
    serving_tables.write_parameters(DATA / "calibrated.csv", model, theta, own)
    serving_tables.write_coverage(DATA / "coverage.csv", own)
    backed = {"measured": own, "calibrated": by_model, "transferred": by_source}
    serving_tables.write_ranges(DATA / "ranges.csv", backed)
    largest = max(
        {one.laboratory for one in found},
        key=lambda name: sum(one.laboratory == name for one in found if one.complete),
    )
    pages = [
        baselines.noise_floor(found),
        scores.report("Naive model: sheet rates only", baselines.naive(found)),
        scores.report("Operator model, not fitted", start),
        scores.report("Fitted, in sample", own),
        scores.report("Cross-validated: models left out", by_model),
        scores.report("Cross-validated: sources left out", by_source),
        scores.report(
            f"Models left out, without {largest}", [one for one in by_model if one.measurement.laboratory != largest]
        ),
        scores.report(
            f"Sources left out, without {largest}", [one for one in by_source if one.measurement.laboratory != largest]
        ),
    ]
    _write("serving-scores.md", "# Serving: scores of the calibration", pages)


def _write(name: str, title: str, pages: list[str]) -> None:
    NOTES.mkdir(exist_ok=True)
    text = "\n".join([title + "\n", *pages])
    (NOTES / name).write_text(_NOTE + text, encoding="utf-8")
    say(text)


def collect() -> None:
    """The table of serving measurements, from those published beside the repository."""
    from calibrate.collect import collected, write

    rows, left = collected(TRUTH)
    write(MEASURED, rows)
    say(f"{MEASURED.name}: {len(rows)} runs, {MEASURED.stat().st_size / 1e6:.2f} MB")
    for reason, count in sorted(left.items()):
        say(f"left out, {reason}: {count} figures")


def _published(name: str) -> bool:
    if TRUTH.is_dir():
        return True
    beside = TRUTH.parent.name
    say(f"calibrate: {name} skipped, the published measurements are not there (the folder {beside} beside it)")
    return False


def training() -> None:
    """The training coefficients and their scores."""
    from calibrate import training as fitted

    pages = fitted.calibrate(TRUTH, DATA / "training_coefficients.csv", WORKERS)
    _write("training-scores.md", "# Training: scores of the calibration", pages)


def reports() -> None:
    """Public reports of whole runs against what is predicted of them."""
    from calibrate import training_reports

    _write("training-reports.md", "# Training: public reports of whole runs", training_reports.page(TRUTH))


def reinforcement() -> None:
    """What the loop of reinforcement adds to its parts."""
    from calibrate import training_reinforcement as fitted

    pages = fitted.calibrate(TRUTH, DATA / "training_rollout.csv")
    _write("training-reinforcement.md", "# Training: steps of reinforcement", pages)


def memory() -> None:
    """The numbers that training memory shares over trainers, and their scores."""
    from calibrate import training_memory as fitted

    pages = fitted.calibrate(TRUTH, MEMORY / "training_fitted.csv")
    _write("training-memory-scores.md", "# Training memory: scores of the calibration", pages)


PARTS = {
    "serving": serving,
    "memory": memory,
    "training": training,
    "reinforcement": reinforcement,
    "reports": reports,
}
VERBS = PARTS | {"collect": collect}


def main(asked: list[str]) -> int:
    """Run what is asked, or fit all parts."""
    unknown = [name for name in asked if name not in VERBS]
    if unknown:
        say(f"calibrate: no part {unknown[0]}: choose {', '.join(VERBS)}")
        return 2
    for name in asked or PARTS:
        if name == "serving" or _published(name):
            VERBS[name]()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
