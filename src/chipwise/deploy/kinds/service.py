"""Service: one address for the pods that a label selects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.deploy.manifest import Manifest, Meta, manifest_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A ClusterIP on one port."""

    meta: Meta
    selector: Mapping[str, str]
    port: int
    target: str = "http"
    """Name of the container's port."""


@manifest_of.register
def service(made: Service) -> Manifest:
    """Its manifest."""
    return Manifest(
        kind="Service",
        meta=made.meta,
        body={
            "spec": {
                "selector": dict(made.selector),
                "ports": [{"name": "http", "port": made.port, "targetPort": made.target}],
            }
        },
        about="One address for all replicas.",
    )
