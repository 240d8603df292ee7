"""EKS Auto Mode: a NodeClass and its NodePools; what cannot be had there is said."""

from __future__ import annotations

from chipwise.deploy import marks
from chipwise.deploy.asked.parameters import Parameters
from chipwise.deploy.facts import number
from chipwise.deploy.kinds.node_class import NodeClass
from chipwise.deploy.nodes.capacity import Capacity, capacity_name, reservation_of
from chipwise.deploy.nodes.pools import Class, pools
from chipwise.errors import InputError

_ROLE = "AmazonEKSAutoNodeRole"


def auto_mode(capacity: Capacity, parameters: Parameters) -> tuple[list[object], tuple[str, ...]]:
    """The node class and the pools, and what a reader must be told.

    Raises:
        InputError: what is asked for cannot be had on EKS Auto Mode.
    """
    _refuse(capacity, parameters)
    own = capacity_name(capacity.name)
    of = Class(
        group="eks.amazonaws.com",
        kind="NodeClass",
        name=own,
        domain="eks.amazonaws.com",
        longest_life_s=number("auto-mode", "node_life"),
    )
    return [_class(capacity, parameters, own), *pools(capacity, parameters, of)], tuple(_remarks(capacity, parameters))


def _class(capacity: Capacity, parameters: Parameters, own: str) -> NodeClass:
    return NodeClass(
        meta=marks.own_meta(capacity.name, called=own),
        role=parameters.role or _ROLE,
        subnet_tags=parameters.subnet_tags or {"kubernetes.io/role/internal-elb": "1"},
        security_group_tags=parameters.security_group_tags or {"aws:eks:cluster-name": parameters.cluster},
        disk=f"{capacity.disk_gib}Gi",
        iops=int(number("node", "root_iops")),
        disk_mib_per_s=int(number("node", "root_disk_mib_per_s")),
        reservation=reservation_of(capacity, parameters),
    )


def _refuse(capacity: Capacity, parameters: Parameters) -> None:
    asked = {
        "a placement group": parameters.placement_group,
        "an AMI of your own": parameters.ami_alias,
        "a pool of fixed size": capacity.static,
    }
    for what, value in asked.items():
        if value:
            raise InputError(
                f"EKS Auto Mode does not take {what}",
                why="its nodes run Bottlerocket with built-in driver and device plugin, which take no configuration",
                fix="choose --target karpenter or --target eksctl, or leave it out",
            )


def _remarks(capacity: Capacity, parameters: Parameters) -> list[str]:
    hours = round(number("auto-mode", "node_life") / 3600)
    said = [f"a node of EKS Auto Mode lives {hours} hours at most, whatever runs on it"]
    if reservation_of(capacity, parameters):
        said.append("a reservation in one NodeClass ends the use of open reservations in the whole cluster")
        if not parameters.reservation:
            said.append(f"the reservation is found by its tag deployment={capacity.name}: tag yours so")
    if capacity.efa:
        said.append("EFA: a security group of the nodes must allow all traffic to and from itself")
    return said
