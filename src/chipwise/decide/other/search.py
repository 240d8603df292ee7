"""Put copies of the model on every kind of device, find the fewest instances that meet the bar, say what fails."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

from chipwise.decide.failures import Failure, Refusal, refusal_failure
from chipwise.decide.found import Found
from chipwise.decide.other.deployment import OtherDeployment
from chipwise.decide.other.served import Served
from chipwise.decide.other.stands import cpu_stand, fed, stand_of
from chipwise.decide.platforms import platforms_of
from chipwise.decide.question import FULLEST
from chipwise.perf.other.build import passes_of
from chipwise.perf.other.load import Outcome, outcome
from chipwise.units import show_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from chipwise.catalog import Instance
    from chipwise.cost import Quote
    from chipwise.decide.other.stands import Stand
    from chipwise.decide.question import Question
    from chipwise.perf.other.load import Arrival
    from chipwise.perf.other.passes import Passes

Quotes = dict[str, "Quote | None"]
INSTANCES = np.array([*range(1, 17), 20, 24, 28, 32, 40, 48, 64, 80, 96, 128, 192, 256, 384, 512], dtype=float)
"""Instances tried."""


def search_other(question: Question, instances: Sequence[Instance], quotes: Quotes) -> Found:
    """Keep per size the fewest instances that carry the load within the bar.

    Args:
        question: model, item, load, bar, policy.
        instances: sizes to try.
        quotes: those of them that may be bought here, with their price.

    Raises:
        KnowledgeError: what a request makes a device do is not known.
    """
    found = Found()
    passes = passes_of(question.model, question.other.item)
    for members, stand in _stands(question, instances):
        found.layouts_tried.append(1)
        if isinstance(stand, Refusal):
            found.fail(members, refusal_failure(stand))
            continue
        short_bytes = room(stand, passes, 1.0)
        if short_bytes < 0:
            found.fail(members, _memory_failure(stand, -short_bytes))
            continue
        found.held.update(one.name for one in members)
        for member in members:
            if member.name in quotes:
                _judge(question, passes, stand, (member, quotes[member.name]), found)
    return found


def _stands(
    question: Question, instances: Sequence[Instance]
) -> Iterator[tuple[tuple[Instance, ...], Stand | Refusal]]:
    for instance in instances:
        if instance.kind == "cpu":
            yield (instance,), cpu_stand(question, instance)
    accelerated = [one for one in instances if one.kind != "cpu"]
    for platform in platforms_of(accelerated, question.catalog.chips):
        yield platform.members, stand_of(question, platform)


def room(stand: Stand, passes: Passes, requests: float) -> float:
    """Bytes that a device has left with so many requests at once; negative where it lacks them."""
    return stand.memory_bytes - stand.overhead_bytes - stand.weights_bytes - requests * passes.held_bytes


def largest_batch(stand: Stand, passes: Passes) -> float:
    """Requests that a device's memory holds at once, beside the weights."""
    left = room(stand, passes, 0.0)
    return float("inf") if passes.held_bytes <= 0 else max(left // passes.held_bytes, 1.0)


def at(found: Outcome, place: int) -> Outcome:
    """One of several numbers of devices."""
    return Outcome(**{one.name: float(np.asarray(getattr(found, one.name))[place]) for one in fields(Outcome)})


def _judge(
    question: Question, passes: Passes, stand: Stand, offered: tuple[Instance, Quote | None], found: Found
) -> None:
    demand, (instance, quote) = question.other, offered
    stand = fed(stand, instance)
    counts = _counts(passes, stand, demand.arrival)
    tried = outcome(
        passes, stand.device, demand.arrival, devices=counts * stand.devices,
        largest_batch=largest_batch(stand, passes),
    )  # fmt: skip
    bar_s = demand.latency_p99_s
    late = np.asarray(tried.latency_p99_s) > (np.inf if bar_s is None else bar_s)
    late |= ~np.isfinite(np.asarray(tried.latency_p99_s))
    if demand.arrival.kind == "rate":  # a queue that never empties keeps devices full
        late |= demand.arrival.rate_per_s > FULLEST * np.asarray(tried.capacity_per_s)
    if late.all():
        found.fail([instance], _late(tried, bar_s))
        return
    place = int(np.argmin(late))
    found.add(
        OtherDeployment(
            instance=instance,
            served=Served(stand=stand, passes=passes, outcome=at(tried, place), kind=demand.arrival.kind),
            base_instances=int(counts[place]),
            ha_factor=question.policy.ha_factor,
            quote=quote,
        )
    )


def _counts(passes: Passes, stand: Stand, arrival: Arrival) -> NDArray[np.float64]:
    """Numbers of instances tried: a throughput says itself how many reach it."""
    if arrival.kind != "throughput":
        return INSTANCES
    one = outcome(
        passes, stand.device, arrival, devices=float(stand.devices), largest_batch=largest_batch(stand, passes)
    )
    needed = arrival.rate_per_s / passes.units / float(np.ravel(one.capacity_per_s)[0])
    return np.array([min(max(math.ceil(needed), 1.0), INSTANCES[-1])])


def _memory_failure(stand: Stand, short_bytes: float) -> Failure:
    return Failure(
        stage="memory",
        distance=short_bytes,
        reason=f"a copy at {stand.option.format} does not fit on one device: {short_bytes / 2**30:.1f} GiB short",
        source="memory budget",
        change="a size with more memory on a device (copies are not split)",
        shortfall={"value": short_bytes, "unit": "bytes per device"},
        nearest={"precision": stand.option.format, "engine": stand.engine},
    )


def _late(tried: Outcome, bar_s: float | None) -> Failure:
    best_s = float(np.min(np.asarray(tried.latency_p99_s)))
    if bar_s is None or not np.isfinite(best_s) or best_s <= bar_s:
        return Failure(
            stage="slo", distance=float("inf"), reason=f"{INSTANCES[-1]:.0f} of them do not carry the load",
            source="prediction", change="a lower rate or a faster size",
        )  # fmt: skip
    return Failure(
        stage="slo",
        distance=best_s / bar_s,
        reason=f"P99 latency {show_seconds(best_s)} at best (asked: {show_seconds(bar_s)})",
        source="prediction",
        change=f"a bar of {best_s / bar_s:.2f} times what was asked, or a faster size",
        shortfall={"value": best_s - bar_s, "unit": "s"},
        nearest={"latency_p99_s": best_s},
    )
