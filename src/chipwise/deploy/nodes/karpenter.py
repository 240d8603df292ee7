"""Karpenter: an EC2NodeClass and its NodePools."""

from __future__ import annotations

from chipwise.deploy import marks
from chipwise.deploy.asked.parameters import Parameters
from chipwise.deploy.facts import number, text
from chipwise.deploy.kinds.ec2_node_class import EC2NodeClass, Volume
from chipwise.deploy.nodes.capacity import Capacity, capacity_name, reservation_of
from chipwise.deploy.nodes.pools import Class, pools

_DISCOVERY = "karpenter.sh/discovery"


def karpenter(capacity: Capacity, parameters: Parameters) -> tuple[list[object], tuple[str, ...]]:
    """The node class and the pools, and what a reader must be told."""
    own = capacity_name(capacity.name)
    of = Class(group="karpenter.k8s.aws", kind="EC2NodeClass", name=own, domain="karpenter.k8s.aws")
    objects = [_class(capacity, parameters, own), *pools(capacity, parameters, of)]
    return objects, tuple(_remarks(capacity, parameters))


def _class(capacity: Capacity, parameters: Parameters, own: str) -> EC2NodeClass:
    tags = {_DISCOVERY: parameters.cluster}
    return EC2NodeClass(
        meta=marks.own_meta(capacity.name, called=own),
        role=parameters.role or f"KarpenterNodeRole-{parameters.cluster}",
        ami_alias=parameters.ami_alias or text("ami", "alias"),
        subnet_tags=parameters.subnet_tags or tags,
        security_group_tags=parameters.security_group_tags or tags,
        volume=Volume(
            device=text("ami", "root_device"),
            size=f"{capacity.disk_gib}Gi",
            iops=int(number("node", "root_iops")),
            disk_mib_per_s=int(number("node", "root_disk_mib_per_s")),
        ),
        nvme=capacity.node.nvme_bytes > 0,
        reservation=reservation_of(capacity, parameters),
        placement_group=parameters.placement_group,
        efa_cards=capacity.node.efa if capacity.efa and capacity.static else 0,
        efa=capacity.efa,
    )


def _remarks(capacity: Capacity, parameters: Parameters) -> list[str]:
    said = []
    if capacity.static:
        said.append(
            f"a pool of fixed size needs Karpenter {text('karpenter', 'static_since')} with the feature gate "
            f"{text('karpenter', 'static_gate')}"
        )
    if reservation_of(capacity, parameters) and not parameters.reservation:
        said.append(
            f"the reservation is found by its tag deployment={capacity.name}: tag yours so, or name it by --reservation"
        )
    if capacity.purchase == "capacity-block":
        minutes = round(number("karpenter", "drain_before_block_ends") / 60)
        said.append(f"Karpenter drains the nodes {minutes} minutes before EC2 begins to end the Capacity Block")
    if capacity.static and capacity.efa and reservation_of(capacity, parameters):
        said.append(
            "reservations with EFA interfaces in the node class were never found available by Karpenter 1.11 to 1.14 "
            "(aws/karpenter-provider-aws#9489): check before you rely on it"
        )
    return said
