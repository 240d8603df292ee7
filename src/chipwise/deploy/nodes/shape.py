"""How a replica becomes pods: how many, with how many devices, and what each may ask of its node.

    pods per replica = ceil(devices per replica / devices of a node)
    pods of a node   = floor(devices of a node / devices per pod)
    a pod's CPU      = (allocatable CPU - what DaemonSets take) / pods of a node; its memory likewise

so that the pods of a full node fit it by construction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chipwise.deploy.facts import number, vendor_text
from chipwise.deploy.nodes.node import CPU, Node
from chipwise.errors import InfeasibleError

GIB = 2**30
_MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How one accelerator is divided: the resource of a part, and how many parts there are."""

    resource: str
    parts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One replica on nodes of one size."""

    node: Node
    pods_per_replica: int
    devices_per_pod: int
    """What tp counts."""
    resources: Mapping[str, int]
    """Accelerators a pod asks for, under the device plugin's names."""
    efa: int
    """EFA interfaces a pod asks for: all of the node's where replicas span nodes."""
    pods_per_node: int
    cpu_m: int
    memory_bytes: int
    claims: bool = False
    """Whether a driver hands out its devices by claim, and not the device plugin by count."""
    huge_pages: bool = True
    """Whether pods may ask for huge pages: nodes that stand have them, and Karpenter launches none for who asks."""

    @property
    def spans(self) -> bool:
        """Whether a replica takes several nodes."""
        return self.pods_per_replica > 1

    @property
    def whole_node(self) -> bool:
        """Whether a pod takes all accelerators of its node."""
        return self.pods_per_node == 1


def shape_of(node: Node, *, devices: int, pods: int | None = None, share: Share | None = None) -> Shape:
    """A replica of `devices` on such nodes, over `pods` pods where the plan says how many.

    Raises:
        InfeasibleError: the devices cannot be dealt evenly, or no pod fits the node.
        KnowledgeError: the device plugin of the vendor is not known.

    >>> from chipwise.deploy.nodes.node import node_of
    >>> made = shape_of(node_of("p5.48xlarge"), devices=16)
    >>> made.pods_per_replica, dict(made.resources), made.efa
    (2, {'nvidia.com/gpu': 8}, 32)
    """
    spread = pods or -(-devices // node.devices)
    if devices % spread:
        raise InfeasibleError(
            f"{devices} devices cannot be dealt evenly over {spread} nodes of {node.instance}",
            why="every pod of a group runs the same command",
            fix="choose an option whose replica fills whole nodes",
        )
    each = devices // spread
    per_node = node.accelerators * share.parts if share else max(1, node.devices // each)
    return Shape(
        node=node,
        pods_per_replica=spread,
        devices_per_pod=each,
        resources={share.resource: 1} if share else _resources(node, each),
        efa=node.efa if spread > 1 else 0,
        pods_per_node=per_node,
        cpu_m=_part(node.allocatable_cpu_m, per_node, share_key="daemons_cpu", floor_key="daemons_cpu_floor_m"),
        memory_bytes=_part(
            node.allocatable_memory_bytes, per_node, share_key="daemons_memory", floor_key="daemons_memory_floor"
        ),
    )


def _resources(node: Node, devices: int) -> dict[str, int]:
    """Whole accelerators; where a replica takes a part of a chip, its physical cores; without any, nothing."""
    if node.vendor == CPU:
        return {}
    if devices % node.cores:
        return {vendor_text(node.vendor, "core_resource"): devices * (node.lnc or 1)}
    return {vendor_text(node.vendor, "resource"): devices // node.cores}


def _part(allocatable: int, pods: int, *, share_key: str, floor_key: str) -> int:
    daemons = max(allocatable * number("pod", share_key), number("pod", floor_key))
    return max(1, int((allocatable - daemons) / pods))


def smallest(shapes: Sequence[Shape]) -> tuple[int, int]:
    """CPU (millicores) and memory (bytes) that fit a node of every one of these shapes."""
    return min(one.cpu_m for one in shapes), min(one.memory_bytes for one in shapes)


def cpu_text(cpu_m: int) -> str:
    """Millicores as Kubernetes writes them, rounded down.

    >>> cpu_text(185707), cpu_text(1730)
    ('185', '1700m')
    """
    return str(cpu_m // 1000) if cpu_m >= 4000 else f"{max(cpu_m // 100 * 100, 100)}m"


def memory_text(size_bytes: float) -> str:
    """Bytes as Kubernetes writes them, rounded down.

    >>> memory_text(13138 * 2**20), memory_text(700 * 2**20)
    ('12Gi', '700Mi')
    """
    if size_bytes >= 4 * GIB:
        return f"{int(size_bytes // GIB)}Gi"
    return f"{max(int(size_bytes // _MIB), 1)}Mi"
