"""HorizontalPodAutoscaler: replicas by a metric of the pods, which prometheus-adapter serves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chipwise.deploy.kinds.scaled import Scaled
from chipwise.deploy.manifest import Manifest, Said, manifest_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PodMetric:
    """The mean of a pod's metric that one replica more brings down."""

    name: str
    average: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizontalPodAutoscaler(Scaled):
    """Replicas of a workload by its metrics."""

    metrics: Sequence[PodMetric]


@manifest_of.register
def horizontal_pod_autoscaler(made: HorizontalPodAutoscaler) -> Manifest:
    """Its manifest."""
    return Manifest(
        kind="HorizontalPodAutoscaler",
        meta=made.meta,
        body={
            "spec": {
                "scaleTargetRef": made.target,
                "minReplicas": made.least,
                "maxReplicas": made.most,
                "metrics": [_metric(one) for one in made.metrics],
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": made.cooldown_s}},
            }
        },
        about="Replicas follow the engine's queue and cache, never the CPU. prometheus-adapter serves these metrics.",
    )


def _metric(metric: PodMetric) -> Any:
    target = {"type": "AverageValue", "averageValue": metric.average}
    return Said(value={"type": "Pods", "pods": {"metric": {"name": metric.name}, "target": target}}, why=metric.why)
