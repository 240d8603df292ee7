"""NodeClass: what EKS Auto Mode launches a node with; image, driver and plugins are its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.deploy.kinds.reservation import Reservation, selector_terms
from chipwise.deploy.manifest import Manifest, Meta, Said, manifest_of, present


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClass:
    """Nodes of one pool."""

    meta: Meta
    role: str
    subnet_tags: Mapping[str, str]
    security_group_tags: Mapping[str, str]
    disk: str
    iops: int
    disk_mib_per_s: int
    reservation: Reservation | None = None


@manifest_of.register
def node_class(made: NodeClass) -> Manifest:
    """Its manifest."""
    storage = {"size": made.disk, "iops": made.iops, "throughput": made.disk_mib_per_s}
    terms = made.reservation and Said(
        value=selector_terms(made.reservation, owner_key="owner"),
        why="with this on any NodeClass, no node of the cluster uses an open reservation that is not selected",
    )
    return Manifest(
        kind="NodeClass",
        meta=made.meta,
        body={
            "spec": present(
                {
                    "role": Said(value=made.role, why="needs an access entry of type EC2 with AmazonEKSAutoNodePolicy"),
                    "subnetSelectorTerms": [{"tags": dict(made.subnet_tags)}],
                    "securityGroupSelectorTerms": [{"tags": dict(made.security_group_tags)}],
                    "capacityReservationSelectorTerms": terms,
                    "ephemeralStorage": storage,
                }
            )
        },
        about="What EKS Auto Mode launches these nodes with; image, driver and device plugins are its own.",
    )
