"""Gaps between tokens: a plain step, or one that carries others' prompts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.perf.load import ServingPrediction
from chipwise.perf.spread import gap_s

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
