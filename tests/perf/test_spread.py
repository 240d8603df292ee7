"""How latencies spread: gaps between tokens, the queue for prefill, the burst that a run starts with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.perf.load import ServingPrediction
from chipwise.perf.spread import burst_wait_s, gap_s, ttft_spread

NOTHING = ServingPrediction(**dict.fromkeys(ServingPrediction.__slots__, 0.0))


@pytest.mark.parametrize(
    ("share", "quantile", "gap"), [(0.2, 0.5, 0.01), (0.2, 0.9, 0.05), (0.005, 0.99, 0.01), (0.6, 0.5, 0.05)]
)
def test_the_share_of_prompt_steps_decides_which_gap_a_quantile_is(share: float, quantile: float, gap: float) -> None:
    prediction = replace(NOTHING, plain_step_s=0.01, prefill_delta_s=0.04, prefill_share=share)
    assert float(gap_s(prediction, quantile=quantile)) == pytest.approx(gap)


def test_gaps_of_many_loads_come_at_once() -> None:
    prediction = replace(NOTHING, plain_step_s=0.01, prefill_delta_s=0.04, prefill_share=np.array([0.2, 0.005]))
    np.testing.assert_allclose(gap_s(prediction, quantile=0.9), [0.05, 0.01])


def test_nine_in_ten_do_not_see_a_burst_of_one_in_ten() -> None:
    prediction = replace(NOTHING, ttft_s=0.3, wait_s=0.1, burst_s=0.1, burst_share=0.1)
    spread = ttft_spread(prediction)
    assert float(spread.p50) == pytest.approx(0.2)
    assert float(spread.p90) == pytest.approx(0.2)
    assert float(spread.p99) == pytest.approx(0.2 + 0.9 * 2.0)


def test_the_mean_of_a_burst_is_what_it_adds_to_the_mean() -> None:
    shares = np.linspace(0.0005, 0.9995, 1000)
    waits = [float(burst_wait_s(mean_wait_s=0.05, share=0.25, quantile=one)) for one in shares]
    assert np.mean(waits) == pytest.approx(0.05, rel=0.01)


def test_a_wait_for_a_seat_is_everyone_s() -> None:
    prediction = replace(NOTHING, ttft_s=5.0, wait_s=4.0)
    assert float(ttft_spread(prediction).p50) == pytest.approx(5.0)
