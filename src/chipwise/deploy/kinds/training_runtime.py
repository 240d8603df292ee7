"""TrainingRuntime: how a run's pods look; the TrainJob says what runs in them and on how many nodes."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.deploy.kinds.replicated_job import ReplicatedJob, job_set_spec
from chipwise.deploy.manifest import Manifest, Meta, manifest_of


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRuntime:
    """A runtime for torchrun on the nodes of one size."""

    meta: Meta
    nodes: int
    job: ReplicatedJob


@manifest_of.register
def training_runtime(made: TrainingRuntime) -> Manifest:
    """Its manifest."""
    return Manifest(
        kind="TrainingRuntime",
        meta=made.meta,
        body={
            "spec": {
                "mlPolicy": {"numNodes": made.nodes, "torch": {}},
                "template": {"spec": job_set_spec(made.job)},
            }
        },
        about="How the pods of the run look: node, volumes, restarts. The TrainJob says what runs in them.",
    )
