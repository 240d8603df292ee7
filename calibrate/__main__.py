"""`python -m calibrate [PART...]`: fits and cross-validates; perf/data and pages of docs/decisions.

The measurements stand in the folder `shared` beside the repository; without it nothing is done, aloud.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TRUTH = ROOT.parent / "shared" / "truth"
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

    model, theta, found = folds.whole(TRUTH, ITERATIONS)
    parts = groups(found)
    start = residuals(model, np.zeros(len(model.variables)), parts)
    own = residuals(model, theta, parts)
    by_model = folds.cross_validated(TRUTH, "models", WORKERS)
    by_source = folds.cross_validated(TRUTH, "sources", WORKERS)
    serving_tables.write_parameters(DATA / "calibrated.csv", model, theta, own)
    serving_tables.write_coverage(DATA / "coverage.csv", own)
    backed = {"measured": own, "calibrated": by_model, "transferred": by_source}
    serving_tables.write_ranges(DATA / "ranges.csv", backed)
    largest = max(
        {one.source for one in found}, key=lambda name: sum(one.source == name for one in found if one.complete)
    )
    pages = [
        baselines.noise_floor(found),
        scores.report("Naive model: sheet rates only", baselines.naive(found)),
        scores.report("Operator model, not fitted", start),
        scores.report("Fitted, in sample", own),
        scores.report("Cross-validated: models left out", by_model),
        scores.report("Cross-validated: sources left out", by_source),
        scores.report(
            f"Models left out, without {largest}", [one for one in by_model if one.measurement.source != largest]
        ),
        scores.report(
            f"Sources left out, without {largest}", [one for one in by_source if one.measurement.source != largest]
        ),
    ]
    _write("serving-scores.md", "# Serving: scores of the calibration", pages)


def _write(name: str, title: str, pages: list[str]) -> None:
    NOTES.mkdir(exist_ok=True)
    text = "\n".join([title + "\n", *pages])
    (NOTES / name).write_text(_NOTE + text, encoding="utf-8")
    say(text)


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


def main(asked: list[str]) -> int:
    """Run the parts that are asked, or all."""
    if not TRUTH.is_dir():
        say(f"calibrate: skipped, the published measurements are not there (the folder {TRUTH.parent.name} beside it)")
        return 0
    unknown = [name for name in asked if name not in PARTS]
    if unknown:
        say(f"calibrate: no part {unknown[0]}: choose {', '.join(PARTS)}")
        return 2
    for name in asked or PARTS:
        PARTS[name]()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
