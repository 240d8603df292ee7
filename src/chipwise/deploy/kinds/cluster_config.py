"""ClusterConfig: managed node groups as eksctl makes them. No object of the API server: eksctl reads the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chipwise.deploy.manifest import Manifest, Meta, Said, manifest_of, present

_RAID0 = """\
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  instance:
    localStorage:
      strategy: RAID0
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """One managed node group: nodes of one size, bought one way."""

    name: str
    instance: str
    ami_family: str
    taint: str | None
    least: int
    desired: int
    most: int
    disk_gib: int
    nvme: bool
    efa: bool
    spot: bool = False
    capacity_block: bool = False
    reservation: str | None = None
    zones: Sequence[str] = ()
    placement_group: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """The node groups of one cluster; its metadata names the cluster and the Region."""

    meta: Meta
    groups: Sequence[NodeGroup]


@manifest_of.register
def cluster_config(made: ClusterConfig) -> Manifest:
    """Its manifest."""
    return Manifest(
        kind="ClusterConfig",
        meta=made.meta,
        body={"managedNodeGroups": [_group(one) for one in made.groups]},
        about="Managed node groups for an existing cluster. eksctl create nodegroup reads this file; kubectl does not.",
    )


def _group(group: NodeGroup) -> dict[str, Any]:
    efa = Said(value=True, why="adds the interfaces, a placement group and the EFA device plugin")
    raid = Said(value=_RAID0, why="images, caches and emptyDir go to the local disks")
    return present(
        {
            "name": group.name,
            "instanceType": group.instance,
            "amiFamily": group.ami_family,
            "privateNetworking": True,
            "minSize": group.least,
            "desiredCapacity": group.desired,
            "maxSize": group.most,
            "volumeSize": group.disk_gib,
            "spot": group.spot or None,
            "efaEnabled": efa if group.efa else None,
            "availabilityZones": list(group.zones) or None,
            "placement": {"groupName": group.placement_group} if group.placement_group else None,
            "labels": dict(group.labels) or None,
            "taints": [{"key": group.taint, "value": "true", "effect": "NoSchedule"}] if group.taint else None,
            **_reserved(group),
            "overrideBootstrapCommand": raid if group.nvme else None,
        }
    )


def _reserved(group: NodeGroup) -> dict[str, Any]:
    if not group.reservation:
        return {}
    target = {"capacityReservationTarget": {"capacityReservationID": group.reservation}}
    market = {"instanceMarketOptions": {"marketType": "capacity-block"}} if group.capacity_block else {}
    return {"capacityReservation": target, **market}
