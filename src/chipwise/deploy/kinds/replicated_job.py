"""The one job of a run: a pod on every node, started again as a whole. JobSet and TrainingRuntime embed it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chipwise.deploy.kinds.pod import Pod, pod_spec
from chipwise.deploy.manifest import Said, present

JOB = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicatedJob:
    """A pod on each of `nodes` nodes (None: the trainer says how many)."""

    pod: Pod
    nodes: int | None
    restarts: int
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of the pods."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Of the pods."""
    job_labels: Mapping[str, str] = field(default_factory=dict)


def job_set_spec(job: ReplicatedJob) -> dict[str, Any]:
    """The `spec` of a JobSet with that one job."""
    return {
        "failurePolicy": Said(
            value={
                "maxRestarts": job.restarts,
                "rules": [
                    {
                        "name": "reclaimed",
                        "action": "RestartJobSetAndIgnoreMaxRestarts",
                        "onJobFailureReasons": ["PodFailurePolicy"],
                    }
                ],
            },
            why="all pods start again from the last checkpoint; a node that was taken away does not count",
        ),
        "replicatedJobs": [present({"name": JOB, "replicas": 1, "template": _template(job)})],
    }


def _template(job: ReplicatedJob) -> dict[str, Any]:
    pod_metadata = present({"labels": dict(job.labels) or None, "annotations": dict(job.annotations) or None})
    spec = {
        "parallelism": job.nodes,
        "completions": job.nodes,
        "completionMode": "Indexed" if job.nodes else None,
        "backoffLimit": Said(value=0, why="a rank that comes back alone cannot rejoin: the whole set starts again"),
        "podFailurePolicy": _failures(),
        "template": present({"metadata": pod_metadata or None, "spec": pod_spec(job.pod)}),
    }
    metadata = {"labels": dict(job.job_labels)} if job.job_labels else None
    return present({"metadata": metadata, "spec": present(spec)})


def _failures() -> dict[str, Any]:
    reclaimed = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    return {"rules": [reclaimed]}
