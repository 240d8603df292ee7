"""The guide's grades."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import UnknownNameError
from chipwise.guide import bands, grade

SCALES = [
    ("ttft", "p50", [(0.1, "excellent"), (0.2, "good"), (0.6, "acceptable"), (2.0, "risky")]),
    ("ttft", "p99", [(0.49, "excellent"), (0.5, "good"), (1.5, "acceptable"), (5.0, "risky")]),
    ("tpot", "mean", [(0.029, "excellent"), (0.03, "good"), (0.06, "acceptable"), (0.1, "risky")]),
    ("throughput_per_gpu", "mean", [(3500, "high"), (1000, "typical"), (999, "low")]),
    ("mfu", "mean", [(0.6, "best-in-class"), (0.45, "excellent"), (0.3, "average"), (0.1, "inefficient")]),
]


@pytest.mark.parametrize(("metric", "statistic", "expected"), SCALES)
def test_every_band_is_graded(metric: str, statistic: str, expected: list[tuple[float, str]]) -> None:
    assert [(value, grade(metric, statistic, value)) for value, _ in expected] == expected


def test_examples_of_the_guide_are_not_best_in_class() -> None:
    assert [grade("mfu", "mean", value) for value in (0.462, 0.38, 0.43)] == ["excellent", "average", "excellent"]


def test_communication_efficiency_is_graded_by_kind() -> None:
    targets = {"tp": 0.9, "dp": 0.85, "ep": 0.8, "pp": 0.85}
    for kind, target in targets.items():
        assert grade("communication_efficiency", kind, target) == "on target"
        assert grade("communication_efficiency", kind, target - 0.01) == "below target"


@given(st.floats(min_value=0, allow_nan=False, allow_infinity=False))
def test_any_value_has_one_grade(value: float) -> None:
    assert all(grade(metric, statistic, value) is not None for metric, statistic, _ in SCALES)


@given(st.floats(min_value=0, max_value=10), st.floats(min_value=0, max_value=10))
def test_a_longer_wait_is_never_graded_better(one: float, other: float) -> None:
    order = [band.grade for band in bands("tpot")]
    low, high = sorted((one, other))
    assert order.index(grade("tpot", "mean", low) or "") <= order.index(grade("tpot", "mean", high) or "")


def test_unknown_is_not_graded_and_an_unknown_scale_is_refused() -> None:
    assert grade("mfu", "mean", None) is None
    with pytest.raises(UnknownNameError, match="tpot p99"):
        grade("tpot", "p99", 0.1)
