"""One training prediction with its ranges: what `estimate` prints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.parallelism import Number
from chipwise.perf.training import StepTerms, TrainingArrays, TrainingInput, step_arrays, term_seconds
from chipwise.units import Range

COMPUTE_TERMS = (
    "gemm_s",
    "expert_s",
    "attention_s",
    "elementwise_s",
    "head_s",
    "unpacking_s",
    "recompute_s",
    "other_passes_s",
    "optimizer_s",
)
WAIT_TERMS = {"tp": ("tp_s", "cp_s"), "dp": ("dp_s", "gather_s"), "ep": ("ep_s",), "pp": ("pp_s",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunicationEfficiency:
    """Compute time over compute time plus the wait for one kind of collective; None where it does not occur.

    `tp` counts context parallelism too, `dp` the gathering and scattering of sharded weights. The pipeline's bubble
    is no wait for a collective and stands apart.
    """

    overall: Range
    tp: Range | None
    dp: Range | None
    ep: Range | None
    pp: Range | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPrediction:
    """One prediction; names are those that `estimate --json` prints."""

    step_s: Range
    tokens_per_s: Range
    tokens_per_s_per_chip: Range
    samples_per_s: Range
    mfu_fraction: Range
    hfu_fraction: Range
    communication_efficiency: CommunicationEfficiency
    pipeline_bubble_fraction: float
    terms: StepTerms


def communication_efficiency_fraction(*, compute_s: Number, wait_s: Number) -> Number:
    """Compute time / (compute time + communication wait).

    >>> float(communication_efficiency_fraction(compute_s=9.0, wait_s=1.0))
    0.9
    """
    return compute_s / (compute_s + wait_s)


def _efficiency(compute_s: float, wait_s: float, spread: float) -> Range:
    """The wait is off by the spread, compute is not: low means that the wait is longer."""
    return Range(
        low=float(communication_efficiency_fraction(compute_s=compute_s, wait_s=wait_s * spread)),
        mid=float(communication_efficiency_fraction(compute_s=compute_s, wait_s=wait_s)),
        high=float(communication_efficiency_fraction(compute_s=compute_s, wait_s=wait_s / spread)),
    )


def efficiencies(terms: StepTerms, *, spread: float) -> CommunicationEfficiency:
    """Communication efficiency of a scalar step, over all and by kind."""
    seconds = {name: float(np.asarray(value)) for name, value in term_seconds(terms).items()}
    compute = sum(seconds[name] for name in COMPUTE_TERMS)
    waits = {kind: sum(seconds[name] for name in names) for kind, names in WAIT_TERMS.items()}
    by_kind = {kind: _efficiency(compute, wait, spread) if wait > 0 else None for kind, wait in waits.items()}
    return CommunicationEfficiency(
        overall=_efficiency(compute, sum(waits.values()), spread),
        tp=by_kind["tp"],
        dp=by_kind["dp"],
        ep=by_kind["ep"],
        pp=by_kind["pp"],
    )


def predict_training(given: TrainingInput) -> TrainingPrediction:
    """The prediction of one scalar question, every figure with the range that held 80 % of left-out sources."""
    arrays: TrainingArrays = step_arrays(given)
    spread = float(np.asarray(given.spread_factor))

    def around(value: Number) -> Range:
        return Range.around(float(np.asarray(value)), factor=spread)

    return TrainingPrediction(
        step_s=around(arrays.step_s),
        tokens_per_s=around(arrays.tokens_per_s),
        tokens_per_s_per_chip=around(arrays.tokens_per_s_per_chip),
        samples_per_s=around(arrays.samples_per_s),
        mfu_fraction=around(arrays.mfu_fraction),
        hfu_fraction=around(arrays.hfu_fraction),
        communication_efficiency=efficiencies(arrays.terms, spread=spread),
        pipeline_bubble_fraction=float(np.asarray(arrays.pipeline_bubble_fraction)),
        terms=arrays.terms,
    )
