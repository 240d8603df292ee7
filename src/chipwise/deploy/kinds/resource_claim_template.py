"""ResourceClaimTemplate: devices that a driver hands out, one claim a pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chipwise.deploy.manifest import Manifest, Meta, manifest_of, present


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRequest:
    """So many devices of a class that fulfil an expression."""

    name: str
    device_class: str
    count: int
    expression: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceClaimTemplate:
    """The claim of one pod. `together` names the attribute that all its devices must share."""

    meta: Meta
    requests: Sequence[DeviceRequest]
    together: str | None = None
    driver: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """What the driver is told of these devices."""
    about: str = ""


@manifest_of.register
def resource_claim_template(made: ResourceClaimTemplate) -> Manifest:
    """Its manifest."""
    names = [one.name for one in made.requests]
    opaque = {"requests": names, "opaque": {"driver": made.driver, "parameters": dict(made.parameters)}}
    devices = {
        "requests": [{"name": one.name, "exactly": _exactly(one)} for one in made.requests],
        "constraints": [{"requests": names, "matchAttribute": made.together}] if made.together else None,
        "config": [opaque] if made.driver else None,
    }
    return Manifest(
        kind="ResourceClaimTemplate",
        meta=made.meta,
        body={"spec": {"spec": {"devices": present(devices)}}},
        about=made.about,
    )


def _exactly(one: DeviceRequest) -> dict[str, Any]:
    selectors = [{"cel": {"expression": one.expression}}] if one.expression else None
    return present(
        {
            "deviceClassName": one.device_class,
            "allocationMode": "ExactCount",
            "count": one.count,
            "selectors": selectors,
        }
    )
