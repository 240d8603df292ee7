"""The guide's grades: house rules of the guide, labelled as policy (no source outside it was found)."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files


@cache
def _bands() -> dict[tuple[str, str], tuple[tuple[str, float, float], ...]]:
    found: dict[tuple[str, str], list[tuple[str, float, float]]] = {}
    with files("chipwise.guide").joinpath("data/ratings.csv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            low = float(row["at_least"] or "-inf")
            high = float(row["below"] or "inf")
            found.setdefault((row["metric"], row["statistic"]), []).append((row["grade"], low, high))
    return {key: tuple(bands) for key, bands in found.items()}


def grade(metric: str, statistic: str, value: float | None) -> str | None:
    """The guide's grade of a value: ttft (p50, p99), tpot, throughput_per_gpu, mfu (mean).

    The bands are read in the guide's order; the first that holds the value names the grade.

    Returns:
        None for an unknown value.

    >>> grade("ttft", "p99", 0.4), grade("tpot", "mean", 0.045), grade("ttft", "p99", None)
    ('excellent', 'good', None)
    """
    if value is None:
        return None
    for name, low, high in _bands()[metric, statistic]:
        if low <= value < high:
            return name
    return None
