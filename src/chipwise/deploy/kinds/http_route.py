"""HTTPRoute: from a Gateway to an InferencePool."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.deploy.manifest import Manifest, Meta, Said, manifest_of


@dataclass(frozen=True, slots=True, kw_only=True)
class HTTPRoute:
    """Everything under / of one Gateway."""

    meta: Meta
    gateway: str
    pool: str


@manifest_of.register
def http_route(made: HTTPRoute) -> Manifest:
    """Its manifest."""
    backend = {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": made.pool}
    rule = {
        "matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
        "backendRefs": [backend],
        "timeouts": Said(value={"request": "0s"}, why="long answers stream: no limit here"),
    }
    return Manifest(
        kind="HTTPRoute",
        meta=made.meta,
        body={"spec": {"parentRefs": [{"name": made.gateway}], "rules": [rule]}},
        about="From your Gateway to the replicas.",
    )
