"""Takes nothing; gives the typed objects the catalog is made of: chips, instances, links, prices, regions.

Every `None` means that no source says it. Nothing here computes; `Catalog` in `catalog.lookup` finds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

LinkKind = Literal["nvlink", "nvswitch", "neuronlink", "pcie"]
InstanceKind = Literal["gpu", "neuron", "cpu", "other"]
Status = Literal["current", "retired", "unverified"]
Term = Literal["on-demand", "spot", "capacity-block"]
RegionKind = Literal["commercial", "gov", "china", "local-zone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What joins the chips of one scale-up domain.

    `nvswitch` is NVLink through switches: every pair at full rate; `nvlink` is point to point.
    """

    kind: LinkKind
    name: str
    """As the source prints it: `NVLink4 + NVSwitch`, `PCIe Gen4 x8`."""
    bytes_per_s_one_way: float | None
    """What one chip sends over all its links, in one direction: half of the advertised NVLink figure."""
    peer_to_peer: bool | None
    """Chips read each other's memory without a stop in host memory."""
    domain_chips: int | None
    """How many chips one domain joins: 8 on an HGX board, 72 in an NVL72, 64 in a Trn2 UltraServer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MigProfile:
    """One hardware slice of a GPU: `count` of them fit on one GPU."""

    name: str
    count: int | None
    memory_fraction: float
    """Share of the GPU's memory: `1g.10gb` of an 80 GB H100 is 1/8, although it holds 1/7 of the compute."""
    memory_bytes: int | None
    """`memory_fraction` of what the driver reports for the whole GPU."""
    compute_fraction: float
    """Share of the GPU's compute: `3g` of 7 is 3/7."""

    @property
    def bandwidth_fraction(self) -> float:
        """Share of the GPU's memory bandwidth: a memory slice is an equal part of its capacity and of its bandwidth.

        Source: NVIDIA Multi-Instance GPU User Guide, section Terminology, "GPU Memory Slice".
        """
        return self.memory_fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One accelerator: a GPU, or one Trainium or Inferentia chip with all its cores."""

    id: str
    vendor: str
    """`nvidia`, `aws`, `amd`, `intel`, `google`, `qualcomm`."""
    architecture: str
    """`turing`, `volta`, `ampere`, `ada`, `hopper`, `blackwell`, `neuroncore-v2`, …"""
    compute_capability: str | None
    """NVIDIA's SM version: `9.0`; None for other vendors."""
    aws_families: tuple[str, ...]
    """Instance families that carry it; empty: AWS does not rent it, it only places measurements."""
    memory_bytes: int | None
    """What the driver reports as total; where no one printed that, what the EC2 API or the vendor says."""
    memory_marketing_bytes: int | None
    """The round figure on the box, times 1e9."""
    memory_bandwidth_bytes_per_s: float | None
    dense_flops_per_s: Mapping[str, float]
    """Dense peak (no sparsity) by compute format: fp64, fp32, tf32, fp16, bf16, fp8, int8, int4, fp4."""
    native: frozenset[str]
    """Formats its matrix units multiply: fp32, tf32, fp16, bf16, fp8, mxfp8, int8, int4, fp4."""
    weight_only: frozenset[str]
    """Formats that a kernel can hold as weights and widen before it multiplies; some may also be native."""
    sparsity: bool | None
    stochastic_rounding: bool | None
    link: Link | None
    """Its scale-up link at its best; an instance's own `link` is what that size gives."""
    pcie_gen: int | None
    tdp_watts: float | None
    mig_profiles: tuple[MigProfile, ...]
    cores: int
    """Devices tp counts on one chip: 1 for a GPU, else logical NeuronCores (Trainium2: 4 at LNC=2)."""
    physical_cores: int
    lnc: int | None
    """Physical NeuronCores in one logical one; None for GPUs."""
    lacks: tuple[str, ...]
    """Facts that no source gives and a prediction needs; empty: the chip can be judged."""

    def __hash__(self) -> int:
        """By the id: quick, as chips are keys of what is remembered of them."""
        return hash(self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One size one can rent (or could, or may once be able to)."""

    name: str
    family: str
    kind: InstanceKind
    status: Status
    vcpu: int | None
    ram_bytes: int | None
    cpu_arch: str | None
    """`x86_64` or `arm64`."""
    chip: str | None
    """Id of its accelerator; None for CPU sizes."""
    chips: int | None
    """Accelerators on it; 0 for CPU sizes; 1 for a fractional GPU; None where not established."""
    chip_fraction: float
    """Share of one GPU it gets: 1.0, or 0.125 to 0.5 on fractional sizes."""
    accelerator_memory_bytes: int | None
    """Per chip, or per fraction of one."""
    devices: int | None
    """What tp counts on it: chips x logical cores."""
    network_bytes_per_s: float | None
    network_is_burst: bool | None
    efa_bytes_per_s: float | None
    """All EFA interfaces together, one way; 0.0 where it has none, None where not known."""
    efa_interfaces: int | None
    efa_generation: int | None
    rdma_read: bool | None
    rdma_write: bool | None
    gpudirect_rdma: bool | None
    gds: bool | None
    """GPUDirect Storage from FSx for Lustre."""
    ultracluster: bool | None
    """Placed in EC2 UltraClusters."""
    nvme_bytes: int | None
    """0 where it has none."""
    link: Link | None
    """Between its own chips; None for one chip, or where nothing is known."""
    ultraserver: str | None
    """Name of the UltraServer it is part of; None for an ordinary size."""
    ultraserver_instances: tuple[int, ...]
    """How many instances one UltraServer holds, by variant: (9, 18); empty for an ordinary size."""
    usage_classes: frozenset[Term]
    """Ways it can be bought today: on-demand, spot, capacity-block."""
    lacks: tuple[str, ...]
    """Facts of the size or its chip that no source gives and a prediction needs: not judged without them."""

    @property
    def rdma(self) -> bool | None:
        """Whether its EFA reads remote memory; a size without EFA has none."""
        return self.rdma_read

    def __hash__(self) -> int:
        """By the name: quick, as sizes are keys of what is remembered of them."""
        return hash(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """One printed USD price of one size under one term."""

    instance: str
    region: str | None
    """None: the source does not say which region."""
    zone: str | None
    term: Term
    usd_per_hour: float | None
    """None: the source lists the size there and states that no such price exists."""
    as_of: str | None
    """ISO date (or month); None: the source is undated, its `note` says what is known."""
    scope: Literal["instance", "ultraserver"]
    """`ultraserver`: the price of the whole UltraServer, of `instances` instances."""
    instances: int
    historical: bool
    """For the record only: a newer price is in the table, or the source is known to be overtaken."""
    source: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """One AWS Region or Local Zone."""

    name: str
    kind: RegionKind
    geography: str
    """`us`, `eu`, `ap`, `ca`, `sa`, `me`, `af`, `il`, `cn`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offering:
    """One size in one region."""

    instance: str
    region: str
    zones: tuple[str, ...]
    evidence: Literal["api", "price-list"]
    """`api`: EC2 offers it there; `price-list`: it has a price where no snapshot of offerings was read."""
    as_of: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotHistory:
    """What AWS's Spot Advisor printed of one size in one region."""

    instance: str
    region: str
    savings_fraction: float
    """Below on-demand: 0.7 is 70 % off; negative when dearer."""
    interruption_low_fraction: float
    interruption_high_fraction: float
    """Band of the monthly interruption rate; the open band `>20%` ends at 1."""
    as_of: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """Another name of a chip, as documents and logs print it."""

    alias: str
    chip: str | None
    """None: the name does not settle which chip it is; `note` says why."""
    note: str
    source: str
