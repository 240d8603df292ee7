"""What the workload wants of the cluster's nodes, whoever launches them: sizes, numbers, how they are bought."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from chipwise.catalog import load_catalog
from chipwise.deploy.asked.chosen import Chosen
from chipwise.deploy.asked.parameters import Parameters
from chipwise.deploy.facts import number, vendor_text
from chipwise.deploy.kinds.reservation import Reservation
from chipwise.deploy.nodes.node import CPU, Node, node_of
from chipwise.deploy.nodes.shape import GIB, Shape, shape_of
from chipwise.deploy.pods import cache_bytes
from chipwise.errors import ChipwiseError

RESERVED = frozenset({"reserved", "capacity-block"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The nodes of one deployment."""

    name: str
    node: Node
    nodes: int
    """As planned."""
    most_nodes: int
    purchase: str
    training: bool
    efa: bool
    disk_gib: int
    fallbacks: tuple[Node, ...] = ()
    """Sizes on which the same pods run, the better first."""
    labels: Mapping[str, str] = field(default_factory=dict)
    static: bool = False

    @property
    def taint(self) -> str | None:
        """The taint of nodes with such accelerators; None without any."""
        return taint_of(self.node)

    def limit(self, node: Node) -> dict[str, str]:
        """The most that nodes of one size may add up to: accelerators, or vCPU where there are none."""
        if node.vendor == CPU:
            return {"cpu": str(self.most_nodes * node.vcpu)}
        return {vendor_text(node.vendor, "resource"): str(self.most_nodes * node.accelerators)}


def taint_of(node: Node) -> str | None:
    """The key of the taint that keeps pods without accelerators off such nodes."""
    return None if node.vendor == CPU else vendor_text(node.vendor, "taint")


def capacity_name(name: str) -> str:
    """The name of its pools and node classes."""
    return f"{name}-nodes"


def pool_name(capacity: Capacity, node: Node) -> str:
    """The name of the pool of one size: the deployment's own, or one that says which size stands in."""
    own = capacity_name(capacity.name)
    return own if node is capacity.node else f"{own}-{node.instance.replace('.', '-')}"


def purchase_of(chosen: Chosen, parameters: Parameters) -> str:
    """How the nodes are bought: what you said, else what the plan's price is of."""
    return parameters.purchase or chosen.purchase


def reservation_of(capacity: Capacity, parameters: Parameters) -> Reservation | None:
    """The reservation to use: the one you name, else whichever bears the deployment's tag."""
    if capacity.purchase not in RESERVED:
        return None
    tags = parameters.reservation_tags or {"deployment": capacity.name}
    return Reservation(id=parameters.reservation, tags=tags, owner=parameters.account)


def most_nodes(chosen: Chosen, parameters: Parameters, shape: Shape) -> int:
    """The most nodes: what the most replicas take; what is reserved or trains does not grow."""
    replicas = most_replicas(chosen, parameters)
    if shape.spans:
        return max(chosen.instances, replicas * shape.pods_per_replica)
    return max(chosen.instances, -(-replicas // shape.pods_per_node))


def most_replicas(chosen: Chosen, parameters: Parameters) -> int:
    """The most replicas that the autoscaler may ask for."""
    if parameters.max_replicas:
        return max(parameters.max_replicas, chosen.replicas)
    if chosen.work == "training" or parameters.static or purchase_of(chosen, parameters) in RESERVED:
        return chosen.replicas
    return math.ceil(chosen.replicas * number("scale", "headroom"))


def disk_gib(chosen: Chosen, shape: Shape) -> int:
    """The root volume: images and, without local disks, the weights of every pod of the node."""
    floor = number("node", "root_volume_floor")
    weights = 0.0 if shape.node.nvme_bytes else cache_bytes(chosen) * shape.pods_per_node
    return math.ceil((floor + weights) / GIB / 10) * 10


def fallback_shapes(chosen: Chosen, shape: Shape, purchase: str) -> tuple[Shape, ...]:
    """Other sizes on which the very same pods run: same vendor, split and precision, bought the same way."""
    if shape.node.vendor == CPU or shape.spans or purchase in RESERVED or chosen.sharing or chosen.work == "training":
        return ()
    found = [
        other
        for one in chosen.fallbacks
        if (one.split, one.precision) == (chosen.split, chosen.precision.weights)
        for other in _same_pods(one.instance, shape, purchase)
        if _computes(other.node.instance, chosen)
    ]
    return tuple(found[: int(number("capacity", "fallbacks"))])


def _same_pods(instance: str, shape: Shape, purchase: str) -> Sequence[Shape]:
    try:
        node = node_of(instance)
    except ChipwiseError:
        return ()
    same = (node.vendor, node.arch, node.cores) == (shape.node.vendor, shape.node.arch, shape.node.cores)
    sold = purchase in load_catalog().instance(instance).usage_classes
    if not same or not sold or node.devices < shape.devices_per_pod:
        return ()
    return (shape_of(node, devices=shape.devices_per_pod),)


def _computes(instance: str, chosen: Chosen) -> bool:
    """Whether the other size's chip multiplies in the same format and holds no less memory."""
    catalog = load_catalog()
    other, own = catalog.chip(catalog.instance(instance).chip or ""), catalog.chip(chosen.chip)
    return chosen.precision.compute in other.native and (other.memory_bytes or 0) >= (own.memory_bytes or 0)
