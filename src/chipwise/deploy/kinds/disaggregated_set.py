"""DisaggregatedSet: prefill and decode as roles of one deployment, rolled out together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chipwise.deploy.kinds.pod import Pod, pod_spec
from chipwise.deploy.manifest import Manifest, Meta, manifest_of

ROLE_LABEL = "chipwise/role"


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """One role: its groups, and the pods of a group."""

    name: str
    replicas: int
    size: int
    leader: Pod
    worker: Pod
    annotations: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DisaggregatedSet:
    """Two roles and more."""

    meta: Meta
    roles: Sequence[Role]
    about: str


@manifest_of.register
def disaggregated_set(made: DisaggregatedSet) -> Manifest:
    """Its manifest."""
    return Manifest(
        kind="DisaggregatedSet",
        meta=made.meta,
        body={"spec": {"roles": [_role(made, one) for one in made.roles]}},
        about=made.about,
    )


def _role(made: DisaggregatedSet, role: Role) -> dict[str, Any]:
    metadata = {"labels": {**made.meta.labels, ROLE_LABEL: role.name}, "annotations": dict(role.annotations)}
    leader = {"leaderTemplate": {"metadata": metadata, "spec": pod_spec(role.leader)}} if role.size > 1 else {}
    alone = role.leader if role.size == 1 else role.worker
    return {
        "name": role.name,
        "spec": {
            "replicas": role.replicas,
            "leaderWorkerTemplate": {
                "size": role.size,
                "restartPolicy": "RecreateGroupOnPodRestart",
                **leader,
                "workerTemplate": {"metadata": metadata, "spec": pod_spec(alone)},
            },
        },
    }
