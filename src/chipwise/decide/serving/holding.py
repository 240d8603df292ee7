"""One layout's memory in full: the object that `memory` prints and that every estimate and option carries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from chipwise.catalog import load_catalog
from chipwise.decide.budget import whole_bytes
from chipwise.engines import kv_formats, spare_layers
from chipwise.memory import (
    FitOptions,
    ServingMemoryInput,
    Sized,
    SizedChange,
    answer_of,
    changes_of,
    min_chips,
    settled,
    sized,
    to_make_it_fit,
    ways_of,
)
from chipwise.parallelism import shard
from chipwise.precision import capability

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chipwise.catalog import Chip
    from chipwise.decide.platforms import Platform
    from chipwise.decide.serving.seats import Layout
    from chipwise.memory import MemoryAnswer
    from chipwise.model import ModelSpec
    from chipwise.parallelism import LayerShards, Split


KEPT = 1024
"""Layouts of which is remembered what no load changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A layout sized under its load, with its answer: what a prediction and a printed budget are made from."""

    sized: Sized
    answer: MemoryAnswer


def hold(model: ModelSpec, layout: Layout, *, context_tokens: float, concurrency: float) -> Held:
    """Size one layout of a model that is already at its precision."""
    found = _sized(model, layout).under(context_tokens=context_tokens, concurrency=concurrency)
    return Held(sized=found, answer=answer_of(found))


@lru_cache(maxsize=KEPT)
def _sized(model: ModelSpec, layout: Layout) -> Sized:
    """All of a layout's memory that no load changes."""
    return settled(sized(memory_question(model, layout, context_tokens=1.0, concurrency=1.0)))


@lru_cache(maxsize=KEPT)
def _ways(model: ModelSpec, layout: Layout) -> Sized | None:
    """The same of every split that could stand in for the layout's."""
    return ways_of(model, _sized(model, layout).asked, _options(layout))


@lru_cache(maxsize=KEPT)
def _changes(model: ModelSpec, layout: Layout) -> tuple[SizedChange, ...]:
    """Changes to a layout that could free memory, whatever its load."""
    return changes_of(model, _sized(model, layout).asked, _options(layout))


@lru_cache(maxsize=KEPT)
def shards_of(model: ModelSpec, split: Split) -> LayerShards:
    """`shard` of one split, remembered."""
    return shard(model, split)


def memory_question(
    model: ModelSpec, layout: Layout, *, context_tokens: float, concurrency: float
) -> ServingMemoryInput:
    """One layout of a model that is already at its precision, as the memory room asks it."""
    seat = layout.seat
    split = replace(layout.split, spare_layers=spare_layers(seat.engine))
    return ServingMemoryInput(
        shards=shards_of(model, split),
        capacity_bytes=seat.platform.device_memory_bytes * seat.platform.chip.cores,
        utilization=seat.limits.utilization,
        context_tokens=context_tokens,
        concurrency=concurrency,
        chunk_tokens=seat.limits.chunk_tokens,
        whole_prompts=seat.limits.whole_prompts,
        max_num_seqs=seat.limits.max_num_seqs,
        kv_format=seat.limits.kv_format,
        engine=seat.engine.name,
        engine_version=seat.engine.asked_version or seat.engine.version,
        eager=seat.limits.eager,
        graph_max_batch=seat.limits.graph_max_batch,
        nvlink=seat.fast_link,
        devices_per_chip=seat.platform.chip.cores,
        lora_adapters=seat.limits.lora_adapters,
        lora_rank=seat.limits.lora_rank,
        draft=shards_of(seat.limits.draft, split) if seat.limits.draft else None,
        draft_tokens=seat.limits.draft_tokens,
    )


def memory_object(model: ModelSpec, layout: Layout, held: Held) -> dict[str, Any]:
    """CONTRACT's memory object: terms of the fullest chip that add up to its capacity, and what fits.

    Args:
        model: at the layout's precision.
        layout: where it is laid.
        held: the same layout sized.
    """
    answer, budget, chip = held.answer, held.answer.budget, layout.seat.platform.chip
    per_chip, short = whole_bytes(float(budget.capacity_bytes), budget.terms())
    load, ways = held.sized, _ways(model, layout)
    fewest = min_chips(ways and ways.under(context_tokens=load.context_tokens, concurrency=load.concurrency))
    changes = [] if answer.fits else to_make_it_fit(held.sized, answer, _changes(model, layout))
    said = (*answer.warnings, *_overrun(answer), *_unread_format(layout), *layout.seat.notes)
    return {
        "fits": bool(answer.fits),
        "chip": chip.id,
        "chips": layout.seat.platform.chips_of(layout.devices),
        "profile": layout.seat.platform.profile.name if layout.seat.platform.profile else None,
        "lnc": chip.lnc,
        "per_chip": per_chip,
        "shortfall_bytes": short,
        "kv_pool_bytes": _whole(answer.kv_pool_bytes),
        "kv_cache_tokens": _whole(answer.kv_cache_tokens),
        "max_concurrency_at_context": float(answer.max_concurrency_at_context),
        "longest_context": _whole(answer.longest_context),
        "min_chips": fewest,
        "min_instances": _instances(layout, fewest),
        "to_make_it_fit": [
            {"change": one.change, "frees_bytes": _whole(one.frees_bytes), "costs": one.costs, "enough": one.enough}
            for one in changes
        ],
        "range": {"low_fraction": float(answer.low_fraction), "high_fraction": float(answer.high_fraction)},
        "evidence": answer.evidence,
        "engine": layout.seat.engine.name,
        "engine_version": layout.seat.engine.version,
        "context_tokens": _whole(load.context_tokens),
        "concurrency": float(load.concurrency),
        "warnings": list(dict.fromkeys(said)),
    }


def _instances(layout: Layout, chips: int | None) -> int | None:
    """Instances of the asked size that the fewest chips are; None where only a chip is asked."""
    sample = layout.seat.platform.sample
    return None if sample is None or chips is None else -(-chips // (sample.chips or 1))


def _unread_format(layout: Layout) -> list[str]:
    engine, held = layout.seat.engine, layout.seat.limits.kv_format
    known = kv_formats(engine)
    if not known or held.partition("-")[0] in known:
        return []
    return [f"no source says that {engine.title} {engine.version} holds a cache in {held}: {', '.join(known)} are read"]


def _overrun(answer: MemoryAnswer) -> list[str]:
    lacking = -float(answer.reserve_room_bytes)
    if lacking <= 0:
        return []
    share = lacking / float(answer.budget.capacity_bytes)
    return [f"graphs and the driver lack {lacking / 1e9:.1f} GB beside what the engine fills: take {share:.2f} off it"]


@lru_cache(maxsize=KEPT)
def _options(layout: Layout) -> FitOptions:
    """What may be changed: formats that engine and chip hold, degrees, larger slices and chips that are rented."""
    seat = layout.seat
    chip = seat.platform.chip
    part = seat.platform.fraction < 1.0 or seat.platform.profile is not None
    return FitOptions(
        kv_format="fp8" if "fp8" in kv_formats(seat.engine) else None,
        weight_formats=tuple(name for name in NARROWER if capability(chip, name).mode != "none"),
        most_tp=1 if part else _node_devices(seat.platform),
        most_stages=1 if part else MOST_STAGES,
        bigger_parts_bytes=_parts(seat.platform) if part else {},
        bigger_chips_bytes=_larger(chip, seat.platform.device_memory_bytes, layout.devices),
        draft=seat.limits.draft,
    )


def _node_devices(platform: Platform) -> int:
    """Devices of one instance; where only a chip is asked, of the widest size that carries it."""
    sizes = (size.devices or 1 for size in load_catalog().instances.values() if size.chip == platform.chip.id)
    return platform.most_tp if platform.sample else max((platform.most_tp, *sizes))


def _parts(platform: Platform) -> dict[str, float]:
    """Other parts of the GPU by name, their bytes: its MIG profiles, or the fractions that are rented."""
    chip = platform.chip
    if platform.profile is not None:
        return {f"a slice of {one.name}": float(one.memory_bytes or 0) for one in chip.mig_profiles}
    sizes = (one for one in load_catalog().instances.values() if one.chip == chip.id and one.chip_fraction < 1.0)
    return {one.name: float(one.accelerator_memory_bytes or 0) for one in sizes}


MOST_STAGES = 8
"""Nodes that one replica spans at most."""
NARROWER = ("fp8", "int4-g128")
"""Formats of weights proposed where a model does not fit, by what they lose."""


@lru_cache(maxsize=KEPT)
def _larger(chip: Chip, device_bytes: float, devices: int) -> Mapping[str, float]:
    """Larger chips of the vendor by the smallest rented size that has as many devices: its name, a chip's bytes."""
    catalog = load_catalog()
    found: dict[str, float] = {}
    for name, one in catalog.chips.items():
        held = (one.memory_bytes or 0) / one.cores
        sizes = [size for size in catalog.instances.values() if size.chip == name and size.status == "current"]
        room = [size for size in sizes if (size.devices or 0) >= devices and size.chip_fraction == 1.0]
        if one.vendor == chip.vendor and one.cores == chip.cores and held > device_bytes and room:
            smallest = min(room, key=lambda size: (size.devices or 0, size.vcpu or 0, size.name))
            found[f"{smallest.name} ({name})"] = held * one.cores
    return found


def _whole(value: Any) -> int:
    return round(float(value))
