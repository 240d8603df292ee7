"""Where copies of a model stand: every kind of device with the rates it reaches, or the rule that refuses it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from chipwise.decide.failures import Refusal
from chipwise.engines import load_engine, neuron_support
from chipwise.memory.profile import memory_profile
from chipwise.perf.hardware import hardware_of
from chipwise.perf.other.facts import engine_for, processor_of
from chipwise.perf.other.rows import walks_trees
from chipwise.perf.other.seconds import Device, device_of
from chipwise.perf.parameters import parameters_for, runtime_of
from chipwise.precision import (
    bytes_per_param,
    capability,
    format_facts,
    legal_precisions,
    meets_floor,
    stored_bytes,
    with_precision,
)

if TYPE_CHECKING:
    from chipwise.catalog import Chip, Instance
    from chipwise.decide.platforms import Platform
    from chipwise.decide.question import Question
    from chipwise.perf.ranges import Evidence
    from chipwise.precision import PrecisionOption

TASKS = {
    "embed": "embed", "classify": "embed", "rerank": "embed", "vision": "vision", "diffusion": "diffusion",
    "transcribe": "audio", "tts": "audio",
}  # fmt: skip
"""What the Neuron pages call the presets' work; no page speaks of the others."""
NARROWEST_BITS = 16
CPU_ENGINE = "transformers"
FLEX = "-flex"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """One kind of device that holds a copy of the model: its rates, its memory, who runs it."""

    name: str
    cores: int
    """Devices of one chip."""
    devices: int
    """Devices of one instance."""
    lnc: int | None
    chip: Chip | None
    option: PrecisionOption
    compute_format: str
    device: Device
    memory_bytes: float
    weights_bytes: float
    overhead_bytes: float
    engine: str
    evidence: Evidence
    notes: tuple[str, ...] = ()


def options_of(question: Question) -> list[PrecisionOption]:
    """Precisions that copies may be held at: legal for serving, not below the floor, none below 16 bits.

    Narrower ones need a tool chain that no source describes for these models.
    """
    floor = question.policy.min_precision
    return [
        one
        for one in legal_precisions(question.model)
        if "serve" in one.use
        and format_facts(one.format).bits >= NARROWEST_BITS
        and (floor is None or meets_floor(one.format, floor))
    ]


def _cheapest_first(options: list[PrecisionOption], question: Question) -> list[PrecisionOption]:
    """Fewest bits first; where quality comes first, most."""
    sign = -1 if question.policy.goals[0] == "quality" else 1
    return sorted(options, key=lambda one: sign * format_facts(one.format).bits)


def stand_of(question: Question, platform: Platform) -> Stand | Refusal:
    """The stand of an accelerator: engine and support first, then a format that it multiplies.

    Args:
        question: model, preset, policy, engines.
        platform: a chip as a node gives it.
    """
    if walks_trees(question.model):
        return Refusal(
            rule="support", reason="no source gives the rate at which accelerators walk trees",
            source="guide A:176: trees are cheaper on CPUs", change="a CPU size", known=False,
        )  # fmt: skip
    backing = _neuron(question, platform.chip) if platform.chip.vendor == "aws" else _gpu(question, platform.chip)
    if isinstance(backing, Refusal):
        return backing
    engine, notes, bits = backing
    option = _held(question, platform.chip, bits)
    return option if isinstance(option, Refusal) else _stand(question, platform, option, engine, notes)


Backed = tuple[str, tuple[str, ...], frozenset[int]]
"""An engine, what its pages warn of, and the widths that they name; none named: any."""


def _gpu(question: Question, chip: Chip) -> Backed | Refusal:
    named = question.engines.get(chip.vendor)
    if named is not None and chip.vendor in named.vendors:
        return named.name, (), frozenset()
    engine = load_engine(engine_for(question.purpose, question.model.model_type))
    if (named is None and question.engines) or chip.vendor not in engine.vendors:
        return Refusal(
            rule="engine", reason=f"no engine of the question runs on {chip.vendor} chips", source="engines table",
            change="leave out --engine", known=bool(question.engines),
        )  # fmt: skip
    return engine.name, (), frozenset()


def _neuron(question: Question, chip: Chip) -> Backed | Refusal:
    task = TASKS.get(question.purpose)
    model_type = question.model.model_type
    if task is None or (question.engines and chip.vendor not in question.engines):
        reason = f"no Neuron page speaks of {question.purpose}" if task is None else "the engine named runs elsewhere"
        return Refusal(rule="support", reason=reason, source="engines: neuron support", change="a GPU or CPU size")
    found = neuron_support(model_type, task, chip.id, question.neuron_stack)
    if found.status == "unsupported":
        return Refusal(rule="support", reason=found.why, source=found.source, change="a GPU size")
    if found.status == "unknown" or found.engine is None:
        return Refusal(rule="support", reason=found.why, source=found.source, change="a GPU size", known=False)
    if found.tp and 1 not in found.tp:
        split = ", ".join(map(str, found.tp))
        reason = f"documented over {split} cores, and only whole copies a core are timed: {found.why}"
        return Refusal(rule="split", reason=reason, source=found.source, change="a GPU size", known=False)
    bits = frozenset(round(format_facts(name).bits) for name in found.formats)
    return found.engine, (f"{found.why}; {found.constraints} ({found.source})",), bits


def _held(question: Question, chip: Chip, bits: frozenset[int]) -> PrecisionOption | Refusal:
    """The first format that the chip multiplies at a known rate, native ones before widened ones."""
    legal = [one for one in options_of(question) if not bits or round(format_facts(one.format).bits) in bits]
    options = _cheapest_first(legal, question)
    if not options:
        return Refusal(
            rule="precision", reason="no legal precision of 16 bits or more that its pages name meets the floor",
            source=question.policy.precision_why or "precision table", change="a lower --min-precision",
        )  # fmt: skip
    known = [(one, capability(chip, one.format)) for one in options]
    native = [one for one, held in known if held.mode == "native" and held.flops_per_s]
    widened = [one for one, held in known if held.mode == "weight-only" and held.flops_per_s]
    found = next(iter([*native, *widened]), None)
    if found is None:
        why = known[0][1].why
        return Refusal(
            rule="precision", reason=f"{options[0].format} is not multiplied at a known rate: {why}",
            source=known[0][1].source, change="another precision or a newer chip", known=known[0][1].mode == "none",
        )  # fmt: skip
    return found


def _stand(
    question: Question, platform: Platform, option: PrecisionOption, engine: str, notes: tuple[str, ...]
) -> Stand:
    chip, runtime, fraction = platform.chip, runtime_of(engine, load_engine(engine).version), platform.fraction
    hardware = hardware_of(chip, formats=(option.format,), instance=platform.sample)
    reached = parameters_for(chip=chip.id, generation=chip.architecture, engine=runtime, fabric="none")
    if chip.vendor == "aws":
        reached = parameters_for(chip=chip.id, generation=chip.architecture, engine="", fabric="none")
    device = device_of(
        hardware, reached, weight_format=option.format, weight_bytes=float(bytes_per_param(option.format))
    )
    device = replace(
        device,
        gemm_flops_per_s=device.gemm_flops_per_s * fraction,
        attention_flops_per_s=device.attention_flops_per_s * fraction,
        bytes_per_s=device.bytes_per_s * platform.bandwidth_fraction,
        first_kernel_s=device.graphed_kernel_s if chip.vendor == "aws" else device.first_kernel_s,
    )
    profile = memory_profile(engine)
    return Stand(
        name=chip.id,
        cores=chip.cores,
        devices=platform.devices,
        lnc=chip.lnc,
        chip=chip,
        option=option,
        compute_format=capability(chip, option.format).compute_format or option.format,
        device=device,
        memory_bytes=platform.device_memory_bytes,
        weights_bytes=float(stored_bytes(with_precision(question.model, option.format)).main_bytes),
        overhead_bytes=profile.context_bytes + profile.single_bytes,
        engine=engine,
        evidence="physics",  # the fractions were fitted on language models alone
        notes=notes,
    )


def cpu_stand(question: Question, instance: Instance) -> Stand | Refusal:
    """The stand of a CPU size: FP32 vector units of all its cores, its share of the socket's bandwidth.

    16-bit weights are held as such and multiplied at the FP32 rate; what matrix instructions gain is in the range.
    """
    processor = processor_of(instance.family)
    if processor is None or not instance.vcpu or not instance.ram_bytes:
        return _unrated(instance)
    options = options_of(question)
    if not options:
        return Refusal(
            rule="precision", reason="no legal precision of 16 bits or more meets the floor",
            source=question.policy.precision_why or "precision table", change="a lower --min-precision",
        )  # fmt: skip
    option = max(options, key=lambda one: format_facts(one.format).bits)
    reached = parameters_for(chip="", generation=processor.architecture, engine="", fabric="none")
    rate = processor.flops_per_s_per_vcpu * instance.vcpu
    device = Device(
        gemm_flops_per_s=rate * float(reached.compute_fraction),
        attention_flops_per_s=rate * float(reached.attention_compute_fraction),
        bytes_per_s=processor.bytes_per_s_per_vcpu * instance.vcpu * float(reached.bandwidth_fraction),
        weight_bytes=float(bytes_per_param(option.format)),
        first_kernel_s=float(reached.gap_s),
        graphed_kernel_s=float(reached.gap_s),
        pass_s=float(reached.step_s),
        request_s=float(reached.request_s),
    )
    return Stand(
        name=processor.name,
        cores=1,
        devices=1,
        lnc=None,
        chip=None,
        option=option,
        compute_format="fp32",
        device=device,
        memory_bytes=float(instance.ram_bytes),
        weights_bytes=float(stored_bytes(with_precision(question.model, option.format)).main_bytes),
        overhead_bytes=0.0,
        engine=CPU_ENGINE,
        evidence="physics",
        notes=(f"rates of the processor: {processor.source}", "memory of the operating system is not counted"),
    )


def _unrated(instance: Instance) -> Refusal:
    """A CPU size whose rates nobody publishes; a flex size has all of its processor's only some of the time."""
    reason = "FLOP/s and memory bandwidth of its processor: no source that was read gives them"
    change = "a size of the 7th or 8th generation"
    if instance.family.endswith(FLEX):
        reason = "what a steady load gets of its processor, which is its own only part of the time: no source gives it"
        change = f"the same size of {instance.family.removesuffix(FLEX)}"
    return Refusal(rule="facts", reason=reason, source="processors table", change=change, known=False)


def fed(stand: Stand, instance: Instance) -> Stand:
    """The stand on a size whose network its devices share; a size without a known network is fed as fast as it asks."""
    network = instance.network_bytes_per_s
    if not network:
        return stand
    return replace(stand, device=replace(stand.device, feed_bytes_per_s=network / stand.devices))
