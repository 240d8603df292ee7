"""Builds chips and instances from their facts. Nothing is filled in: what no source says stays None."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import cast, get_args

from chipwise.catalog.fields import Values, flag, one_of, real, required, text, whole, words
from chipwise.catalog.types import Chip, Instance, InstanceKind, Link, LinkKind, MigProfile, Status, Term
from chipwise.errors import KnowledgeError
from chipwise.facts import read_rows

COMPUTE_FORMATS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "int4", "fp4")
MIG_COLUMNS = (
    "chip",
    "profile",
    "count",
    "memory_fraction",
    "compute_fraction",
    "kind",
    "source",
    "where",
    "read_on",
)


def read_mig(path: Path) -> dict[str, list[Sequence[str]]]:
    """The rows of the table of MIG profiles by chip.

    Raises:
        KnowledgeError: the table cannot be read; names file and line.
    """
    by_chip: dict[str, list[Sequence[str]]] = {}
    for _, row in read_rows(path, MIG_COLUMNS):
        by_chip.setdefault(row[0], []).append(row)
    return by_chip


def build_chip(chip_id: str, values: Values, *, families: Sequence[str], mig_rows: Sequence[Sequence[str]]) -> Chip:
    """One chip from the values of its facts.

    Raises:
        KnowledgeError: a fact that every chip needs is missing or of a wrong type.
    """
    memory_bytes = whole(values, "memory")
    dense = {name: rate for name in COMPUTE_FORMATS if (rate := real(values, name)) is not None}
    physical_cores, lnc = whole(values, "physical_cores") or 1, whole(values, "lnc")
    return Chip(
        id=chip_id,
        vendor=required(values, "vendor", chip_id),
        architecture=required(values, "architecture", chip_id),
        compute_capability=text(values, "compute_capability"),
        aws_families=tuple(families),
        memory_bytes=memory_bytes,
        memory_marketing_bytes=whole(values, "memory_marketing"),
        memory_bandwidth_bytes_per_s=real(values, "memory_bandwidth"),
        dense_flops_per_s=MappingProxyType(dense),
        native=frozenset(words(values, "native")),
        weight_only=frozenset(words(values, "weight_only")),
        sparsity=flag(values, "sparsity"),
        stochastic_rounding=flag(values, "stochastic_rounding"),
        link=_link(values, chip_id),
        pcie_gen=whole(values, "pcie_gen"),
        tdp_watts=real(values, "tdp"),
        mig_profiles=tuple(_mig_profile(row, memory_bytes) for row in mig_rows),
        cores=physical_cores // (lnc or 1),
        physical_cores=physical_cores,
        lnc=lnc,
        lacks=_chip_lacks(values),
    )


def _chip_lacks(values: Values) -> tuple[str, ...]:
    needed = {
        "memory": "memory" in values,
        "memory bandwidth": "memory_bandwidth" in values,
        "dense 16-bit FLOP/s": "bf16" in values or "fp16" in values,
        "number formats": "native" in values,
    }
    return tuple(what for what, known in needed.items() if not known)


def _mig_profile(row: Sequence[str], memory_bytes: int | None) -> MigProfile:
    try:
        memory_slices, memory_of = (int(part) for part in row[3].split("/"))
        compute_slices, compute_of = (int(part) for part in row[4].split("/"))
        count = int(row[2]) if row[2] else None
        shares = memory_slices / memory_of, compute_slices / compute_of
    except (ValueError, ZeroDivisionError) as error:
        raise KnowledgeError(
            f"the MIG profile {row[1]} of {row[0]} cannot be read",
            why=str(error),
            fix="write its count as a number and its fractions as 1/8",
        ) from error
    return MigProfile(
        name=row[1],
        count=count,
        memory_fraction=shares[0],
        memory_bytes=None if memory_bytes is None else memory_bytes * memory_slices // memory_of,
        compute_fraction=shares[1],
    )


def _link(values: Values, subject: str) -> Link | None:
    name = text(values, "link")
    if name is None:
        return None
    return Link(
        kind=cast("LinkKind", one_of(values, "link_kind", subject, get_args(LinkKind))),
        name=name,
        bytes_per_s_one_way=real(values, "link_one_way"),
        peer_to_peer=flag(values, "link_peer_to_peer"),
        domain_chips=whole(values, "link_domain"),
    )


def build_instance(name: str, values: Values, chips: Mapping[str, Chip]) -> Instance:
    """One size from the values of its facts.

    Raises:
        KnowledgeError: a fact that every size needs is missing or of a wrong type, or its chip is unknown.
    """
    chip = _chip_of(name, values, chips)
    count = whole(values, "chips")
    share = real(values, "chip_fraction")
    memory_bytes = whole(values, "accelerator_memory")
    if memory_bytes is None and chip is not None:
        memory_bytes = chip.memory_bytes
    return Instance(
        name=name,
        family=required(values, "family", name),
        kind=cast("InstanceKind", one_of(values, "kind", name, get_args(InstanceKind))),
        status=cast("Status", one_of(values, "status", name, get_args(Status))),
        vcpu=whole(values, "vcpu"),
        ram_bytes=whole(values, "ram"),
        cpu_arch=text(values, "cpu_arch"),
        chip=chip.id if chip else None,
        chips=count,
        chip_fraction=1.0 if share is None else share,
        accelerator_memory_bytes=memory_bytes,
        devices=None if count is None else count * (chip.cores if chip else 0),
        network_bytes_per_s=real(values, "network"),
        network_is_burst=flag(values, "network_is_burst"),
        efa_bytes_per_s=real(values, "efa"),
        efa_interfaces=whole(values, "efa_interfaces"),
        efa_generation=whole(values, "efa_generation"),
        rdma_read=flag(values, "rdma_read"),
        rdma_write=flag(values, "rdma_write"),
        gpudirect_rdma=flag(values, "gpudirect_rdma"),
        gds=flag(values, "gds"),
        ultracluster=flag(values, "ultracluster"),
        nvme_bytes=whole(values, "nvme"),
        link=_link(values, name),
        ultraserver=text(values, "ultraserver"),
        ultraserver_instances=tuple(int(size) for size in words(values, "ultraserver_instances")),
        usage_classes=_usage_classes(values, name),
        lacks=_instance_lacks(values, chip),
    )


def _chip_of(name: str, values: Values, chips: Mapping[str, Chip]) -> Chip | None:
    chip_id = text(values, "chip")
    if chip_id is None:
        return None
    if chip_id not in chips:
        raise KnowledgeError(
            f"{name} carries {chip_id!r}, which is no chip of the catalog",
            why="the catalog's tables are broken",
            fix="correct its chip, or add the chip's facts",
        )
    return chips[chip_id]


def _usage_classes(values: Values, name: str) -> frozenset[Term]:
    classes = words(values, "usage_classes")
    for usage in classes:
        one_of({"usage_classes": usage}, "usage_classes", name, get_args(Term))
    return frozenset(cast("tuple[Term, ...]", classes))


def _instance_lacks(values: Values, chip: Chip | None) -> tuple[str, ...]:
    own = () if "chips" in values else ("accelerators an instance",)
    of_chip = () if chip is None else tuple(f"{what} of {chip.id}" for what in chip.lacks)
    return own + of_chip + words(values, "unknown")
