"""Whether a size has an infrastructure feature, and how much of it: the guide's names on the catalog's facts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.errors import UnknownNameError

if TYPE_CHECKING:
    from chipwise.catalog import Chip, Instance


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """`has` None where no source says; `amount` is what the size offers, in words."""

    has: bool | None
    amount: str
    source: str


def _link(instance: Instance, chip: Chip) -> Feature:
    link = instance.link
    fast = link is not None and link.kind in {"nvlink", "nvswitch", "neuronlink"}
    rate = link.bytes_per_s_one_way if link else None
    amount = f"{rate / 1e9:.0f} GB/s one way" if rate else "one chip" if instance.chips == 1 else "not known"
    del chip
    return Feature(has=fast, amount=f"{link.name}, {amount}" if link else amount, source="catalog: link")


def _efa(instance: Instance, chip: Chip) -> Feature:
    del chip
    rate = instance.efa_bytes_per_s
    amount = f"{rate * 8 / 1e9:.0f} Gbps EFA" if rate else "no EFA"
    return Feature(has=None if rate is None else rate > 0, amount=amount, source="catalog: efa")


def _gpudirect(instance: Instance, chip: Chip) -> Feature:
    del chip
    has = instance.gpudirect_rdma
    return Feature(has=has, amount="GPUDirect RDMA" if has else "through host memory", source="catalog: gpudirect_rdma")


def _gds(instance: Instance, chip: Chip) -> Feature:
    del chip
    amount = "FSx for Lustre with GDS" if instance.gds else f"not listed for {instance.family}"
    return Feature(has=instance.gds, amount=amount, source="catalog: gds")


def _ultracluster(instance: Instance, chip: Chip) -> Feature:
    del chip
    amount = "placed in UltraClusters" if instance.ultracluster else f"not listed for {instance.family}"
    return Feature(has=instance.ultracluster, amount=amount, source="catalog: ultracluster")


def _format(name: str) -> Callable[[Instance, Chip], Feature]:
    def found(instance: Instance, chip: Chip) -> Feature:
        del instance
        has = name in chip.native
        rate = chip.dense_flops_per_s.get(name)
        amount = f"{rate / 1e12:.0f} TFLOPS dense {name}" if has and rate else f"{name} {'native' if has else 'no'}"
        return Feature(has=has, amount=amount, source=f"catalog: {chip.id}")

    return found


def _mig(instance: Instance, chip: Chip) -> Feature:
    del instance
    most = max((profile.count or 0 for profile in chip.mig_profiles), default=0)
    return Feature(
        has=most > 0, amount=f"up to {most} MIG instances" if most else "no MIG", source=f"catalog: {chip.id}"
    )


def _rounding(instance: Instance, chip: Chip) -> Feature:
    del instance
    return Feature(has=chip.stochastic_rounding, amount="stochastic rounding", source=f"catalog: {chip.id}")


def _sparsity(instance: Instance, chip: Chip) -> Feature:
    del instance
    return Feature(has=chip.sparsity, amount="structured sparsity", source=f"catalog: {chip.id}")


FORMATS = ("fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "int8", "fp4", "int4")
"""Formats that a chip may multiply in: the rows of the guide's matrices."""

FEATURES: dict[str, Callable[[Instance, Chip], Feature]] = {
    **{name: _format(name) for name in FORMATS},
    "stochastic-rounding": _rounding,
    "sparsity": _sparsity,
    "mig": _mig,
    "nvlink": _link,
    "efa": _efa,
    "gds": _gds,
    "gpudirect": _gpudirect,
    "gpudirect-rdma": _gpudirect,
    "ultracluster": _ultracluster,
}


def feature_of(name: str, instance: Instance, chip: Chip) -> Feature:
    """Whether a size has a feature of `--needs` or of the checklist.

    `nvlink` stands for a scale-up link of either vendor: NeuronLink counts.

    Raises:
        UnknownNameError: no such feature.
    """
    if name not in FEATURES:
        raise UnknownNameError("feature", name, FEATURES, listing=", ".join(FEATURES))
    return FEATURES[name](instance, chip)
