"""From a picked arrangement to a full option: every tenant's own figures, the placement, and what sharing risks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chipwise.cost import usd_per_million_tokens
from chipwise.decide.advice import Cost, Option, PrecisionChoice, Scale, Sizing
from chipwise.decide.infrastructure import BY_MIG, Site, feature_checks, isolation_of
from chipwise.decide.money import caveats_of, offered_here, purchase_lines
from chipwise.decide.serving.option import latency_of
from chipwise.decide.sharing.answers import Tenancy, memory_object, placement_of, tenancies_of
from chipwise.guide import grade, techniques
from chipwise.units import Range, show_bytes, show_count, show_seconds, show_usd

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from chipwise.decide.question import Question
    from chipwise.decide.sharing.deployment import SharedDeployment
    from chipwise.decide.sharing.needs import Need


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """An arrangement with its tenants' figures."""

    question: Question
    deployment: SharedDeployment
    tenancies: tuple[Tenancy, ...]

    @property
    def lead(self) -> Tenancy:
        """The tenant that is nearest to its bars."""
        return self.tenancies[self.deployment.lead.tenant]


def shared_option(question: Question, deployment: SharedDeployment, rank: int, ties: tuple[int, ...]) -> Option:
    """The full option of an arrangement.

    `performance` and `latency` are those of the tenant that is nearest to its bars, but for throughput, which is that
    of all; `sharing.models` has every tenant's own. `precision` is that of the narrowest weights, `memory` that of the
    fullest device.
    """
    told = _Told(question=question, deployment=deployment, tenancies=tenancies_of(deployment))
    serving = _serving(told)
    memory = memory_object(deployment, told.tenancies)
    site = Site(
        instance=deployment.instance,
        chip=deployment.lead.layout.seat.platform.chip,
        nodes=1,
        chips=max(tenant.chips_per_replica for tenant in told.tenancies),
    )
    checks = feature_checks(
        site, params=float(question.model.params_total), training=False, pretrain=False, multi_serving=True
    )
    return Option(
        rank=rank,
        tied_with=ties,
        instance=deployment.instance.name,
        instances=deployment.instances,
        chip=site.chip.id,
        chips=deployment.chips,
        chips_used=deployment.chips_used,
        replicas=sum(deployment.arrangement.replicas.values()),
        devices_per_replica=max(need.layout.devices for need in deployment.needs),
        parallelism=deployment.parallelism,
        precision=_precision(told),
        engine=deployment.lead.layout.seat.engine.name,
        settings={tenant.name: tenant.settings for tenant in told.tenancies},
        memory=memory,
        performance=_performance(told, serving, memory),
        latency=latency_of(told.lead.spread),
        rating_throughput=grade("throughput_per_gpu", "mean", serving["output_tokens_per_s_per_chip"].mid),
        rating_mfu=None,
        run=None,
        sizing=_sizing(deployment),
        cost=_cost(told, serving),
        infrastructure=tuple(checks),
        pools=None,
        sharing=_sharing(told),
        scale=_scale(deployment),
        regions=offered_here(question, deployment),
        reasons=tuple(_reasons(told)),
        risks=tuple(_risks(told)),
        discouraged_by=(),
        evidence=told.lead.evidence,
    )


def _serving(told: _Told) -> dict[str, Any]:
    """The lead's `serving` object with the throughput of all tenants."""
    every = [tenant.serving for tenant in told.tenancies]
    sums = {name: _sum([one[name] for one in every]) for name in ("output_tokens_per_s", "total_tokens_per_s", "batch")}
    each = sums["output_tokens_per_s"].scaled(1.0 / told.deployment.chips_used)
    return {**told.lead.serving, **sums, "output_tokens_per_s_per_chip": each}


def _sum(ranges: Sequence[Range]) -> Range:
    return Range(
        low=sum(one.low for one in ranges), mid=sum(one.mid for one in ranges), high=sum(one.high for one in ranges)
    )


def _performance(told: _Told, serving: dict[str, Any], memory: dict[str, Any]) -> dict[str, Any]:
    return {
        "feasible": True,
        "config": {
            "instance": told.deployment.instance.name,
            "models": [tenant.name for tenant in told.tenancies],
            "latency_of": told.lead.name,
        },
        "serving": serving,
        "training": None,
        "other": None,
        "memory": memory,
        "watts": None,
        "evidence": told.lead.evidence,
        "warnings": [],
    }


def _precision(told: _Told) -> PrecisionChoice:
    narrowest = next(one for one in told.tenancies if one.precision.weights == told.deployment.precision)
    return narrowest.precision


def _sizing(deployment: SharedDeployment) -> Sizing:
    """By memory: chips that hold one replica of every tenant."""
    cores, each = deployment.lead.layout.seat.platform.chip.cores, deployment.instance.chips or 1
    chips = max(1, math.ceil(sum(_part(need) for need in deployment.needs) / cores))
    fewest = deployment.arrangement.instances
    return Sizing(
        chips_by_memory=chips,
        instances_by_memory=-(-chips // each),
        instances_by_throughput=fewest,
        ha_factor=deployment.ha_factor,
        binding="memory" if -(-chips // each) >= fewest else "latency",
    )


def _part(need: Need) -> float:
    """Devices' worth of one replica: more than 1 where it takes several, its share where it has a part of one."""
    if need.place.kind == "turn":
        return need.device_bytes / need.layout.seat.platform.device_memory_bytes
    return max(need.size)


def _cost(told: _Told, serving: dict[str, Any]) -> Cost:
    deployment, found = told.deployment, told.deployment.quote
    return Cost(
        usd_per_hour=deployment.usd_per_hour,
        usd_per_million_output_tokens=usd_per_million_tokens(deployment.usd_per_hour, serving["output_tokens_per_s"]),
        usd_per_million_at_capacity=None,
        usd_per_unit=None,
        usd_per_run=None,
        price_as_of=found.as_of if found else None,
        price_kind=found.kind if found else None,
        purchase=purchase_lines(told.question, deployment),
        caveats=caveats_of(found),
    )


def _sharing(told: _Told) -> dict[str, Any]:
    """How the tenants share, who lives where, how each fares, and what was not chosen."""
    deployment = told.deployment
    technique = deployment.arrangement.technique
    row = next((one for one in techniques() if one.technique == technique), None)
    return {
        "technique": technique,
        "profile": deployment.profile,
        "tenants": len(told.tenancies),
        "isolation": row.isolation if row else "hardware",
        "isolation_asked": isolation_of(told.question),
        "why": _why(told),
        "config": row.config if row else "",
        "source": row.source if row else "catalog: devices of the size",
        "placement": placement_of(deployment),
        "models": [tenant.as_json() for tenant in told.tenancies],
        "others": [_other(one.technique, told) for one in techniques() if one.technique != technique],
    }


def _why(told: _Told) -> str:
    deployment, fewest = told.deployment, told.deployment.arrangement
    kept = (
        f"{len(told.tenancies)} models on {fewest.devices} devices of {fewest.instances} x {deployment.instance.name}"
    )
    words = {
        "separate": "every replica has devices of its own",
        "fractional": "every replica has a size of its own, a fraction of a GPU",
        "mig": "every replica has a slice of its own, or a whole GPU where no slice will do",
        "time-slicing": "models that share a GPU take turns: each is timed as if all were busy at once",
    }
    return f"{kept}: {words[fewest.technique]}"


def _other(technique: str, told: _Told) -> dict[str, str]:
    """A technique that was not chosen, with its own caution, and whether it gives the isolation asked for."""
    row = next(one for one in techniques() if one.technique == technique)
    asked = isolation_of(told.question)
    isolates = asked not in BY_MIG or row.memory_isolated == "yes"
    verdict = row.best_for if isolates else f"does not give the {asked} isolation asked for"
    return {"technique": technique, "why": f"{verdict}; {row.caution}", "source": row.source}


def _scale(deployment: SharedDeployment) -> Scale:
    free = (
        deployment.used_instances * deployment.lead.layout.seat.platform.chip.cores * (deployment.instance.chips or 1)
    )
    left = free - deployment.arrangement.devices
    add = f"add 1 x {deployment.instance.name}"
    return Scale(
        start_with=f"{deployment.instances} x {deployment.instance.name}",
        signal="P99 TTFT, waiting requests and KV-cache use of every model's engine",
        threshold="a P99 above its bar, or waiting requests for a minute, of any model",
        next=f"give that model one of the {left} devices that are left, then {add}" if left > 0 else add,
    )


def _reasons(told: _Told) -> Iterator[str]:
    for one in told.tenancies:
        demand = one.question.serving
        bars = [
            f"P99 {name} {show_seconds(float(spread.p99))}{f' against {show_seconds(bar)} asked' if bar else ''}"
            for name, spread, bar in zip(
                ("TTFT", "TPOT"), one.spread, (demand.ttft_p99_s, demand.tpot_p99_s), strict=True
            )
        ]
        rate = f"{show_count(one.serving['output_tokens_per_s'].mid)} output tokens/s"
        where = f"{one.replicas} x {one.place_words}, {show_bytes(one.device_bytes)} on each"
        yield f"{one.name} at {one.precision.weights}: {', '.join(bars)}; {rate} ({where})"
    deployment = told.deployment
    if deployment.usd_per_hour is not None and deployment.quote is not None:
        each = deployment.usd_per_hour.mid / len(told.tenancies)
        hourly = f"{show_usd(deployment.usd_per_hour.mid)} an hour, {show_usd(each)} a model"
        yield f"{hourly}: {deployment.quote.why}"
        yield from _against_alone(told, deployment.usd_per_hour.mid)
    idle = deployment.chips - deployment.chips_used
    if idle:
        yield f"{idle} of {deployment.chips} chips stay idle and are paid for"


def _against_alone(told: _Told, usd: float) -> Iterator[str]:
    """What the tenants would cost on sizes of their own."""
    lone = [one for one in told.deployment.alone if one is not None]
    if len(lone) < len(told.tenancies):
        return
    total = sum(one.usd for one in lone)
    each = ", ".join(
        f"{tenant.name} on {one.instances} x {one.instance}" for tenant, one in zip(told.tenancies, lone, strict=True)
    )
    words = "more" if total > usd else "less"
    verdict = "the same" if total == usd else f"{abs(total / usd - 1.0):.0%} {words} than together"
    yield f"each on its own cheapest size: {show_usd(total)} an hour, {verdict} ({each})"


def _risks(told: _Told) -> Iterator[str]:
    if told.deployment.arrangement.technique == "time-slicing":
        for one in (tenant for tenant in told.tenancies if tenant.need.place.sharers > 1):
            idle, busy = show_seconds(one.alone_tpot_s), show_seconds(one.serving["tpot_s"].mid)
            spread = f"{idle} while its neighbours are idle, {busy} while all {one.need.place.sharers} are busy"
            yield f"interference: a token of {one.name} takes {spread}"
        yield "a neighbour that takes more memory than its share, or faults, may take the others with it"
    for one in told.tenancies:
        yield from one.late()
        option = one.need.evaluated.option
        if option.calibration_data:
            yield f"{one.name} at {option.format} needs calibration data and a quality check"
        elif option.quality_loss and option.quality_loss != "none":
            yield f"{one.name} at {option.format}: quality loss {option.quality_loss} ({option.verdict})"
    yield from dict.fromkeys(note for one in told.tenancies for note in one.need.layout.seat.notes)
