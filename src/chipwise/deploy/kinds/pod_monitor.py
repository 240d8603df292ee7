"""PodMonitor: Prometheus reads the engine's metrics from every pod."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.deploy.manifest import Manifest, Meta, manifest_of, present


@dataclass(frozen=True, slots=True, kw_only=True)
class PodMonitor:
    """Every 15 seconds; `everywhere` looks for the pods in all namespaces."""

    meta: Meta
    selector: Mapping[str, str]
    path: str
    port: str | int = "http"
    """The port's name, or its number where it has none."""
    everywhere: bool = False
    about: str = "Prometheus reads the engine's metrics from here; the autoscaler asks Prometheus."


@manifest_of.register
def pod_monitor(made: PodMonitor) -> Manifest:
    """Its manifest."""
    return Manifest(
        kind="PodMonitor",
        meta=made.meta,
        body={
            "spec": present(
                {
                    "namespaceSelector": {"any": True} if made.everywhere else None,
                    "selector": {"matchLabels": dict(made.selector)},
                    "podMetricsEndpoints": [
                        {**_port(made.port), "path": made.path, "interval": "15s"},
                    ],
                }
            )
        },
        about=made.about,
    )


def _port(port: str | int) -> dict[str, str | int]:
    return {"port": port} if isinstance(port, str) else {"portNumber": port}
