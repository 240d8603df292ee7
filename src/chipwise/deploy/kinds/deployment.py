"""Deployment: replicas that each fit one node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.deploy.kinds.pod import Pod, pod_spec
from chipwise.deploy.manifest import Manifest, Meta, Said, manifest_of, present


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Replicas of one pod; a roll-out replaces them one by one, since no spare accelerator waits."""

    meta: Meta
    selector: Mapping[str, str]
    annotations: Mapping[str, str]
    """Of the pods."""
    replicas: int
    deadline_s: int
    """Until a roll-out without progress counts as failed: longer than a replica takes to load."""
    pod: Pod
    about: str


@manifest_of.register
def deployment(made: Deployment) -> Manifest:
    """Its manifest."""
    metadata = present({"labels": dict(made.meta.labels), "annotations": dict(made.annotations) or None})
    return Manifest(
        kind="Deployment",
        meta=made.meta,
        body={
            "spec": {
                "replicas": made.replicas,
                "progressDeadlineSeconds": Said(value=made.deadline_s, why="loading takes minutes: wait for it"),
                "strategy": Said(value=_strategy(made.replicas), why="no spare accelerator waits for a surge"),
                "selector": {"matchLabels": dict(made.selector)},
                "template": {"metadata": metadata, "spec": pod_spec(made.pod)},
            }
        },
        about=made.about,
    )


def _strategy(replicas: int) -> dict[str, object]:
    if replicas == 1:
        return {"type": "Recreate"}
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
