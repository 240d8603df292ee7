"""The guide's grades: house rules of the guide, labelled as policy (no source outside it was found)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from chipwise.errors import UnknownNameError
from chipwise.guide.tables import cite, table


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """One grade of a metric: `at_least` <= value < `below`, either None where the band is open."""

    metric: str
    statistic: str
    grade: str
    at_least: float | None
    below: float | None
    unit: str
    source: str


@cache
def bands(metric: str) -> tuple[Band, ...]:
    """The grades of a metric, in the guide's order; empty where the guide grades it not.

    >>> [band.grade for band in bands("tpot")]
    ['excellent', 'good', 'acceptable', 'risky']
    """
    return tuple(_band(row) for row in table("ratings") if row["metric"] == metric)


def _band(row: Mapping[str, str]) -> Band:
    return Band(
        metric=row["metric"],
        statistic=row["statistic"],
        grade=row["grade"],
        at_least=float(row["at_least"]) if row["at_least"] else None,
        below=float(row["below"]) if row["below"] else None,
        unit=row["unit"],
        source=cite(row["source"]),
    )


def grade(metric: str, statistic: str, value: float | None) -> str | None:
    """The guide's grade of a value.

    The bands are read in the guide's order; the first that holds the value names the grade.

    Args:
        metric: ttft (p50, p99), tpot, throughput_per_gpu, mfu (mean), communication_efficiency (tp, dp, ep, pp).
        statistic: which of the metric's scales.
        value: in the scale's unit: seconds, tokens a second, or a fraction.

    Returns:
        None for an unknown value.

    Raises:
        UnknownNameError: no such scale.

    >>> grade("ttft", "p99", 0.4), grade("tpot", "mean", 0.045), grade("ttft", "p99", None)
    ('excellent', 'good', None)
    """
    scale = [band for band in bands(metric) if band.statistic == statistic]
    if not scale:
        known = {f"{row['metric']} {row['statistic']}" for row in table("ratings")}
        raise UnknownNameError("rating", f"{metric} {statistic}", known)
    if value is None:
        return None
    return next((band.grade for band in scale if _holds(band, value)), None)


def _holds(band: Band, value: float) -> bool:
    above = band.at_least is None or band.at_least <= value
    return above and (band.below is None or value < band.below)
