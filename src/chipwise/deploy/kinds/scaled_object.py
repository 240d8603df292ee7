"""ScaledObject: KEDA adds and removes replicas by what Prometheus says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chipwise.deploy.kinds.scaled import Scaled
from chipwise.deploy.manifest import Manifest, Said, manifest_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """A query of Prometheus and the value for which one replica more is wanted."""

    query: str
    threshold: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledObject(Scaled):
    """Replicas of a workload by its metrics."""

    prometheus: str
    triggers: Sequence[Trigger]


@manifest_of.register
def scaled_object(made: ScaledObject) -> Manifest:
    """Its manifest."""
    return Manifest(
        kind="ScaledObject",
        meta=made.meta,
        body={
            "spec": {
                "scaleTargetRef": made.target,
                "minReplicaCount": made.least,
                "maxReplicaCount": made.most,
                "cooldownPeriod": Said(
                    value=made.cooldown_s, why="a replica that loads for minutes must not come and go"
                ),
                "triggers": [_trigger(made, one) for one in made.triggers],
            }
        },
        about="Replicas follow the engine's queue and cache, never the CPU, which says nothing of an engine's load.",
    )


def _trigger(made: ScaledObject, trigger: Trigger) -> Any:
    metadata = {"serverAddress": made.prometheus, "query": trigger.query, "threshold": trigger.threshold}
    return Said(value={"type": "prometheus", "metadata": metadata}, why=trigger.why)
