"""What a load makes of a batch time: latency and throughput of devices that each serve their share in batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from chipwise.parallelism import Number
from chipwise.perf.other.seconds import batch_seconds
from chipwise.perf.spread import queue_wait_s

if TYPE_CHECKING:
    from chipwise.perf.other.passes import Passes
    from chipwise.perf.other.seconds import Device

METHOD = "equal requests, served in batches: a closed load in rounds, a rate by the exponential tail of M/D/1"
BATCHES = 2.0 ** np.arange(11)
"""Batches tried."""
THINK_ROUNDS = 32
BUSIEST = 0.999
"""A device busier than that has no steady state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """How requests come, in totals for the deployment.

    `closed`: `users` always in flight; `rate`: `rate_per_s` a second; `offline`: a queue that never empties;
    `static`: one batch of `users`; `throughput`: a queue that never empties, of which `rate_per_s` units a second are
    to be worked off.
    """

    kind: str
    users: float = 1.0
    rate_per_s: float = 0.0
    think_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a load sees on so many devices: latencies of a request, requests a second of the whole deployment."""

    batch: Number
    latency_mean_s: Number
    latency_p99_s: Number
    requests_per_s: Number
    capacity_per_s: Number
    utilisation: Number


def outcome(passes: Passes, device: Device, arrival: Arrival, *, devices: Number, largest_batch: float) -> Outcome:
    """The best of the batches tried, for every number of devices.

    Closed: a device has `n = users / devices` requests in flight and takes `b` of them at a time, so a request takes
    `ceil(n / b)` rounds. Rate: batches of `b` come at `rate / devices / b`; they wait as in M/D/1, and a request
    waits for its batch to fill. Offline: the largest batch. Throughput: as offline, on devices that reach it. Of the
    batches the one with the lowest P99 is taken; offline, that with the most throughput.

    Args:
        passes: what a request does.
        device: one device's reachable rates.
        arrival: the load.
        devices: devices that share it, a number or an array.
        largest_batch: requests that a device's memory holds at once.
    """
    sizes = np.compress(np.less_equal(BATCHES, max(largest_batch, 1.0)), BATCHES)[None, :]

    def seconds_of(requests: Number) -> Number:
        return batch_seconds(passes, device, requests=requests)

    count = np.atleast_1d(np.asarray(devices, dtype=float))[:, None]
    best = {"closed": _closed, "static": _closed, "rate": _rate, "offline": _offline, "throughput": _reached}[
        arrival.kind
    ]
    asked = replace(arrival, rate_per_s=arrival.rate_per_s / passes.units) if arrival.kind == "throughput" else arrival
    return best(_Tried(sizes=sizes, seconds_of=seconds_of, count=count, request_s=device.request_s), asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tried:
    """Batches (columns) on numbers of devices (rows)."""

    sizes: np.ndarray
    seconds_of: Callable[[Number], Number]
    count: np.ndarray
    request_s: float


def _chosen(column: np.ndarray, **values: Number) -> Outcome:
    rows = np.arange(len(column))
    shape = (len(column), int(np.max([np.shape(value)[-1] for value in values.values()])))
    return Outcome(**{name: np.broadcast_to(value, shape)[rows, column] for name, value in values.items()})


def _closed(tried: _Tried, arrival: Arrival) -> Outcome:
    """Of people who think in between, only those who wait are in flight (Little's law), found by iterating."""
    sizes, request_s = tried.sizes, tried.request_s
    in_flight = np.ceil(np.full((len(tried.count), 1), arrival.users) / tried.count)

    def taken_s(shared: Number) -> Number:
        return np.ceil(shared / sizes) * tried.seconds_of(np.minimum(sizes, shared)) + request_s

    shared = in_flight
    for _ in range(THINK_ROUNDS if arrival.think_s else 0):
        waited_s = np.min(taken_s(shared), axis=1, keepdims=True)
        shared = np.maximum(in_flight * waited_s / (waited_s + arrival.think_s), 1.0)
    latency_s = taken_s(shared)
    capacity = tried.count * np.max(sizes / tried.seconds_of(sizes), axis=1, keepdims=True)
    # Batches of a fixed size follow each other: what a request adds by itself overlaps with the batch before.
    apart_s = -request_s if arrival.kind == "static" else arrival.think_s
    rate = np.minimum(arrival.users / (latency_s + apart_s), capacity)
    return _chosen(
        np.argmin(latency_s, axis=1),
        batch=np.minimum(sizes, shared),
        latency_mean_s=latency_s,
        latency_p99_s=latency_s,
        requests_per_s=rate,
        capacity_per_s=capacity,
        utilisation=rate / capacity,
    )


def _rate(tried: _Tried, arrival: Arrival) -> Outcome:
    sizes, seconds = tried.sizes, tried.seconds_of(tried.sizes)
    each = arrival.rate_per_s / tried.count
    busy = each * seconds / sizes
    fill_s = (sizes - 1.0) / each
    calm = np.minimum(busy, BUSIEST)
    mean_s = calm * seconds / (2.0 * (1.0 - calm))
    wait_s = np.where(busy < BUSIEST, mean_s, np.inf)
    tail_s = np.where(busy < BUSIEST, queue_wait_s(mean_wait_s=mean_s, utilisation=calm, quantile=0.99), np.inf)
    capacity = tried.count * np.max(sizes / seconds, axis=1, keepdims=True)
    p99_s = tail_s + fill_s + seconds + tried.request_s
    return _chosen(
        np.argmin(p99_s, axis=1),
        batch=sizes,
        latency_mean_s=wait_s + fill_s / 2.0 + seconds + tried.request_s,
        latency_p99_s=p99_s,
        requests_per_s=np.minimum(arrival.rate_per_s, capacity),
        capacity_per_s=capacity,
        utilisation=busy,
    )


def _offline(tried: _Tried, arrival: Arrival) -> Outcome:
    del arrival
    seconds = tried.seconds_of(tried.sizes)
    rates = tried.count * tried.sizes / seconds
    capacity = np.max(rates, axis=1, keepdims=True)
    return _chosen(
        np.argmax(rates, axis=1),
        batch=tried.sizes,
        latency_mean_s=seconds + tried.request_s,
        latency_p99_s=seconds + tried.request_s,
        requests_per_s=rates,
        capacity_per_s=capacity,
        utilisation=np.ones_like(capacity),
    )


def _reached(tried: _Tried, arrival: Arrival) -> Outcome:
    """The largest batches on as many devices as it takes; fewer never get to the end of the queue."""
    found = _offline(tried, arrival)
    enough = np.asarray(found.capacity_per_s) >= arrival.rate_per_s
    return replace(
        found,
        latency_mean_s=np.where(enough, found.latency_mean_s, np.inf),
        latency_p99_s=np.where(enough, found.latency_p99_s, np.inf),
        requests_per_s=np.minimum(found.requests_per_s, arrival.rate_per_s),
        utilisation=arrival.rate_per_s / np.asarray(found.capacity_per_s),
    )
