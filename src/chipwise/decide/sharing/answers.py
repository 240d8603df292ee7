"""Every tenant of an arrangement in full, the fullest device's memory, and who lives on which device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from chipwise.decide.advice import PrecisionChoice
from chipwise.decide.budget import whole_bytes
from chipwise.decide.serving.answers import question_of, serving_object
from chipwise.decide.serving.holding import hold
from chipwise.decide.serving.seats import at_precision
from chipwise.decide.sharing.needs import at_once
from chipwise.perf.ranges import range_of
from chipwise.perf.serving import alone_s, explain_serving
from chipwise.perf.spread import tpot_spread, ttft_spread
from chipwise.units import show_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from chipwise.decide.question import Question
    from chipwise.decide.serving.holding import Held
    from chipwise.decide.sharing.arrange import Block
    from chipwise.decide.sharing.deployment import SharedDeployment
    from chipwise.decide.sharing.needs import Need
    from chipwise.perf.load import ServingInput
    from chipwise.perf.ranges import Evidence, Metric
    from chipwise.perf.spread import Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenancy:
    """One tenant where it lives, at the replicas that it has there."""

    question: Question
    need: Need
    replicas: int
    held: Held
    serving: dict[str, Any]
    spread: tuple[Spread, Spread]
    alone_tpot_s: float
    """A token of one request while nobody else is on the device."""

    @property
    def name(self) -> str:
        """Of the model."""
        return self.question.model.name

    @property
    def evidence(self) -> Evidence:
        """How well predictions for it are backed."""
        return self.need.layout.seat.evidence

    @property
    def chips_per_replica(self) -> int:
        """Chips of one replica, the last perhaps in part."""
        return self.need.layout.seat.platform.chips_of(self.need.layout.devices)

    @property
    def device_bytes(self) -> float:
        """What one replica holds on a device, the memory that an engine leaves alone not counted."""
        return used_bytes(self)

    @property
    def place_words(self) -> str:
        """What a replica has, in words."""
        place, chip = self.need.place, self.need.layout.seat.platform.chip.id
        if place.kind == "slice" and place.platform.profile is not None:
            return f"{place.platform.profile.name} of a {chip}"
        if place.kind == "turn":
            return f"1/{place.sharers} of the time of a {chip}"
        fraction = place.platform.fraction
        return f"{fraction:g} of a {chip}" if fraction < 1.0 else f"tp{int(self.need.layout.split.tp)} on {chip}"

    @property
    def precision(self) -> PrecisionChoice:
        """What weights and cache are held in."""
        option, seat = self.need.evaluated.option, self.need.layout.seat
        loss = f"{option.quality_loss} ({option.verdict})" if option.quality_loss else None
        return PrecisionChoice(
            weights=option.format,
            kv=seat.limits.kv_format,
            compute=seat.capability.compute_format or option.format,
            quality={"loss": loss, "condition": option.condition, "source": option.source},
        )

    @property
    def settings(self) -> dict[str, Any]:
        """How its engine is set: on a device that it shares by turns its utilization is its part of the memory."""
        seat = self.need.layout.seat
        return {
            "max_num_seqs": round(float(self.held.sized.asked.max_num_seqs)),
            "max_model_len": round(self.question.serving.context_tokens),
            "gpu_memory_utilization": round(utilization_of(self.need), 3),
            "max_num_batched_tokens": seat.limits.chunk_tokens,
            "engine_version": seat.engine.version,
            "kv_cache_dtype": seat.limits.kv_format,
        }

    def late(self) -> Iterator[str]:
        """Bars that the upper end of the range misses."""
        demand = self.question.serving
        bars: tuple[tuple[str, Metric, Spread, float | None], ...] = (
            ("TTFT", "ttft", self.spread[0], demand.ttft_p99_s),
            ("TPOT", "tpot", self.spread[1], demand.tpot_p99_s),
        )
        for name, metric, spread, bar in bars:
            high = range_of(float(spread.p99), evidence=self.evidence, metric=metric, load=demand.kind).high
            if bar is not None and high > bar:
                yield f"{self.name}: P99 {name} may reach {show_seconds(high)} (upper end of the {self.evidence} range)"

    def as_json(self) -> dict[str, Any]:
        """One entry of `sharing.models`."""
        demand = self.question.serving
        return {
            "model": self.name,
            "replicas": self.replicas,
            "users": demand.users if demand.kind == "closed" else None,
            "rate_per_s": demand.rate_per_s if demand.kind == "rate" else None,
            "precision": self.precision,
            "parallelism": parallelism_of(self.need),
            "engine": self.need.layout.seat.engine.name,
            "settings": self.settings,
            "device_bytes": round(self.device_bytes),
            "ttft_p99_s": float(self.spread[0].p99),
            "tpot_p99_s": float(self.spread[1].p99),
            "isolated": self.serving["isolated"],
            "output_tokens_per_s": self.serving["output_tokens_per_s"],
            "bound_by": self.serving["bound_by"],
            "evidence": self.evidence,
        }


def tenancies_of(deployment: SharedDeployment) -> tuple[Tenancy, ...]:
    """Every tenant with its figures at the replicas that the arrangement gives it."""
    replicas = deployment.arrangement.replicas
    return tuple(
        _tenancy(tenant, need, replicas[need.tenant])
        for tenant, need in zip(deployment.question.tenants, deployment.needs, strict=True)
    )


def _tenancy(tenant: Question, need: Need, replicas: int) -> Tenancy:
    demand, layout = tenant.serving, need.layout
    seats = min(layout.seat.limits.max_num_seqs, at_once(demand, replicas=replicas, running=need.value("running")))
    limits = replace(layout.seat.limits, utilization=utilization_of(need), max_num_seqs=seats)
    layout = replace(layout, seat=replace(layout.seat, limits=limits))
    model = at_precision(tenant.model, need.evaluated.option)
    usual = hold(model, layout, context_tokens=demand.isl_tokens + demand.osl_tokens, concurrency=float(seats))
    longest = hold(model, layout, context_tokens=demand.context_tokens, concurrency=1.0)
    held = max(usual, longest, key=lambda one: float(one.answer.need_bytes))
    asked = question_of(model, layout, held, demand, float(replicas))
    prediction, _ = explained = explain_serving(asked)
    with np.errstate(invalid="ignore"):  # a saturated load waits for ever: infinite less infinite
        spread = ttft_spread(prediction), tpot_spread(prediction, steps=demand.osl_tokens - 1.0)
    return Tenancy(
        question=tenant,
        need=need,
        replicas=replicas,
        held=held,
        serving=serving_object(layout, asked, demand, explained),
        spread=spread,
        alone_tpot_s=_undisturbed_s(asked, need.place.sharers),
    )


def _undisturbed_s(asked: ServingInput, sharers: int) -> float:
    """A token of one request on the whole device."""
    hardware = asked.hardware
    whole = replace(
        hardware,
        gemm_flops_per_s={name: rate * sharers for name, rate in hardware.gemm_flops_per_s.items()},
        attention_flops_per_s=hardware.attention_flops_per_s * sharers,
        memory_bandwidth_bytes_per_s=hardware.memory_bandwidth_bytes_per_s * sharers,
    )
    return float(alone_s(replace(asked, hardware=whole, machine=None))[1])


def utilization_of(need: Need) -> float:
    """Share of a device that the engine takes: its own default, or its part of one that it shares by turns."""
    seat = need.layout.seat
    if need.place.kind != "turn":
        return seat.limits.utilization
    return min(seat.limits.utilization, need.device_bytes / seat.platform.device_memory_bytes)


def parallelism_of(need: Need) -> dict[str, int]:
    """The split of one replica."""
    split = need.layout.split
    return {name: int(getattr(split, name)) for name in ("tp", "pp", "ep", "dp", "cp")}


def _terms(tenancy: Tenancy) -> dict[str, float]:
    """Of one replica on its fullest chip, what the engine leaves alone not counted."""
    terms = tenancy.held.answer.budget.terms()
    return {name: float(size) for name, size in terms.items() if name != "reserved_bytes"}


def used_bytes(tenancy: Tenancy) -> float:
    """What one replica holds on its fullest chip, or in its slice."""
    return sum(_terms(tenancy).values())


def memory_object(deployment: SharedDeployment, tenancies: Sequence[Tenancy]) -> dict[str, Any]:
    """CONTRACT's memory object of the fullest chip: the terms of all who live on it, and what engines leave alone."""
    seat = deployment.lead.layout.seat
    platform, chip = seat.platform, seat.platform.chip
    fullest = max(deployment.arrangement.blocks, key=lambda block: _held_bytes(block, tenancies))
    names = _terms(tenancies[0])
    whole = float(chip.memory_bytes or 0) if platform.fraction == 1.0 or _cut(fullest) else platform.device_memory_bytes
    terms = {name: sum(_terms(tenancies[need.tenant])[name] for need in fullest.needs) for name in names}
    reserved = sum(_reserved(tenancies[need.tenant]) for need in fullest.needs)
    if not _cut(fullest) and len(fullest.needs) > 1:
        reserved = whole * (1.0 - seat.limits.utilization)
    per_chip, short = whole_bytes(whole, {"reserved_bytes": reserved, **terms})
    lead = tenancies[deployment.lead.tenant].held.answer
    return {
        "fits": not short,
        "chip": chip.id,
        "chips": deployment.chips_used,
        "lnc": chip.lnc,
        "per_chip": per_chip,
        "shortfall_bytes": short,
        "kv_pool_bytes": round(sum(float(tenancies[need.tenant].held.answer.kv_pool_bytes) for need in fullest.needs)),
        "kv_cache_tokens": None,
        "max_concurrency_at_context": None,
        "longest_context": None,
        "min_chips": None,
        "to_make_it_fit": [],
        "range": {"low_fraction": float(lead.low_fraction), "high_fraction": float(lead.high_fraction)},
        "evidence": lead.evidence,
        "models": [tenancies[need.tenant].name for need in fullest.needs],
        "warnings": [text for tenant in tenancies for text in tenant.held.answer.warnings],
    }


def _held_bytes(block: Block, tenancies: Sequence[Tenancy]) -> float:
    return sum(used_bytes(tenancies[need.tenant]) for need in block.needs)


def _reserved(tenancy: Tenancy) -> float:
    return float(tenancy.held.answer.budget.terms()["reserved_bytes"])


def _cut(block: Block) -> bool:
    return any(need.place.kind == "slice" for need in block.needs)


def placement_of(deployment: SharedDeployment) -> list[dict[str, Any]]:
    """One row a replica: in which instance (from 1), on which device of it (from 0), on what part of it."""
    arrangement = deployment.arrangement
    next_device = dict.fromkeys(arrangement.instance_of, 0)
    rows = []
    for block, instance in zip(arrangement.blocks, arrangement.instance_of, strict=True):
        for need in block.needs:
            profile = need.place.platform.profile
            rows.append(
                {
                    "model": deployment.question.tenants[need.tenant].model.name,
                    "instance": instance + 1,
                    "device": next_device[instance],
                    "devices": block.devices,
                    "profile": profile.name if profile else None,
                    "share": need.place.platform.fraction,
                    "memory_bytes": round(need.device_bytes),
                }
            )
        next_device[instance] += block.devices
    return sorted(rows, key=lambda row: (row["instance"], row["device"]))
