"""InferencePool: the replicas as the Gateway's endpoint picker sees them, by their queues and caches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.deploy.manifest import Manifest, Meta, Said, manifest_of


@dataclass(frozen=True, slots=True, kw_only=True)
class InferencePool:
    """Pods by label on one port, picked by the service `picker`."""

    meta: Meta
    selector: Mapping[str, str]
    port: int
    picker: str
    picker_port: int


@manifest_of.register
def inference_pool(made: InferencePool) -> Manifest:
    """Its manifest."""
    picker = {
        "name": made.picker,
        "port": {"number": made.picker_port},
        "failureMode": Said(value="FailOpen", why="without the picker, requests still go round"),
    }
    return Manifest(
        kind="InferencePool",
        meta=made.meta,
        body={
            "spec": {
                "selector": {"matchLabels": dict(made.selector)},
                "targetPorts": [{"number": made.port}],
                "endpointPickerRef": picker,
            }
        },
        about="The replicas as the Gateway's endpoint picker sees them: it looks at queues, caches and prefixes.",
    )
