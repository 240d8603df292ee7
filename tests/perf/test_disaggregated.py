"""Two pools: what each contributes, and what crosses between them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from chipwise.parallelism import Number, Split
from chipwise.perf.disaggregated import predict_disaggregated
from chipwise.perf.load import ServingInput, ServingLoad
from chipwise.perf.parameters import Parameters
from chipwise.perf.serving import predict_serving

Ask = Callable[..., ServingInput]
CACHE_BYTES = 80 * 2 * 8 * 128 * 2.0 * 4096
"""Of one prompt of 4,096 tokens: 80 layers, keys and values of 8 heads of 128, two bytes each."""


def load(rate: Number) -> ServingLoad:
    return ServingLoad(kind="rate", isl=4096.0, osl=256.0, rate_per_s=rate)


def test_others_prompts_no_longer_interrupt_answers(ask: Ask) -> None:
    together = predict_serving(ask(load(2.0), replicas=2.0))
    apart = predict_disaggregated(prefill=ask(load(2.0)), decode=ask(load(2.0)), across=1.0).prediction
    assert float(apart.prefill_delta_s) < 0.1 * float(together.prefill_delta_s)


@pytest.mark.parametrize(("across", "bytes_per_s"), [(0.0, 8 * 450e9), (1.0, 400e9)])
def test_a_cache_crosses_the_link_or_the_network_in_bytes_over_rate(
    ask: Ask, ideal: Parameters, across: float, bytes_per_s: float
) -> None:
    one = ask(load(1.0), parameters=ideal)
    found = predict_disaggregated(prefill=one, decode=one, across=across)
    assert float(found.crossing_s) == pytest.approx(CACHE_BYTES / bytes_per_s)
    assert float(found.crossing_use) == pytest.approx(float(found.crossing_s))


def test_the_side_with_fewer_devices_takes_longer(ask: Ask, ideal: Parameters) -> None:
    wide, narrow = (ask(load(1.0), parameters=ideal, split=Split(tp=tp)) for tp in (8.0, 2.0))
    found = predict_disaggregated(prefill=narrow, decode=wide, across=0.0)
    assert float(found.crossing_s) == pytest.approx(CACHE_BYTES / 2 / 450e9)


def test_a_first_token_waits_for_the_cache_to_cross(ask: Ask, ideal: Parameters) -> None:
    one = ask(load(1.0), parameters=ideal)
    near, far = (predict_disaggregated(prefill=one, decode=one, across=across) for across in (0.0, 1.0))
    longer = float(far.prediction.ttft_s) - float(near.prediction.ttft_s)
    assert longer == pytest.approx(float(far.crossing_s) - float(near.crossing_s))


def test_the_weaker_pool_decides_when_it_is_full(ask: Ask) -> None:
    one = ask(load(1.0))
    most = float(predict_disaggregated(prefill=one, decode=one, across=1.0).prediction.saturation_rate_per_s)
    two = predict_disaggregated(prefill=ask(load(1.0), replicas=2.0), decode=one, across=1.0)
    assert float(two.prediction.saturation_rate_per_s) == pytest.approx(2 * most)
    rates = ask(load(np.array([0.5, 2.0]) * most))
    full = predict_disaggregated(prefill=rates, decode=rates, across=1.0).prediction
    np.testing.assert_array_equal(full.saturated, [0.0, 1.0])
    np.testing.assert_array_equal(np.isinf(full.ttft_s), [False, True])
    assert np.ravel(full.requests_per_s)[1] == pytest.approx(most)
