"""PodMonitor: Prometheus reads the engine's metrics from every pod."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.deploy.manifest import Manifest, Meta, manifest_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PodMonitor:
    """Every 15 seconds, on the port `http`."""

    meta: Meta
    selector: Mapping[str, str]
    path: str


@manifest_of.register
def pod_monitor(made: PodMonitor) -> Manifest:
    """Its manifest."""
    return Manifest(
        kind="PodMonitor",
        meta=made.meta,
        body={
            "spec": {
                "selector": {"matchLabels": dict(made.selector)},
                "podMetricsEndpoints": [{"port": "http", "path": made.path, "interval": "15s"}],
            }
        },
        about="Prometheus reads the engine's metrics from here; the autoscaler asks Prometheus.",
    )
