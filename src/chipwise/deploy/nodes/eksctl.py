"""eksctl: managed node groups, for clusters without Karpenter."""

from __future__ import annotations

from chipwise.deploy.asked.parameters import Parameters
from chipwise.deploy.facts import text
from chipwise.deploy.kinds.cluster_config import ClusterConfig, NodeGroup
from chipwise.deploy.manifest import Meta
from chipwise.deploy.nodes.capacity import Capacity, pool_name, reservation_of
from chipwise.deploy.nodes.node import Node
from chipwise.errors import InputError

RESERVATION = "CAPACITY-RESERVATION-ID"
"""Stands for the id that only you know; eksctl finds no reservation by its tags."""


def eksctl(capacity: Capacity, parameters: Parameters) -> tuple[list[object], tuple[str, ...]]:
    """The node groups, and what a reader must be told.

    Raises:
        InputError: the Region of the cluster is not known.
    """
    groups = [_group(capacity, parameters, node) for node in (capacity.node, *capacity.fallbacks)]
    if parameters.region is None:
        why = "eksctl asks for it, and the plan names none"
        raise InputError("the Region is missing", why=why, fix="name it: --region us-west-2")
    meta = Meta(name=parameters.cluster, region=parameters.region)
    return [ClusterConfig(meta=meta, groups=groups)], tuple(_remarks(capacity, parameters))


def _group(capacity: Capacity, parameters: Parameters, node: Node) -> NodeGroup:
    first = node is capacity.node
    reservation = reservation_of(capacity, parameters)
    return NodeGroup(
        name=pool_name(capacity, node),
        instance=node.instance,
        ami_family=text("ami", "family"),
        taint=capacity.taint,
        least=0,
        desired=capacity.nodes if first else 0,
        most=capacity.most_nodes,
        disk_gib=capacity.disk_gib,
        nvme=node.nvme_bytes > 0,
        efa=capacity.efa and node.efa > 0,
        spot=capacity.purchase == "spot",
        capacity_block=capacity.purchase == "capacity-block",
        reservation=(reservation.id or RESERVATION) if reservation else None,
        zones=(parameters.zone,) if parameters.zone else (),
        placement_group=parameters.placement_group,
        labels=dict(capacity.labels),
    )


def _remarks(capacity: Capacity, parameters: Parameters) -> list[str]:
    said = []
    reservation = reservation_of(capacity, parameters)
    if reservation and not reservation.id:
        said.append(f"{RESERVATION} stands for the reservation: --reservation cr-… names it")
    if (reservation or capacity.efa) and not parameters.zone:
        said.append("the nodes must stand in one zone, the reservation's if there is one: --zone names it")
    if capacity.most_nodes > capacity.nodes:
        said.append("managed node groups grow only with a cluster autoscaler: the groups start at the planned size")
    return said
