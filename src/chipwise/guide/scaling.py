"""Capacity planning: what the guide starts with, which signal it watches, and what comes next."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.guide.tables import cite, table


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleRow:
    """One row: a first fleet of either vendor, the signal, its threshold, the next step, and what is amiss with it."""

    workload: str
    start_nvidia: str
    start_neuron: str
    signal: str
    threshold: str
    next: str
    note: str
    source: str


def scale_signal(*, kind: str, params: float) -> ScaleRow | None:
    """The row for a kind of work and a model's size; None where the guide has none.

    Args:
        kind: inference, finetune or pretrain.
        params: the model's parameters.

    >>> scale_signal(kind="inference", params=70.6e9).signal
    'GPU memory'
    """
    for row in table("capacity"):
        below = float(row["below_params"] or "inf")
        if row["kind"] == kind and float(row["from_params"]) <= params < below:
            return ScaleRow(
                workload=row["workload"],
                start_nvidia=row["nvidia"],
                start_neuron=row["neuron"],
                signal=row["signal"],
                threshold=row["threshold"],
                next=row["next"],
                note=row["note"],
                source=cite(row["where"]),
            )
    return None
