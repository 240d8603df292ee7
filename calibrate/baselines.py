"""What a prediction must beat, and what it cannot: a naive model, and how far equal runs are apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from calibrate.figures import Measurement
from calibrate.serving import Residual
from chipwise.audit.runs import Run
from chipwise.errors import ChipwiseError
from chipwise.precision import bytes_per_param, capability

Key = Callable[[Run], tuple[object, ...]]
MOST_PAIRS = 40
"""Pairs taken from one set of equal runs, so that a long sweep does not decide."""


def naive(found: Sequence[Measurement]) -> list[Residual]:
    """Weights over bandwidth, FLOPs of the prompt over the peak: sheet rates, nothing else.

    `TPOT = bytes of active weights / (devices x bandwidth)`, `TTFT = 2 x active params x isl / (devices x peak)`,
    output tokens a second at full compute: `devices x peak / (2 x active params) x osl / (isl + osl)`.
    """
    residuals = []
    for one in found:
        value = _naive(one)
        if value:
            residuals.append(Residual(measurement=one, log_ratio=float(np.log(value / one.value))))
    return residuals


def _naive(one: Measurement) -> float | None:
    run = one.run
    model, chip = run.model.model, run.chip
    name = model.quantisation.weight_format if model.quantisation else (model.dtype or "bf16")
    try:
        peak, width = capability(chip, name).flops_per_s, bytes_per_param(name)
    except ChipwiseError:
        return None
    if peak is None or chip.memory_bandwidth_bytes_per_s is None or model.params_active is None:
        return None
    share = run.place.tp * run.place.pp * run.place.dp / chip.cores
    token_s = model.params_active * width / (share * chip.memory_bandwidth_bytes_per_s)
    prompt_s = 2.0 * model.params_active * run.load.isl / (share * peak)
    if one.quantity == "tpot":
        return token_s
    if one.quantity == "ttft":
        return prompt_s
    if one.figure == "output_tokens_per_s":
        whole = run.place.chips * peak / (2.0 * model.params_active)
        return whole * run.load.osl / (run.load.isl + run.load.osl)
    return None


def _same_run(run: Run) -> tuple[object, ...]:
    return (*_same_release(run), run.engine.version)


def _same_release(run: Run) -> tuple[object, ...]:
    return (*_same_engine(run), run.engine.name)


def _same_engine(run: Run) -> tuple[object, ...]:
    return run.model, run.chip_id, run.place, run.load, run.eager


APART: dict[str, tuple[Key, Key | None]] = {
    "same run repeated": (_same_run, None),
    "release of the engine": (_same_release, lambda run: (run.engine.version,)),
    "engine": (_same_engine, lambda run: (run.engine.name,)),
}
"""What is equal within a pair, and what must differ; None: nothing must."""


def noise_floor(found: Sequence[Measurement]) -> str:
    """A table in markdown: |ln| between figures of runs that differ in one thing only."""
    lines = [
        "### Noise floor",
        "",
        "| pairs that differ in | metric | pairs | median, % | 80 % within |",
        "|---|---|---|---|---|",
    ]
    for title, (equal, differ) in APART.items():
        for quantity in ("tpot", "ttft", "throughput"):
            gaps = _gaps([one for one in found if one.quantity == quantity], equal, differ)
            if gaps:
                within = float(np.exp(np.quantile(gaps, 0.8)))
                median = 100.0 * float(np.expm1(np.median(gaps)))
                lines.append(f"| {title} | {quantity} | {len(gaps)} | {median:.1f} | {within:.2f}x |")
    return "\n".join(lines) + "\n"


def _gaps(found: Sequence[Measurement], equal: Key, differ: Key | None) -> list[float]:
    parts: dict[tuple[object, ...], list[Measurement]] = {}
    for one in found:
        parts.setdefault((one.figure, *equal(one.run)), []).append(one)
    gaps = []
    for own in parts.values():
        pairs = [
            abs(float(np.log(a.value / b.value)))
            for a, b in combinations(own[:MOST_PAIRS], 2)
            if a.id != b.id and (differ is None or differ(a.run) != differ(b.run))
        ]
        gaps += pairs[:MOST_PAIRS]
    return gaps
