"""A run of a training table as chipwise asks about it: its hardware, and its questions to memory and perf."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from chipwise.audit.items import CHIP_UNKNOWN, SkipError
from chipwise.audit.replay import widest
from chipwise.audit.table import Row
from chipwise.catalog import Chip, load_catalog
from chipwise.errors import ChipwiseError
from chipwise.memory import visible_bytes
from chipwise.memory.training import TrainingMemoryInput
from chipwise.memory.training_job import TrainingJob, TrainingLayout
from chipwise.model import ModelSpec
from chipwise.parallelism import Number
from chipwise.perf.hardware import Hardware, hardware_of
from chipwise.perf.training import TrainingInput
from chipwise.perf.training_coefficients import TrainingCoefficients, training_coefficients
from chipwise.perf.training_communication import training_fabric
from chipwise.precision import capability


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A training run as chipwise asks about it.

    `mean_tokens` is a sequence's mean where it is padded to less; `recomputed_fraction` of the layers are recomputed
    under full recomputation.
    """

    row: Row
    model: ModelSpec
    chip: Chip
    trainer: str
    layout: TrainingLayout
    job: TrainingJob
    mean_tokens: float | None
    chips: float
    node_chips: float | None
    recomputed_fraction: Number = 1.0

    @property
    def capacity_bytes(self) -> float:
        """What the driver reports of one device."""
        return float(visible_bytes(self.chip.id, self.chip.memory_bytes or 0.0)) / self.chip.cores

    @property
    def asked(self) -> TrainingMemoryInput:
        """The question to the memory room."""
        return TrainingMemoryInput(model=self.model, layout=self.layout, job=self.job)


def coefficients_of(case: Case) -> TrainingCoefficients:
    """The fitted numbers of a case's chip, format and trainer."""
    return training_coefficients(generation=case.chip.architecture, precision=case.job.precision, trainer=case.trainer)


def asked_of(case: Case, own: TrainingCoefficients) -> TrainingInput:
    """The question of a case to perf, with these coefficients.

    Raises:
        SkipError: the chip lacks the facts of its rates.
    """
    return TrainingInput(
        model=case.model,
        layout=case.layout,
        job=case.job if case.mean_tokens is None else replace(case.job, seq_len=case.mean_tokens),
        fabric=training_fabric(
            hardware=_hardware(case),
            coefficients=own,
            generation=case.chip.architecture,
            fabric=case.chip.link.kind if case.chip.link else "none",
        ),
        coefficients=own,
        devices_per_chip=float(case.chip.cores),
        recomputed_fraction=case.recomputed_fraction,
    )


def _hardware(case: Case) -> Hardware:
    """The device with the links and network of the widest size that carries its chip, in nodes as the row has them."""
    found = _device(case.chip.id, case.job.precision)
    domain = found.node_devices
    if case.node_chips is not None and domain <= case.node_chips * case.chip.cores:
        domain = case.node_chips * case.chip.cores
    devices = case.chips * case.chip.cores
    alone = found.network_bytes_per_s == 0 and domain < devices
    return replace(found, node_devices=devices if alone else domain)


@cache
def _device(chip_id: str, precision: str) -> Hardware:
    chip = load_catalog().chips[chip_id]
    formats = [name for name in dict.fromkeys((precision, "bf16")) if capability(chip, name).flops_per_s is not None]
    try:
        base = hardware_of(chip, formats=formats, instance=widest(chip))
    except ChipwiseError as error:
        raise SkipError(CHIP_UNKNOWN) from error
    rates = dict(base.gemm_flops_per_s)
    rates.setdefault(precision, base.attention_flops_per_s)
    return replace(base, gemm_flops_per_s=rates)
