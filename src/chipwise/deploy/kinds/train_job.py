"""TrainJob: one run of Kubeflow Trainer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chipwise.deploy.kinds.pod import Container, container_resources
from chipwise.deploy.manifest import Manifest, Meta, manifest_of, present


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainJob:
    """`processes` ranks on each of `nodes` nodes."""

    meta: Meta
    runtime: str
    nodes: int
    processes: int
    container: Container
    about: str


@manifest_of.register
def train_job(made: TrainJob) -> Manifest:
    """Its manifest."""
    return Manifest(
        kind="TrainJob",
        meta=made.meta,
        body={
            "spec": {
                "runtimeRef": {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": made.runtime},
                "trainer": _trainer(made),
            }
        },
        about=made.about,
    )


def _trainer(made: TrainJob) -> dict[str, Any]:
    env: Sequence[Mapping[str, Any]] = made.container.env
    return present(
        {
            "numNodes": made.nodes,
            "numProcPerNode": made.processes,
            "image": made.container.image,
            "command": list(made.container.command) or None,
            "args": list(made.container.args) or None,
            "env": list(env) or None,
            "resourcesPerNode": container_resources(made.container),
        }
    )
