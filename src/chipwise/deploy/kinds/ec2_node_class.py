"""EC2NodeClass: what Karpenter launches a node with: image, network, disk, reservation, EFA."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chipwise.deploy.kinds.reservation import Reservation, selector_terms
from chipwise.deploy.manifest import Manifest, Meta, Said, manifest_of, present


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """The root volume, encrypted gp3."""

    device: str
    size: str
    iops: int
    disk_mib_per_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EC2NodeClass:
    """Nodes of one pool."""

    meta: Meta
    role: str
    ami_alias: str
    subnet_tags: Mapping[str, str]
    security_group_tags: Mapping[str, str]
    volume: Volume
    nvme: bool
    """Whether local disks become one, for images and caches."""
    reservation: Reservation | None = None
    placement_group: str | None = None
    efa_cards: int = 0
    """Network cards with an EFA interface of a pool of fixed size; other pools get them by pod request."""
    efa: bool = False
    """Whether pods speak EFA: then the security group must let them."""


@manifest_of.register
def ec2_node_class(made: EC2NodeClass) -> Manifest:
    """Its manifest."""
    groups = [{"tags": dict(made.security_group_tags)}]
    why = "EFA: one of these groups must allow all traffic to and from itself"
    return Manifest(
        kind="EC2NodeClass",
        meta=made.meta,
        body={
            "spec": present(
                {
                    "role": made.role,
                    "amiSelectorTerms": Said(
                        value=[{"alias": made.ami_alias}],
                        why="pinned: @latest would replace nodes when an image appears",
                    ),
                    "subnetSelectorTerms": [{"tags": dict(made.subnet_tags)}],
                    "securityGroupSelectorTerms": Said(value=groups, why=why) if made.efa else groups,
                    "capacityReservationSelectorTerms": _reserved(made.reservation),
                    "placementGroupSelector": {"name": made.placement_group} if made.placement_group else None,
                    "instanceStorePolicy": _nvme() if made.nvme else None,
                    "blockDeviceMappings": [_disk(made.volume)],
                    "networkInterfaces": _interfaces(made.efa_cards),
                }
            )
        },
        about="What Karpenter launches these nodes with.",
    )


def _reserved(reservation: Reservation | None) -> Any:
    if reservation is None:
        return None
    terms = selector_terms(reservation, owner_key="ownerID")
    return Said(value=terms, why="Karpenter uses no reservation that is not selected, not even an open one")


def _nvme() -> Said:
    return Said(value="RAID0", why="images, caches and emptyDir go to the local disks")


def _disk(volume: Volume) -> dict[str, Any]:
    ebs = {
        "volumeSize": volume.size,
        "volumeType": "gp3",
        "iops": volume.iops,
        "throughput": volume.disk_mib_per_s,
        "encrypted": True,
    }
    return {"deviceName": volume.device, "ebs": ebs}


def _interfaces(cards: int) -> Any:
    """A pool of fixed size does not see what its pods ask for, so its interfaces are spelled out."""
    if not cards:
        return None
    primary = {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}
    efa = [{"networkCardIndex": card, "deviceIndex": 1, "interfaceType": "efa-only"} for card in range(cards)]
    return Said(value=[primary, *efa], why="a pool of fixed size does not see the EFA requests of its pods")
