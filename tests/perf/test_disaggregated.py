"""Two pools: what each contributes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from chipwise.parallelism import Number
from chipwise.perf.disaggregated import Pools, predict_disaggregated
from chipwise.perf.load import ServingInput, ServingLoad
from chipwise.perf.serving import predict_serving

Ask = Callable[..., ServingInput]


def load(rate: Number) -> ServingLoad:
    return ServingLoad(kind="rate", isl=4096.0, osl=256.0, rate_per_s=rate)


def test_others_prompts_no_longer_interrupt_answers(ask: Ask) -> None:
    together = predict_serving(ask(load(2.0), replicas=2.0))
    apart = predict_disaggregated(Pools(prefill=ask(load(2.0)), decode=ask(load(2.0)), transfer_bytes_per_s=50e9))
    assert float(apart.prefill_delta_s) < 0.1 * float(together.prefill_delta_s)


def test_the_cache_takes_its_time_to_cross(ask: Ask) -> None:
    pools = Pools(prefill=ask(load(1.0)), decode=ask(load(1.0)), transfer_bytes_per_s=1e12)
    slow = predict_disaggregated(replace(pools, transfer_bytes_per_s=1e9))
    fast = predict_disaggregated(pools)
    per_device = 80 * 2 * 128 * 2.0 * 4096
    difference = per_device / 1e9 - per_device / 1e12
    assert float(slow.ttft_s) - float(fast.ttft_s) == pytest.approx(difference)


def test_the_weaker_pool_decides_when_it_is_full(ask: Ask) -> None:
    alone = Pools(prefill=ask(load(1.0)), decode=ask(load(1.0)), transfer_bytes_per_s=50e9)
    one = float(predict_disaggregated(alone).saturation_rate_per_s)
    two = Pools(prefill=ask(load(1.0), replicas=2.0), decode=ask(load(1.0)), transfer_bytes_per_s=50e9)
    assert float(predict_disaggregated(two).saturation_rate_per_s) == pytest.approx(2 * one)
    rates = np.array([0.5, 2.0]) * one
    full = predict_disaggregated(Pools(prefill=ask(load(rates)), decode=ask(load(rates)), transfer_bytes_per_s=50e9))
    np.testing.assert_array_equal(full.saturated, [0.0, 1.0])
    np.testing.assert_array_equal(np.isinf(full.ttft_s), [False, True])
    assert np.ravel(full.requests_per_s)[1] == pytest.approx(one)
