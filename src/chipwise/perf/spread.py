"""How TTFT and TPOT spread over the requests of one load: a named analytic approximation, no simulation.

METHOD says what it is. It knows queueing for prefill, the burst a closed loop starts with, unequal prompt
lengths, and how often others' prompts interrupt a request; it does not know bursts of arrivals, preemption
or a slow client.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.parallelism import Number
from chipwise.perf.load import ServingPrediction

METHOD = "analytic: exponential tail of an M/G/1 queue for TTFT, normal approximation of Poisson interruptions for TPOT"
NORMAL_QUANTILES = {0.5: 0.0, 0.9: 1.2815515655, 0.95: 1.6448536270, 0.99: 2.3263478740}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Mean and percentiles over requests, seconds."""

    mean: Number
    p50: Number
    p90: Number
    p95: Number
    p99: Number


def queue_wait_s(*, mean_wait_s: Number, utilisation: Number, quantile: float) -> Number:
    """Wait that a share `quantile` of requests does not exceed: `P(W > t) = rho * exp(-t * rho / mean)`.

    Source: exponential tail of M/G/1 in heavy traffic (Kingman, "The single server queue in heavy traffic",
    1961).

    >>> round(float(queue_wait_s(mean_wait_s=1.0, utilisation=0.5, quantile=0.9)), 3)
    3.219
    """
    rho = np.clip(utilisation, 1e-6, 0.999)
    return np.maximum(mean_wait_s / rho * np.log(rho / (1.0 - quantile)), 0.0)


def burst_wait_s(*, mean_wait_s: Number, share: Number, quantile: float) -> Number:
    """Wait in the burst that a run starts with, which a share `quantile` of all requests does not exceed.

    A share `share` of the requests starts together and is served one after the other: their waits lie evenly between
    0 and `2 * mean / share`, the others do not wait. `2 * mean / share * (1 - (1 - quantile) / share)`.

    >>> float(burst_wait_s(mean_wait_s=0.05, share=0.1, quantile=0.5))
    0.0
    >>> round(float(burst_wait_s(mean_wait_s=0.05, share=0.1, quantile=0.99)), 3)
    0.9
    """
    among = np.clip(share, 1e-6, 1.0)
    return 2.0 * mean_wait_s / among * np.maximum(1.0 - (1.0 - quantile) / among, 0.0)


def ttft_spread(prediction: ServingPrediction, *, isl_cv: Number = 0.0) -> Spread:
    """Percentiles of TTFT: log-normal prompt lengths, a uniform wait for a step, the longer of queue and burst.

    Args:
        prediction: what `predict_serving` said; a saturated load has no percentiles (infinite).
        isl_cv: standard deviation of prompt length over its mean.
    """

    def at(quantile: float) -> Number:
        return ttft_quantile_s(prediction, quantile=quantile, isl_cv=isl_cv)

    return Spread(mean=prediction.ttft_s, p50=at(0.5), p90=at(0.9), p95=at(0.95), p99=at(0.99))


def ttft_quantile_s(prediction: ServingPrediction, *, quantile: float, isl_cv: Number = 0.0) -> Number:
    """One of the percentiles of `ttft_spread`."""
    step = np.minimum(prediction.tpot_s, prediction.wait_s * 2.0)
    sigma = np.sqrt(np.log1p(np.asarray(isl_cv) ** 2))
    base = prediction.ttft_s - step / 2.0 - prediction.queue_s - prediction.burst_s
    length = np.exp(sigma * NORMAL_QUANTILES[quantile] - sigma**2 / 2.0)
    queue = queue_wait_s(mean_wait_s=prediction.queue_s, utilisation=prediction.prefill_utilisation, quantile=quantile)
    burst = burst_wait_s(mean_wait_s=prediction.burst_s, share=prediction.burst_share, quantile=quantile)
    found: Number = base * length + step * quantile + np.maximum(queue, burst)
    return found


def tpot_spread(prediction: ServingPrediction, *, steps: Number) -> Spread:
    """Percentiles of TPOT: a request of `steps` decode steps is interrupted by a Poisson number of prompts.

    Mean `share * steps`, standard deviation its root; each interruption takes `prefill_delta_s`.
    """

    def at(quantile: float) -> Number:
        return tpot_quantile_s(prediction, quantile=quantile, steps=steps)

    return Spread(mean=prediction.tpot_s, p50=at(0.5), p90=at(0.9), p95=at(0.95), p99=at(0.99))


def tpot_quantile_s(prediction: ServingPrediction, *, quantile: float, steps: Number) -> Number:
    """One of the percentiles of `tpot_spread`."""
    count = np.maximum(steps, 1.0)
    mean = prediction.tpot_s
    share = np.maximum(prediction.prefill_share, 0.0)
    scale = mean / np.maximum(prediction.plain_step_s + share * prediction.prefill_delta_s, 1e-12)
    deviation = prediction.prefill_delta_s * np.sqrt(share * count) / count * scale
    found: Number = mean + NORMAL_QUANTILES[quantile] * deviation
    return found


def gap_s(prediction: ServingPrediction, *, quantile: float) -> Number:
    """The gap between two tokens (inter-token latency) that a share `quantile` of the gaps does not exceed.

    A share `prefill_share` of the steps carries others' prompts and takes `prefill_delta_s` longer: the quantile is
    a plain step, or such a step where more than `1 - quantile` of the steps are.
    """
    longer = np.asarray(prediction.prefill_share) > 1.0 - quantile
    found: Number = prediction.plain_step_s + np.where(longer, prediction.prefill_delta_s, 0.0)
    return found
