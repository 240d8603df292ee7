"""The fitted numbers of the training model, resolved for a chip's generation, a format and a trainer: data."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Literal

import numpy as np

from chipwise.parallelism import Number


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCoefficients:
    """Efficiencies (of sheet rates), overlaps (shares hidden behind compute), overheads. Every field broadcasts."""

    slowdown_factor: Number
    """Times a device is busy for what its rates say: what a trainer's software loses against the best."""
    gemm_fraction: Number
    """Of the dense peak of the job's format, reached by large GEMMs."""
    ragged_fraction: Number
    """Of `gemm_fraction`, what a matrix with a side that is no multiple of a tile reaches."""
    expert_fraction: Number
    """Of `gemm_fraction`, what grouped GEMMs of experts reach."""
    attention_fraction: Number
    """Of the bf16 peak, reached by attention."""
    head_fraction: Number
    """Of the bf16 peak, reached by the vocabulary head, which stays in bf16."""
    bandwidth_fraction: Number
    """Of the sheet memory bandwidth."""
    elementwise_factor: Number
    """Times an element kept by a layer is moved in one pass by norms, activations, casts and copies."""
    cast_factor: Number
    """Times inputs and outputs of matrices are moved in one pass to convert them to formats of few bits."""
    scan_fraction: Number
    """Of the bf16 peak, reached by recurrent layers in chunks."""
    dequantise_fraction: Number
    """Of the sheet memory bandwidth, reached where a packed base is unpacked before it is multiplied."""
    routed_factor: Number
    """The same for what is sent to experts: permutations, casts, activations."""
    kernel_s: Number
    """Device time of one pass through one layer whatever its size: kernels ramp up and drain."""
    layer_s: Number
    """Host time of one pass through one layer."""
    moe_layer_s: Number
    """Added to one pass through a layer that routes: the device waits for the host, which waits for the counts."""
    imbalance_factor: Number
    """Times the mean load of experts on the fullest device, where nothing forces routing to be even."""
    link_fraction: Number
    """Of the sheet rates of links inside a node."""
    network_fraction: Number
    """Of the sheet rates of networks between nodes."""
    collective_s: Number
    """One collective of nothing inside a node."""
    hop_s: Number
    """Added by each device beyond the second where there is no switch."""
    network_s: Number
    """One collective of nothing over the network."""
    tp_overlap_fraction: Number
    ep_overlap_fraction: Number
    dp_overlap_fraction: Number
    step_s: Number
    """Of every step: data loading, logging, gradient norms."""
    spread_factor: Number
    """`low = mid / spread`, `high = mid x spread`: holds 80 % of the runs of left-out sources."""
    mixture_spread_factor: Number
    """The same for mixtures of experts."""

    def spread(self, *, mixture: bool) -> Number:
        """What a time is multiplied and divided by for its range."""
        return np.maximum(self.spread_factor, self.mixture_spread_factor if mixture else 1.0)


NAMES = tuple(one.name for one in fields(TrainingCoefficients))


@cache
def _rows() -> Mapping[tuple[str, str], Mapping[str, str]]:
    text = resources.files("chipwise.perf").joinpath("data/training_coefficients.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return {(row["name"], row["scope"]): row for row in rows}


@cache
def _table() -> Mapping[tuple[str, str], float]:
    return {key: float(row["value"]) for key, row in _rows().items()}


def training_evidence(*, generation: str, precision: str) -> Literal["calibrated", "transferred", "physics"]:
    """What backs a training prediction: runs of that generation and format, of one of them, or of neither.

    >>> training_evidence(generation="hopper", precision="bf16"), training_evidence(generation="ada", precision="fp8")
    ('calibrated', 'transferred')
    >>> training_evidence(generation="volta", precision="fp16")
    'physics'
    """
    both = _rows().get(("gemm_fraction", f"generation:{generation}/{precision}"))
    one = _rows().get(("gemm_fraction", f"generation:{generation}"))
    if both is not None and both["kind"] == "derived":
        return "calibrated"
    return "physics" if one is None else "transferred"


@cache
def training_coefficients(*, generation: str, precision: str, trainer: str) -> TrainingCoefficients:
    """The coefficients of one chip generation, format and trainer.

    The narrowest scope wins: `generation:hopper/fp8`, `generation:hopper+trainer:nemo`, `generation:hopper`,
    `trainer:hf`, `all`.

    >>> 0.3 < training_coefficients(generation="hopper", precision="bf16", trainer="fsdp").gemm_fraction < 1.0
    True
    """
    scopes = (
        f"generation:{generation}/{precision}",
        f"generation:{generation}+trainer:{trainer}",
        f"generation:{generation}",
        f"trainer:{trainer}",
        "all",
    )
    known = _table()
    return TrainingCoefficients(
        **{name: next(known[name, scope] for scope in scopes if (name, scope) in known) for name in NAMES}
    )
