"""From two pools to a full option: what differs from the option that they stand for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chipwise.cost import usd_per_million_tokens
from chipwise.decide.advice import Cost, PurchaseLine, Scale
from chipwise.decide.money import caveats_of, offered_here, purchase_lines
from chipwise.decide.pools.answers import pool_object, serving_object
from chipwise.decide.serving.option import latency_of, serving_option
from chipwise.decide.serving.seats import at_precision
from chipwise.guide import grade
from chipwise.perf.ranges import range_of
from chipwise.units import Range, show_bytes, show_count, show_seconds, show_usd

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from chipwise.decide.advice import FeatureCheck, Option
    from chipwise.decide.pools.deployment import PooledDeployment
    from chipwise.decide.question import Question
    from chipwise.perf.ranges import Metric


def pooled_option(question: Question, deployment: PooledDeployment, rank: int, ties: tuple[int, ...]) -> Option:
    """The full option of two pools.

    `instance` and `instances` are those of the option's own size; where the other pool stands on another, `pools`
    says so and `chips` and `cost` count both. `parallelism`, `memory` and `settings` are the decode pool's.
    """
    base = serving_option(question, deployment.together, rank, ties)
    model = at_precision(question.model, deployment.together.evaluated.option)
    serving = serving_object(deployment)
    pools = tuple(pool_object(question, deployment, pool, model) for pool in deployment.pools)
    memory, settings = pools[1]["memory"], pools[1]["settings"]
    return replace(
        base,
        instances=deployment.instances,
        chip=deployment.together.layout.seat.platform.chip.id,
        chips=deployment.chips,
        chips_used=sum(pool.chips_used for pool in deployment.pools),
        replicas=deployment.replicas,
        devices_per_replica=deployment.decode.layout.devices,
        parallelism=deployment.parallelism,
        settings=settings,
        memory=memory,
        performance={
            **base.performance, "serving": serving, "memory": memory, "evidence": deployment.evidence,
            "config": {"instance": deployment.instance.name, "replicas": deployment.replicas},
        },
        latency=latency_of((deployment.ttft, deployment.tpot)),
        rating_throughput=grade("throughput_per_gpu", "mean", serving["output_tokens_per_s_per_chip"].mid),
        sizing=replace(
            base.sizing, instances_by_throughput=sum(pool.instances for pool in deployment.rented), binding="latency"
        ),
        cost=_cost(question, deployment, serving),
        infrastructure=tuple(_checked(base.infrastructure, deployment)),
        pools=pools,
        scale=_scale(question, deployment),
        regions=_regions(question, deployment),
        reasons=tuple(_reasons(question, deployment, serving)),
        risks=tuple(_risks(question, deployment)),
        evidence=deployment.evidence,
    )  # fmt: skip


def _cost(question: Question, deployment: PooledDeployment, serving: dict[str, Any]) -> Cost:
    hourly, found = deployment.usd_per_hour, deployment.quote
    capacity = serving["saturation_rate"].scaled(question.serving.osl_tokens)
    caveats = [text for pool in deployment.rented for text in caveats_of(pool.quote)]
    return Cost(
        usd_per_hour=hourly,
        usd_per_million_output_tokens=usd_per_million_tokens(hourly, serving["output_tokens_per_s"]),
        usd_per_million_at_capacity=usd_per_million_tokens(hourly, capacity),
        usd_per_unit=None,
        usd_per_run=None,
        price_as_of=found.as_of,
        price_kind=found.kind,
        purchase=_purchase([purchase_lines(question, pool) for pool in deployment.rented]),
        caveats=tuple(dict.fromkeys(caveats)),
    )


def _purchase(lines: Sequence[tuple[PurchaseLine, ...]]) -> tuple[PurchaseLine, ...]:
    """Each way to buy for all pools at once; without a price where one pool has none."""
    return tuple(
        PurchaseLine(
            option=of_term[0].option,
            usd_per_hour=_sum([one.usd_per_hour for one in of_term]),
            why="; ".join(dict.fromkeys(one.why for one in of_term)),
        )
        for of_term in zip(*lines, strict=True)
    )


def _sum(ranges: Sequence[Range | None]) -> Range | None:
    known = [one for one in ranges if one is not None]
    if len(known) < len(ranges):
        return None
    return Range(
        low=sum(one.low for one in known), mid=sum(one.mid for one in known), high=sum(one.high for one in known)
    )


def _regions(question: Question, deployment: PooledDeployment) -> tuple[str, ...]:
    first, *others = [offered_here(question, pool) for pool in deployment.rented]
    return tuple(region for region in first if all(region in other for other in others))


def _checked(checks: Sequence[FeatureCheck], deployment: PooledDeployment) -> Iterator[FeatureCheck]:
    """The checklist, with EFA required where caches cross it, and what that does here."""
    crossing = deployment.crossing
    for check in checks:
        if check.feature != "efa" or crossing.over != "EFA":
            yield check
            continue
        size = show_bytes(crossing.bytes_per_request)
        took = f"{size} of cache a prompt in {show_seconds(crossing.seconds)}, {crossing.use_fraction:.0%} of the time"
        carries = f"carries {took}"
        rule = "prefill and decode apart"
        yield replace(check, need="required", effect=f"{check.effect}; {carries}", rule=rule, time=carries)


def _scale(question: Question, deployment: PooledDeployment) -> Scale:
    bar = question.serving.ttft_p99_s
    start = " + ".join(f"{pool.instances} x {pool.instance.name}" for pool in deployment.rented)
    return Scale(
        start_with=start,
        signal="P99 TTFT and waiting prompts of the prefill pool; P99 TPOT and KV-cache use of the decode pool",
        threshold=f"P99 TTFT above {bar * 1e3:.0f} ms" if bar else "waiting prompts above 0 for a minute",
        next=f"add a replica to the pool whose signal rises (prefill is busy {_busy(deployment):.0%} of the time)",
    )


def _busy(deployment: PooledDeployment) -> float:
    return float(deployment.prediction.prefill_utilisation)


def _reasons(question: Question, deployment: PooledDeployment, serving: dict[str, Any]) -> Iterator[str]:
    demand, crossing, together = question.serving, deployment.crossing, deployment.together
    if demand.ttft_p99_s is not None:
        yield f"P99 TTFT {show_seconds(float(deployment.ttft.p99))} against {show_seconds(demand.ttft_p99_s)} asked"
    if demand.tpot_p99_s is not None:
        yield f"P99 TPOT {show_seconds(float(deployment.tpot.p99))} against {show_seconds(demand.tpot_p99_s)} asked"
    rate = serving["output_tokens_per_s"]
    yield f"{show_count(rate.mid)} output tokens/s at {deployment.rate_per_s:.3g} requests/s"
    price, usd = together.usd_per_hour, deployment.usd_per_hour.mid
    if price is not None:
        saved = f"{show_usd(usd)} an hour against {show_usd(price.mid)} ({1.0 - usd / price.mid:.0%} less)"
        alike = f"{together.instances} x {together.instance.name}"
        yield f"prefill and decode apart: {saved} for {alike} that do both ({deployment.words})"
    yield (
        f"together, prompts lengthen a token from {show_seconds(together.value('plain_step_s'))} to "
        f"{show_seconds(together.value('tpot_s'))}; apart it takes {show_seconds(serving['tpot_s'].mid)}"
    )
    yield (
        f"the cache of a prompt, {show_bytes(crossing.bytes_per_request)}, crosses {crossing.over} in "
        f"{show_seconds(crossing.seconds)}"
    )


def _risks(question: Question, deployment: PooledDeployment) -> Iterator[str]:
    demand, ability = question.serving, deployment.ability
    bars: tuple[tuple[str, Metric, float, float | None], ...] = (
        ("TTFT", "ttft", float(deployment.ttft.p99), demand.ttft_p99_s),
        ("TPOT", "tpot", float(deployment.tpot.p99), demand.tpot_p99_s),
    )
    for name, metric, got, bar in bars:
        high = range_of(got, evidence=deployment.evidence, metric=metric, load="rate").high
        if bar is not None and high > bar:
            yield f"P99 {name} may reach {show_seconds(high)} (upper end of the {deployment.evidence} range)"
    title = deployment.decode.layout.seat.engine.title
    yield f"two pools: {ability.status} in {title}: {ability.why} ({ability.source})"
    yield "the fit holds no runs of two pools: TTFT and the crossing are arithmetic, and nothing is counted as hidden"
    yield "a change of prompt or answer lengths shifts the balance of the pools: scale each by its own signal"
    sizes = {pool.instance.name for pool in deployment.rented}
    if len(sizes) > 1:
        yield f"{' and '.join(sorted(sizes))} must be had in one Availability Zone at once"
    yield from dict.fromkeys(note for pool in deployment.pools for note in pool.layout.seat.notes)
