"""Why an option stands where it stands, and what may go wrong with it: short sentences with their numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from chipwise.decide.serving.host import host_risks
from chipwise.perf.ranges import range_of
from chipwise.units import show_count, show_seconds, show_usd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chipwise.decide.question import Question
    from chipwise.decide.serving.deployment import ServingDeployment
    from chipwise.perf.ranges import Metric
    from chipwise.perf.spread import Spread

_BOUND = {
    "compute": "compute-bound", "bandwidth": "memory-bandwidth-bound", "communication": "bound by communication",
    "overhead": "bound by engine overhead", "capacity": "bound by cache capacity",
}  # fmt: skip


def reasons_of(
    question: Question, deployment: ServingDeployment, serving: dict[str, Any], spread: tuple[Spread, Spread]
) -> Iterator[str]:
    """Why this deployment: the bars it meets, what binds it, what it costs."""
    demand = question.serving
    ttft, tpot = float(spread[0].p99), float(spread[1].p99)
    if demand.ttft_p99_s is not None:
        yield f"P99 TTFT {show_seconds(ttft)} against {show_seconds(demand.ttft_p99_s)} asked"
    if demand.tpot_p99_s is not None:
        yield f"P99 TPOT {show_seconds(tpot)} against {show_seconds(demand.tpot_p99_s)} asked"
    rate = serving["output_tokens_per_s"]
    yield f"{show_count(rate.mid)} output tokens/s under the stated load; {_BOUND[serving['bound_by']]}"
    if deployment.usd_per_hour is not None and deployment.quote is not None:
        yield f"{show_usd(deployment.usd_per_hour.mid)} an hour: {deployment.quote.why}"
    yield from _cut(deployment)
    idle = deployment.chips - deployment.chips_used
    if idle:
        yield f"{idle} of {deployment.chips} chips stay idle and are paid for"
    if deployment.apart is not None:
        yield deployment.apart


def _cut(deployment: ServingDeployment) -> Iterator[str]:
    """Which slices it takes, what is left for other tenants, and its share of the price."""
    platform = deployment.layout.seat.platform
    if platform.profile is None:
        return
    slices = deployment.instances * platform.devices
    left = slices - deployment.replicas
    cost = deployment.usd_per_hour
    share = f", {show_usd(cost.mid * deployment.share)} an hour by its share" if cost is not None else ""
    yield (
        f"{deployment.replicas} of {slices} MIG slices of {platform.profile.name} "
        f"({platform.devices_per_chip} a GPU){share}; {left} are left for other tenants"
    )


def risks_of(
    question: Question,
    deployment: ServingDeployment,
    serving: dict[str, Any],
    spread: tuple[Spread, Spread],
    fits: int,
) -> Iterator[str]:
    """What may go wrong: the upper end of the range, queueing, unsupported knowledge, quality.

    `fits` is how many requests of the full context the cache of one replica holds.
    """
    demand, evidence = question.serving, deployment.evidence
    bars: tuple[tuple[str, Metric, float, float | None], ...] = (
        ("TTFT", "ttft", float(spread[0].p99), demand.ttft_p99_s),
        ("TPOT", "tpot", float(spread[1].p99), demand.tpot_p99_s),
    )
    for name, metric, got, bar in bars:
        high = range_of(got, evidence=evidence, metric=metric, load=demand.kind).high
        if bar is not None and high > bar:
            yield f"P99 {name} may reach {show_seconds(high)} (upper end of the {evidence} range): benchmark first"
    limit = deployment.value("sequence_limit")
    if demand.kind == "closed" and limit < demand.users / deployment.replicas:
        yield f"the cache holds {limit:.0f} requests a replica: others queue"
    elif fits < math.ceil(demand.users / deployment.replicas) and demand.kind == "closed":
        yield (
            f"the cache holds {fits} of {math.ceil(demand.users / deployment.replicas)} requests a replica at the full "
            f"context of {demand.context_tokens:.0f} tokens, all of them at their mean length"
        )
    if serving["bound_by"] == "capacity":
        yield "the cache is full at this load: longer requests than stated will queue"
    option = deployment.evaluated.option
    if option.calibration_data:
        yield f"{option.format} needs calibration data and a quality check: {option.quality_loss or option.condition}"
    elif option.quality_loss and option.quality_loss != "none":
        yield f"{option.format}: quality loss {option.quality_loss} ({option.verdict})"
    yield from host_risks(question, deployment)
    yield from deployment.layout.seat.notes
