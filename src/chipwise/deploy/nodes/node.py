"""What a pod finds on a node of one size: allocatable CPU and memory, accelerators, EFA interfaces.

Where Karpenter's reference page prints the size, its figures are taken. Elsewhere they follow from what the catalog
says of the size by the rule that page is made with:

    memory = RAM x (1 - overhead) - (255 MiB + 11 MiB x pods) - 100 MiB
    CPU = vCPU - (6 % of the first, 1 % of the second, 0.5 % of the next two, 0.25 % of the others)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from chipwise.catalog import load_catalog
from chipwise.deploy.facts import DATA, number
from chipwise.errors import KnowledgeError
from chipwise.facts import read_rows

if TYPE_CHECKING:
    from chipwise.catalog import Chip, Instance

COLUMNS = (
    *("instance", "arch", "accelerator", "manufacturer", "accelerators", "accelerator_memory_mib", "vcpu"),
    *("memory_mib", "allocatable_cpu_m", "allocatable_memory_mib", "pods", "nvidia_gpu", "neuron", "neuroncore"),
    *("efa", "source", "where", "read_on"),
)
CPU = "cpu"
"""The vendor of a node without accelerators: its one device is itself."""
_MIB = 2**20
_KUBERNETES_ARCH = {"x86_64": "amd64", "arm64": "arm64"}
_RESERVED_CPU = ((1, 60.0), (1, 10.0), (2, 5.0))
"""How many cores, and the millicores reserved of each; the others give a quarter of a percent."""
_RESERVED_CPU_REST = 2.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One size as the scheduler sees it."""

    instance: str
    arch: str
    vendor: str
    """Of its accelerators: `nvidia` or `aws`; `cpu` where it has none."""
    accelerators: int
    """What its device plugin counts: GPUs, or Neuron devices (chips)."""
    devices: int
    """What tp counts: GPUs, or logical NeuronCores."""
    cores: int
    """Devices on one accelerator."""
    lnc: int | None
    efa: int
    vcpu: int
    allocatable_cpu_m: int
    allocatable_memory_bytes: int
    nvme_bytes: int
    printed: bool
    """Whether the allocatable figures are printed; else they are derived."""


def node_of(instance: str) -> Node:
    """The node of a size.

    Raises:
        UnknownNameError: no such size.
        KnowledgeError: too little is known of it.

    >>> node = node_of("p5.48xlarge")
    >>> node.accelerators, node.efa, node.allocatable_cpu_m
    (8, 32, 191450)
    """
    catalog = load_catalog()
    size = catalog.instance(instance)
    bare = size.kind == CPU
    if not size.vcpu or not size.ram_bytes or not (bare or (size.chip and size.chips)):
        raise KnowledgeError(
            f"no node is known for {instance}",
            why="the catalog names no accelerators, vCPU or memory for it",
            fix="choose another option",
        )
    return _node(size, None if bare or size.chip is None else catalog.chip(size.chip))


def _node(size: Instance, chip: Chip | None) -> Node:
    printed = _printed().get(size.name)
    return Node(
        instance=size.name,
        arch=_KUBERNETES_ARCH[size.cpu_arch or "x86_64"],
        vendor=chip.vendor if chip else CPU,
        accelerators=(size.chips or 0) if chip else 0,
        devices=(size.devices or 0) if chip else 1,
        cores=chip.cores if chip else 1,
        lnc=chip.lnc if chip else None,
        vcpu=size.vcpu or 0,
        efa=int(printed["efa"]) if printed else size.efa_interfaces or 0,
        allocatable_cpu_m=int(printed["allocatable_cpu_m"]) if printed else allocatable_cpu_m(vcpu=size.vcpu or 0),
        allocatable_memory_bytes=int(printed["allocatable_memory_mib"]) * _MIB
        if printed
        else allocatable_memory_bytes(ram_bytes=size.ram_bytes or 0, pods=likely_pods(size.vcpu or 0)),
        nvme_bytes=size.nvme_bytes or 0,
        printed=printed is not None,
    )


def allocatable_cpu_m(*, vcpu: int) -> int:
    """Millicores left for pods.

    >>> allocatable_cpu_m(vcpu=192)
    191450
    """
    left, reserved = vcpu, 0.0
    for cores, each in _RESERVED_CPU:
        taken = min(left, cores)
        reserved, left = reserved + taken * each, left - taken
    return int(vcpu * 1000 - reserved - left * _RESERVED_CPU_REST)


def allocatable_memory_bytes(*, ram_bytes: int, pods: int) -> int:
    """Bytes left for pods.

    >>> allocatable_memory_bytes(ram_bytes=2097152 * 2**20, pods=100) // 2**20
    1938410
    """
    kept = number("node", "reserved_memory") + number("node", "reserved_memory_per_pod") * pods
    left = ram_bytes * (1.0 - number("node", "memory_overhead")) - kept - number("node", "eviction_memory")
    return max(0, int(left))


def likely_pods(vcpu: int) -> int:
    """The most pods of any printed size with as many vCPU, or the next number above: memory is reserved for each.

    >>> likely_pods(2) == likely_pods(4), likely_pods(192)
    (True, 758)
    """
    by_vcpu: dict[int, int] = {}
    for row in _printed().values():
        by_vcpu[int(row["vcpu"])] = max(int(row["pods"]), by_vcpu.get(int(row["vcpu"]), 0))
    return by_vcpu[min((count for count in by_vcpu if count >= vcpu), default=max(by_vcpu))]


@cache
def _printed() -> dict[str, dict[str, str]]:
    return {row[0]: dict(zip(COLUMNS, row, strict=True)) for _, row in read_rows(DATA / "nodes.csv", COLUMNS)}
