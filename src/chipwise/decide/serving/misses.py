"""How a layout misses: the memory its devices lack, the bar it comes nearest to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from chipwise.decide.failures import Failure
from chipwise.decide.serving.laid import nearest
from chipwise.units import finite

if TYPE_CHECKING:
    from chipwise.decide.question import Demand
    from chipwise.decide.serving.evaluate import Evaluated
    from chipwise.decide.serving.seats import Layout
    from chipwise.precision import PrecisionOption


def missed_rows(evaluated: Evaluated) -> list[int]:
    """Rows that meet the bars at no number of units: of each platform the one that misses least."""
    best = np.min(np.where(np.isnan(evaluated.miss), np.inf, evaluated.miss), axis=1)
    missed = ((evaluated.layouts[row], float(best[row]), row) for row in map(int, np.flatnonzero(best > 1.0)))
    return nearest(missed)


def _layout_words(layout: Layout, option: PrecisionOption) -> dict[str, Any]:
    names, profile = ("tp", "pp", "ep", "dp", "cp"), layout.seat.platform.profile
    return {
        "precision": option.format,
        "parallelism": {name: int(getattr(layout.split, name)) for name in names},
        "engine": layout.seat.engine.name,
        **({} if profile is None else {"profile": profile.name}),
    }


def memory_failure(layout: Layout, option: PrecisionOption, short_bytes: float) -> Failure:
    """A layout whose devices do not hold the weights and one request of the full context."""
    devices, split, profile = layout.devices, layout.split, layout.seat.platform.profile
    one = "one device" if profile is None else f"one MIG slice of {profile.name}"
    place = f"on {one}" if devices == 1 else f"over {devices} devices (tp={int(split.tp)}, pp={int(split.pp)})"
    each = "" if devices == 1 else " on each"
    return Failure(
        stage="memory",
        distance=short_bytes * devices,
        reason=f"does not fit at {option.format} {place}: {short_bytes / 2**30:.1f} GiB short{each}",
        source="memory budget",
        change="fewer bits, a shorter context, or a size with more memory"
        if profile is None
        else "fewer bits, a shorter context, or whole GPUs: a replica lives on one slice",
        shortfall={"value": short_bytes, "unit": "bytes per device"},
        nearest=_layout_words(layout, option),
    )


def slo_failure(evaluated: Evaluated, row: int, demand: Demand) -> Failure:
    """A row that misses a bar, at the number of units at which it comes nearest."""
    column = int(np.argmin(np.where(np.isnan(evaluated.miss[row]), np.inf, evaluated.miss[row])))
    ttft, tpot = float(evaluated.ttft_p99_s[row, column]), float(evaluated.tpot_p99_s[row, column])
    over = {
        "P99 TTFT": (ttft, demand.ttft_p99_s),
        "P99 TPOT": (tpot, demand.tpot_p99_s),
    }
    ratios = {name: got / bar for name, (got, bar) in over.items() if bar}
    worst = max(ratios, key=lambda name: ratios[name]) if ratios else "throughput"
    nearest = _layout_words(evaluated.layouts[row], evaluated.option) | {
        "units": int(evaluated.units[column]),
        "instances": int(evaluated.units[column]) * evaluated.packings[row].instances_per_unit,
        "ttft_p99_s": finite(ttft),
        "tpot_p99_s": finite(tpot),
    }
    miss = float(evaluated.miss[row, column])
    shortfall: dict[str, float | str] | None = None
    carries = bool(np.isfinite(miss))  # else requests pile up without end at every number of units
    little = f" ({miss:.2g} times too little)" if carries else ""
    reason = f"{int(evaluated.units[-1])} of them do not reach the load{little}"
    if carries and ratios.get(worst, 0.0) > 1.0:
        got, bar = over[worst]
        reason = f"{worst} {got * 1e3:.0f} ms at best (asked: {(bar or 0) * 1e3:.0f} ms)"
        shortfall = {"value": got - (bar or 0.0), "unit": "s"}
    return Failure(
        stage="slo",
        distance=miss,
        reason=reason,
        source="serving prediction",
        change=f"a bar of {miss:.2f} times what was asked, or a faster size"
        if carries
        else "a lower rate, or a faster size",
        shortfall=shortfall,
        nearest=nearest,
    )
