"""How far a set of residuals is off: every source counted once, and pooled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from calibrate.serving import Residual

_LATENCY_LOADS = frozenset({"closed", "rate", "single"})


def bar_of(one: Residual) -> str | None:
    """Which line of the targets a residual counts for; None: none."""
    measured = one.measurement
    kind = measured.run.load.kind
    if not measured.complete:
        return None
    if measured.quantity in {"ttft", "tpot"} and kind in _LATENCY_LOADS:
        return {"ttft": "TTFT, below capacity", "tpot": "TPOT and ITL, below capacity"}[measured.quantity]
    if measured.quantity == "throughput" and kind == "offline":
        return "tok/s offline, varied lengths" if measured.run.load.osl_cv > 0 else "tok/s offline, fixed lengths"
    return None


def weighted_quantile(values: Sequence[float], sources: Sequence[str], quantile: float) -> float:
    """The quantile where every source weighs alike."""
    found = np.asarray(values, dtype=float)
    names, counts = np.unique(np.asarray(sources), return_counts=True)
    share = dict(zip(names, 1.0 / counts, strict=True))
    weight = np.array([share[source] for source in sources])
    order = np.argsort(found, kind="stable")
    reached = np.cumsum(weight[order]) / weight.sum()
    return float(found[order][min(int(np.searchsorted(reached, quantile)), len(found) - 1)])


def report(title: str, found: Iterable[Residual]) -> str:
    """A table in markdown: per target the error with sources weighed alike, pooled, and by source."""
    parts: dict[str, list[Residual]] = {}
    for one in found:
        bar = bar_of(one)
        if bar is not None:
            parts.setdefault(bar, []).append(one)
    lines = [
        f"### {title}",
        "",
        "| metric | n | sources alike: median, p90 % | pooled: median, p90 % | bias of ln | medians by source, % |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join(lines + [_line(bar, own) for bar, own in sorted(parts.items())]) + "\n"


def _line(bar: str, own: Sequence[Residual]) -> str:
    logs = np.array([one.log_ratio for one in own])
    errors, sources = np.abs(np.exp(logs) - 1.0) * 100.0, [one.measurement.laboratory for one in own]
    alike = [weighted_quantile(list(errors), sources, share) for share in (0.5, 0.9)]
    pooled = [float(np.quantile(errors, share)) for share in (0.5, 0.9)]
    by_source = ", ".join(
        f"{name} {np.median(errors[[source == name for source in sources]]):.0f} ({sources.count(name)})"
        for name in sorted(set(sources))
    )
    return (
        f"| {bar} | {len(own)} | {alike[0]:.1f}, {alike[1]:.0f} | {pooled[0]:.1f}, {pooled[1]:.0f} "
        f"| {np.median(logs):+.2f} | {by_source} |"
    )
