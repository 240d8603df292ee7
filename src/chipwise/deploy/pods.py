"""What pods that serve and pods that train have in common: what they ask for, /dev/shm, the way between nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chipwise.deploy.asked.chosen import Chosen
from chipwise.deploy.facts import number, text
from chipwise.deploy.kinds.pod import Volume, variable
from chipwise.deploy.nodes.shape import Shape, memory_text

SHARED_MEMORY = "/dev/shm"  # noqa: S108 - the mount point that NCCL and PyTorch use, in a container of its own


def limits_of(shape: Shape, *, memory_bytes: int) -> Mapping[str, str]:
    """Memory, accelerators and, between nodes, EFA interfaces with the huge pages they take where nodes have them."""
    asked = {} if shape.claims else {name: str(count) for name, count in shape.resources.items()}
    if shape.efa and not shape.claims:
        asked[text("efa", "resource")] = str(shape.efa)
    if shape.efa and shape.huge_pages:
        pages = number("pod", "hugepages")
        memory_bytes -= int(pages)
        asked["hugepages-2Mi"] = f"{int(pages // 2**20)}Mi"
    return {"memory": memory_text(memory_bytes), **asked}


def why_requests(shape: Shape) -> str:
    """Why a pod asks for so much."""
    figures = "printed by Karpenter" if shape.node.printed else "derived from its vCPU and memory"
    pods = "one pod" if shape.whole_node else f"{shape.pods_per_node} such pods"
    return (
        f"fits what a node of {shape.node.instance} can allocate ({figures}: {shape.node.allocatable_cpu_m}m CPU, "
        f"{memory_text(shape.node.allocatable_memory_bytes)}) with {pods} beside the DaemonSets"
    )


def network_environment(shape: Shape) -> tuple[Mapping[str, Any], ...]:
    """How collectives leave the node: over EFA, and set up over the pod's own interface."""
    if not (shape.spans or shape.efa):
        return ()
    efa = (variable("FI_PROVIDER", "efa"),) if shape.efa else ()
    why = "Karpenter does not know of huge pages: for a pod that asks for them it launches no node"
    without = (variable(text("efa", "without_pages"), "0", why),) if shape.efa and not shape.huge_pages else ()
    return (
        *efa,
        *without,
        variable("NCCL_SOCKET_IFNAME", text("efa", "interface_filter")),
        variable("NCCL_DEBUG", "WARN"),
    )


def shared_memory_bytes(shape: Shape, memory_bytes: int) -> float:
    """The size of /dev/shm: so much a device, a share of the pod's memory at most."""
    wanted = shape.devices_per_pod * number("pod", "shared_memory_per_device")
    return min(wanted, memory_bytes * number("pod", "shared_memory_share"))


def shared_memory(shape: Shape, memory_bytes: int) -> Volume:
    """The volume at /dev/shm."""
    return Volume(
        name="shm",
        mount=SHARED_MEMORY,
        memory=True,
        size=memory_text(shared_memory_bytes(shape, memory_bytes)),
        why="ranks pass tensors here; it counts against the memory limit",
    )


def cache_bytes(chosen: Chosen) -> float:
    """Room for a replica's weights on disk while they are downloaded."""
    return chosen.loaded_bytes * number("startup", "cache_factor")
