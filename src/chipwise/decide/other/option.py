"""From a picked deployment to a full option: memory, speed, cost, checks, reasons and risks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.decide.advice import Cost, Latency, Option, PrecisionChoice, Scale, Sizing
from chipwise.decide.infrastructure import Site, feature_checks
from chipwise.decide.money import caveats_of, offered_here, purchase_lines
from chipwise.decide.other.answers import performance_object
from chipwise.decide.question import FULLEST
from chipwise.guide import grade
from chipwise.units import CENT, Percentiles, finite, show_count, show_seconds, show_usd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chipwise.decide.advice import FeatureCheck
    from chipwise.decide.other.deployment import OtherDeployment
    from chipwise.decide.question import Question


def other_option(question: Question, deployment: OtherDeployment, rank: int, ties: tuple[int, ...]) -> Option:
    """The full option of a picked deployment."""
    stand = deployment.stand
    config = {"instance": deployment.instance.name, "replicas": deployment.replicas}
    used = deployment.base_instances * (deployment.instance.chips or 1)
    performance = performance_object(deployment.served, used, config)
    return Option(
        rank=rank,
        tied_with=ties,
        instance=deployment.instance.name,
        instances=deployment.instances,
        chip=stand.name,
        chips=deployment.chips,
        chips_used=deployment.used_instances * (deployment.instance.chips or 1),
        replicas=deployment.replicas,
        devices_per_replica=1,
        parallelism=deployment.parallelism,
        precision=_precision(deployment),
        engine=stand.engine,
        settings={"max_batch": round(float(deployment.served.outcome.batch))},
        memory=performance["memory"],
        performance=performance,
        latency=_latency(deployment),
        rating_throughput=None,
        rating_mfu=None,
        run=None,
        sizing=_sizing(question, deployment),
        cost=_cost(question, deployment),
        infrastructure=_checks(question, deployment),
        pools=None,
        sharing=None,
        scale=_scale(question, deployment),
        regions=offered_here(question, deployment),
        reasons=tuple(_reasons(question, deployment)),
        risks=tuple(_risks(deployment)),
        discouraged_by=(),
        evidence=stand.evidence,
    )


def _precision(deployment: OtherDeployment) -> PrecisionChoice:
    option = deployment.stand.option
    loss = f"{option.quality_loss} ({option.verdict})" if option.quality_loss else None
    return PrecisionChoice(
        weights=option.format,
        kv=option.format,
        compute=deployment.stand.compute_format,
        quality={"loss": loss, "condition": option.condition, "source": option.source},
    )


def _latency(deployment: OtherDeployment) -> Latency:
    """The answer comes whole, so its latency stands as time to first token; there is none between tokens."""
    mean, p99 = (
        finite(value) for value in (deployment.served.outcome.latency_mean_s, deployment.served.outcome.latency_p99_s)
    )
    return Latency(
        ttft_s=Percentiles(mean=mean, p50=None, p90=None, p95=None, p99=p99),
        tpot_s=Percentiles(mean=None, p50=None, p90=None, p95=None, p99=None),
        rating_ttft=grade("ttft", "p99", p99),
        rating_tpot=None,
        method="analytic",
    )


def _sizing(question: Question, deployment: OtherDeployment) -> Sizing:
    """Instances by throughput: the load over what one instance may be asked to do."""
    capacity = FULLEST * float(deployment.served.outcome.capacity_per_s) / deployment.base_instances
    asked = float(deployment.served.outcome.requests_per_s)
    by_throughput = max(1, round(-(-asked // capacity))) if question.other.arrival.kind in {"rate", "throughput"} else 1
    return Sizing(
        chips_by_memory=1,
        instances_by_memory=1,
        instances_by_throughput=by_throughput,
        ha_factor=question.policy.ha_factor,
        binding="latency" if deployment.base_instances > by_throughput else "throughput",
    )


def _cost(question: Question, deployment: OtherDeployment) -> Cost:
    found = deployment.quote
    offline = question.other.arrival.kind == "offline"
    rate = deployment.served.capacity_units_per_s if offline else deployment.served.units_per_s
    return Cost(
        usd_per_hour=deployment.usd_per_hour,
        usd_per_million_output_tokens=None,
        usd_per_million_at_capacity=None,
        usd_per_unit=deployment.usd_per_unit(rate),
        usd_per_run=None,
        price_as_of=found.as_of if found else None,
        price_kind=found.kind if found else None,
        purchase=purchase_lines(question, deployment),
        caveats=caveats_of(found),
    )


def _checks(question: Question, deployment: OtherDeployment) -> tuple[FeatureCheck, ...]:
    """The guide's checklist is of accelerators."""
    chip = deployment.stand.chip
    if chip is None:
        return ()
    site = Site(instance=deployment.instance, chip=chip, nodes=1, chips=1)
    params = float(question.model.params_total)
    return tuple(feature_checks(site, params=params, training=False, pretrain=False))


def _scale(question: Question, deployment: OtherDeployment) -> Scale:
    bar_s = question.other.latency_p99_s
    return Scale(
        start_with=f"{deployment.instances} x {deployment.instance.name}",
        signal="P99 latency and use of the devices",
        threshold=f"P99 latency above {show_seconds(bar_s)}" if bar_s else "a queue that grows",
        next=f"add 1 x {deployment.instance.name} ({deployment.stand.devices} copies)",
    )


def _reasons(question: Question, deployment: OtherDeployment) -> Iterator[str]:
    passes, found = deployment.served.passes, deployment.served.outcome
    p99, bar_s = float(found.latency_p99_s), question.other.latency_p99_s
    against = f" (asked: {show_seconds(bar_s)})" if bar_s else ""
    yield f"P99 latency {show_seconds(p99)}{against}, batches of {float(found.batch):.0f} on a device"
    capacity = deployment.served.capacity_units_per_s
    yield f"at most {show_count(capacity.mid)} {passes.unit}s a second, {show_count(capacity.low)} at the worst"
    each = deployment.usd_per_unit(capacity)
    if each is not None:
        count, said = (1.0, f"a {passes.unit}") if each.mid >= CENT else (1e6, f"a million {passes.unit}s")
        priced = each.scaled(count)
        span = f"{show_usd(priced.low)} to {show_usd(priced.high)}"
        yield f"{show_usd(priced.mid)} for {said} when full ({span})"
    if deployment.instance.kind == "cpu":
        yield "needs no accelerator: drivers, images and quotas of GPUs fall away"


def _risks(deployment: OtherDeployment) -> Iterator[str]:
    yield "no measurement of such models backs this: fractions of the sheet rates are those of language models"
    yield from deployment.served.passes.notes
    yield from deployment.stand.notes
