"""Every layout worth asking about: platform x split at one precision, or the rule that refuses a platform."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from chipwise.decide.failures import Refusal
from chipwise.decide.serving.backing import Backing, backing_of
from chipwise.decide.serving.splits import multi_node_splits, powers, single_node_splits
from chipwise.engines import DeviceFacts, default_kv_format, engine_defaults
from chipwise.perf.hardware import hardware_of
from chipwise.perf.parameters import parameters_for, runtime_of
from chipwise.perf.ranges import evidence_of
from chipwise.precision import canonical, capability, format_facts, with_precision

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chipwise.catalog import Chip
    from chipwise.decide.platforms import Platform
    from chipwise.decide.question import Question
    from chipwise.engines import EngineProfile
    from chipwise.model import ModelSpec
    from chipwise.parallelism import Split
    from chipwise.perf.hardware import Hardware
    from chipwise.perf.parameters import Parameters
    from chipwise.perf.ranges import Evidence
    from chipwise.precision import Capability, PrecisionOption


DEFAULT_GRAPH_BATCH = 512
"""What captures are sized for where an engine states no largest batch."""


SEATS_KEPT = 4096
"""Seats that are remembered: a seat follows from facts alone, and every question puts the same platforms."""
CHUNKS = (2048, 512)
"""Prefill tokens of a step that are tried below the engine's default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """What the engine is set to on a device: its default for the version unless the asker set it."""

    utilization: float
    max_num_seqs: int
    chunk_tokens: int
    chunked: bool = False
    """Whether prompts are cut into chunks that ride in decode steps: then a shorter chunk holds answers up less."""
    whole_prompts: bool = False
    """Prompts are not cut into chunks, so that a step holds one of any length."""
    graph_max_batch: int = DEFAULT_GRAPH_BATCH
    kv_format: str = "bf16"
    eager: bool = False
    lora_adapters: int = 0
    lora_rank: int = 16
    draft: ModelSpec | None = None
    draft_tokens: int = 0
    acceptance: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seat:
    """A platform under one precision: what it multiplies in, its rates, its engine and how that is set.

    Seats and layouts are remembered, and equal only to themselves: they are keys of what is worked out of them.
    """

    platform: Platform
    backing: Backing
    limits: EngineLimits
    capability: Capability
    hardware: Hardware
    parameters: Parameters
    evidence: Evidence
    """How well predictions for the chip, the engine and the model's family are backed."""

    @property
    def fast_link(self) -> bool:
        """Whether the chips of a replica talk over more than PCIe."""
        link = self.platform.sample.link if self.platform.sample else self.platform.chip.link
        return link is not None and link.kind != "pcie"

    @property
    def engine(self) -> EngineProfile:
        """What runs the model."""
        return self.backing.engine

    @property
    def notes(self) -> tuple[str, ...]:
        """What was assumed, and what its documentation warns of."""
        return self.backing.notes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """One replica's layout on a seat; at most `most_replicas` of them on an instance, None: as many as it holds."""

    seat: Seat
    split: Split
    most_replicas: int | None = None

    @property
    def devices(self) -> int:
        """Devices of one replica."""
        return int(self.split.devices)


@lru_cache(maxsize=256)
def stored_formats(model: ModelSpec) -> tuple[str, ...]:
    """The formats the model's matrices are held in, each once."""
    return tuple(sorted({weight.format for weight, _ in model.all_weights()}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Able:
    """A chip that can run the model at a precision: by which engine, multiplying in what."""

    chip: Chip
    backing: Backing
    capability: Capability
    formats: tuple[str, ...]
    model_type: str
    kv_format: str
    """What the engine keeps the cache in when it is told nothing."""

    def __hash__(self) -> int:
        """By a few names: quick, as it is a key of the seats that are remembered."""
        return hash((self.chip.id, self.formats, self.model_type, self.kv_format))


def able_of(question: Question, chip: Chip, model: ModelSpec, option: PrecisionOption) -> Able | Refusal:
    """Check engine, architecture and formats in that order; the first that fails refuses.

    Args:
        question: engines by vendor.
        chip: the chip asked.
        model: already at `option`'s precision.
        option: the precision and where it comes from.
    """
    if not {"*", chip.vendor} & option.vendors:
        reason = f"{option.format}: {option.condition}"
        return Refusal(rule="precision", reason=reason, source=option.source, change="another precision")
    backing = backing_of(question, chip, option)
    if isinstance(backing, Refusal):
        return backing
    if backing.longest is not None and question.longest_tokens > backing.longest:
        reason = f"documented up to a context of {backing.longest} tokens: {backing.notes[0]}"
        return Refusal(rule="support", reason=reason, source="engines: neuron support", change="a shorter context")
    formats = stored_formats(model)
    main = capability(chip, option.format)
    rates = [main, *(capability(chip, name) for name in formats)]
    bad = next((one for one in rates if one.mode == "none"), None)
    if bad is not None:
        return Refusal(
            rule="precision", reason=f"{bad.weight_format} cannot be held: {bad.why}", source=bad.source,
            change="another precision or a newer chip",
        )  # fmt: skip
    if any(one.flops_per_s is None for one in rates):
        return Refusal(
            rule="facts", reason=f"no dense rate of {chip.id} is known for {option.format}", source="catalog",
            change="a source for the rate", known=False,
        )  # fmt: skip
    return Able(
        chip=chip,
        backing=backing,
        capability=main,
        formats=formats,
        model_type=question.model.model_type,
        kv_format=_cache_format(question.model, backing.engine.name, option),
    )


def _cache_format(model: ModelSpec, engine: str, option: PrecisionOption) -> str:
    stated = model.quantisation.kv_format if model.quantisation else None
    stored = canonical(stated) if stated else None
    return default_kv_format(engine, weight_family=format_facts(option.format).family, stored=stored)


def seat_of(question: Question, platform: Platform, model: ModelSpec, option: PrecisionOption) -> Seat | Refusal:
    """The platform's chip checked (`able_of`), then the platform seated."""
    able = able_of(question, platform.chip, model, option)
    return able if isinstance(able, Refusal) else _seat(platform, able)


@lru_cache(maxsize=SEATS_KEPT)
def _seat(platform: Platform, able: Able) -> Seat | Refusal:
    chip, fraction, engine = platform.chip, platform.fraction, able.backing.engine
    limits = limits_of(able.backing, platform)
    if isinstance(limits, EngineLimits):
        limits = replace(limits, kv_format=able.kv_format)
    if isinstance(limits, Refusal):
        return limits
    hardware = hardware_of(chip, formats=able.formats, instance=platform.sample)
    link = platform.sample.link if platform.sample else chip.link
    runtime = runtime_of(engine.name, engine.version)
    return Seat(
        platform=platform,
        backing=able.backing,
        limits=limits,
        capability=able.capability,
        hardware=replace(
            hardware,
            gemm_flops_per_s={name: rate * fraction for name, rate in hardware.gemm_flops_per_s.items()},
            attention_flops_per_s=hardware.attention_flops_per_s * fraction,
            memory_bandwidth_bytes_per_s=hardware.memory_bandwidth_bytes_per_s * platform.bandwidth_fraction,
        ),
        parameters=parameters_for(
            chip=chip.id, generation=chip.architecture, engine=runtime, fabric=link.kind if link else "none"
        ),
        evidence=_evidence(platform, evidence_of(chip=chip.id, runtime=runtime, model_type=able.model_type)),
    )


def _evidence(platform: Platform, whole: Evidence) -> Evidence:
    """What backs a whole chip is carried over to a part of it."""
    return "transferred" if platform.fraction < 1.0 and whole in {"measured", "calibrated"} else whole


def limits_of(backing: Backing, platform: Platform) -> EngineLimits | Refusal:
    """The engine's defaults on a device of the platform, within what is documented for the model.

    A default that sizing needs and no source gives is a refusal for want of knowledge.
    """
    engine = backing.engine
    device = DeviceFacts(chip=platform.chip.id, memory_bytes=int(platform.device_memory_bytes))
    found = engine_defaults(engine, device)
    if found.utilization is None or found.max_num_seqs is None or found.max_num_batched_tokens is None:
        reason = f"the defaults of {engine.title} {engine.version} on {platform.chip.id} are not known"
        change = "set --utilization, --max-num-seqs and --chunk-tokens"
        return Refusal(rule="facts", reason=reason, source="engines table", change=change, known=False)
    return EngineLimits(
        utilization=found.utilization,
        max_num_seqs=min(found.max_num_seqs, backing.most_sequences or found.max_num_seqs),
        chunk_tokens=found.max_num_batched_tokens,
        chunked=bool(found.chunked_prefill),
        whole_prompts=found.chunked_prefill is False and "nvidia" in engine.vendors,
        graph_max_batch=found.graph_max_batch or DEFAULT_GRAPH_BATCH,
    )


@lru_cache(maxsize=SEATS_KEPT)
def layouts_of(seat: Seat, model: ModelSpec) -> tuple[Layout, ...]:
    """Layouts of one replica inside a node of the seat, of those its engine documents.

    An instance cut into slices is tried with some of them taken too: the others are for other tenants.
    """
    link = seat.platform.sample.link if seat.platform.sample else seat.platform.chip.link
    switched = link is not None and link.kind == "nvswitch"
    splits = single_node_splits(model, seat.platform.most_tp, stages=not switched)
    legal = [Layout(seat=seat, split=split) for split in splits if documented(seat.backing, split)]
    if seat.platform.profile is None:
        return tuple(legal)
    return tuple(replace(one, most_replicas=taken) for one in legal for taken in slices_taken(seat.platform))


@lru_cache(maxsize=SEATS_KEPT)
def shorter_chunks(seat: Seat) -> tuple[Seat, ...]:
    """The seat with each shorter prefill chunk worth trying: prompts take more steps, and each holds answers up less.

    Source: Agrawal et al., "Taming Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve", 2024,
    arXiv:2403.02310, section 4.3.
    """
    sizes = [size for size in CHUNKS if seat.limits.chunked and size < seat.limits.chunk_tokens]
    return tuple(replace(seat, limits=replace(seat.limits, chunk_tokens=size)) for size in sizes)


def slices_taken(platform: Platform) -> list[int]:
    """Numbers of slices of an instance worth taking: by powers of two up to a whole GPU, then by whole GPUs.

    On four GPUs of seven slices: 1, 2, 4, 7, 14, 28.
    """
    each = platform.devices_per_chip
    return sorted({*powers(each), *(each * chips for chips in powers(platform.devices // each)), platform.devices})


@lru_cache(maxsize=SEATS_KEPT)
def spanning_layouts(seat: Seat, model: ModelSpec) -> tuple[Layout, ...]:
    """Layouts of one replica over several nodes, where the seat has a network for that."""
    if not seat.platform.networked:
        return ()
    splits = multi_node_splits(model, seat.platform.devices)
    return tuple(Layout(seat=seat, split=split) for split in splits if documented(seat.backing, split))


def documented(backing: Backing, split: Split) -> bool:
    """Whether the pages of the engine name such a split for the model."""
    return (not backing.tp or int(split.tp) in backing.tp) and (backing.stages or int(split.pp) == 1)


def at_precision(model: ModelSpec, option: PrecisionOption) -> ModelSpec:
    """The model in the option's format; a checkpoint used as it is stays as it is."""
    stored = {weight.format for weight, _ in model.all_weights() if weight.quantisable and weight.gemm}
    return model if option.format in stored and model.quantisation else with_precision(model, option.format)


@lru_cache(maxsize=SEATS_KEPT)
def _steady_seat(platform: Platform, able: Able) -> Seat | Refusal:
    """The seat without the burst with which a benchmark starts."""
    found = _seat(platform, able)
    if isinstance(found, Refusal):
        return found
    return replace(found, parameters=replace(found.parameters, burst_fraction=0.0))


def seats_of(
    question: Question, platforms: Iterable[Platform], model: ModelSpec, option: PrecisionOption
) -> tuple[list[Seat], list[tuple[Platform, Refusal]]]:
    """Every platform as a seat or with its refusal.

    A service in its steady state is planned: the burst with which a benchmark's closed loop starts is left out.
    """
    able: dict[str, Able | Refusal] = {}
    seats: list[Seat] = []
    refused: list[tuple[Platform, Refusal]] = []
    for platform in platforms:
        chip = platform.chip
        if chip.id not in able:
            able[chip.id] = able_of(question, chip, model, option)
        known = able[chip.id]
        found = known if isinstance(known, Refusal) else _steady_seat(platform, known)
        if isinstance(found, Seat):
            seats.append(found)
        else:
            refused.append((platform, found))
    return seats, refused
