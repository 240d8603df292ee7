"""Counts of a model that is trained on samples rather than tokens, and what a step of it holds on one device.

Such models are copied over all devices, or sharded over them layer by layer; tables that are looked up are dealt out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from chipwise.memory.training_job import TrainingJob, TrainingLayout
from chipwise.parallelism import Number

RECOMPUTED = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleCounts:
    """What a model counts, and what one sample of it leaves.

    `params` are multiplied or added, `table_params` looked up (only the rows of a batch get a gradient);
    `adapter_params_per_rank` is the sum of in and out of the matrices that adapters stand beside. `saved_bytes` of
    one sample are what the backward pass reads again: inputs and outputs of its `matrices`.
    """

    params: float
    table_params: float
    adapter_params_per_rank: float
    saved_bytes: float
    matrices: float

    def adapter_params(self, job: TrainingJob) -> Number:
        """Parameters of the adapters."""
        return self.adapter_params_per_rank * job.adapter.rank

    def trained_params(self, job: TrainingJob) -> Number:
        """Parameters whose gradients all copies average; rows of tables have one home each."""
        return self.adapter_params(job) if job.adapts else self.params

    @property
    def segments(self) -> float:
        """Parts that a model is cut into where parts are recomputed or gathered one at a time: `sqrt(matrices)`.

        >>> SampleCounts(params=1.0, table_params=0.0, adapter_params_per_rank=0.0, saved_bytes=1.0,
        ...              matrices=144.0).segments
        12.0
        """
        return math.sqrt(max(self.matrices, 1.0))


def kept_fraction(counts: SampleCounts, job: TrainingJob) -> float:
    """Share of what a sample leaves that is held at the peak: all of it, `2 / segments` where all is recomputed.

    n segments keep their inputs, one n-th of everything, and one of them is brought back at a time.

    Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016, arXiv:1604.06174, section 4.

    >>> counts = SampleCounts(params=1.0, table_params=0.0, adapter_params_per_rank=0.0, saved_bytes=1.0, matrices=64.0)
    >>> kept_fraction(counts, TrainingJob(method="pretrain", seq_len=1, micro_batch=1, recompute="full"))
    0.25
    """
    return min(RECOMPUTED / counts.segments, 1.0) if job.recompute == "full" else 1.0


def sample_bytes(counts: SampleCounts, job: TrainingJob, layout: TrainingLayout) -> tuple[Number, Number]:
    """Bytes of activations of one micro-batch, and parameters that sharded weights bring back at once.

    >>> counts = SampleCounts(params=100.0, table_params=0.0, adapter_params_per_rank=0.0, saved_bytes=1e6,
    ...                       matrices=16.0)
    >>> job = TrainingJob(method="pretrain", seq_len=1, micro_batch=8)
    >>> held, gathered = sample_bytes(counts, job, TrainingLayout(dp=2, shard="zero3"))
    >>> held, float(gathered)
    (8000000.0, 50.0)
    """
    gathers = (layout.shard == "zero3") & (np.asarray(layout.replicas) > 1)
    gathered = np.where(gathers, RECOMPUTED * counts.params / counts.segments, 0.0)
    return job.micro_batch * counts.saved_bytes * kept_fraction(counts, job), np.minimum(gathered, counts.params)
