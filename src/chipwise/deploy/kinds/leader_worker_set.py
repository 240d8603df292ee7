"""LeaderWorkerSet: replicas that each span several nodes, one pod a node, started and restarted as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.deploy.kinds.pod import Pod, pod_spec
from chipwise.deploy.manifest import Manifest, Meta, Said, manifest_of, present


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderWorkerSet:
    """Groups of `size` pods: the first answers requests, the others compute with it."""

    meta: Meta
    annotations: Mapping[str, str]
    replicas: int
    size: int
    leader: Pod
    worker: Pod
    about: str


ROLE = "role"


@manifest_of.register
def leader_worker_set(made: LeaderWorkerSet) -> Manifest:
    """Its manifest."""
    return Manifest(
        kind="LeaderWorkerSet",
        meta=made.meta,
        body={
            "spec": {
                "replicas": made.replicas,
                "startupPolicy": "LeaderCreated",
                "leaderWorkerTemplate": {
                    "size": made.size,
                    "restartPolicy": Said(
                        value="RecreateGroupOnPodRestart", why="a rank that comes back alone cannot rejoin its group"
                    ),
                    "leaderTemplate": _template(made, made.leader, "leader"),
                    "workerTemplate": _template(made, made.worker, "worker"),
                },
            }
        },
        about=made.about,
    )


def _template(made: LeaderWorkerSet, pod: Pod, role: str) -> dict[str, object]:
    metadata = {"labels": {**made.meta.labels, ROLE: role}, "annotations": dict(made.annotations) or None}
    return {"metadata": present(metadata), "spec": pod_spec(pod)}
