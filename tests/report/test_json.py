"""Answers become JSON that any reader takes."""

from __future__ import annotations

import dataclasses
import json
import math
from datetime import date
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.decide.advice import Advice
from chipwise.report.json import as_json
from chipwise.units import Percentiles, Range


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    value: int
    from_: str
    schema_version: int = 1


def test_a_range_and_percentiles_are_objects_by_field_name() -> None:
    assert as_json(Range(low=1.0, mid=2.0, high=3.0)) == {"low": 1.0, "mid": 2.0, "high": 3.0}
    spread = Percentiles(mean=1.0, p50=1.0, p90=2.0, p95=3.0, p99=None)
    assert as_json(spread) == {"mean": 1.0, "p50": 1.0, "p90": 2.0, "p95": 3.0, "p99": None}


def test_from_loses_its_underscore_and_schema_version_comes_first() -> None:
    assert list(as_json(Origin(value=3, from_="user")).items()) == [
        ("schema_version", 1),
        ("value", 3),
        ("from", "user"),
    ]


def test_numpy_leaves_no_trace() -> None:
    answer = as_json(
        {"a": np.float64(1.5), "b": np.int64(2), "c": np.bool_(True), "d": np.arange(2), "e": np.float32(0.5)}
    )
    assert answer == {"a": 1.5, "b": 2, "c": True, "d": [0, 1], "e": 0.5}
    assert [type(answer[key]) for key in "abc"] == [float, int, bool]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan"), np.array([1.0, math.inf])])
def test_a_number_that_is_not_finite_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="not a finite number"):
        as_json({"deep": [value]})


def test_what_json_cannot_hold_is_refused() -> None:
    with pytest.raises(TypeError, match="object has no place"):
        as_json([object()])


def test_sets_are_sorted_and_dates_are_iso() -> None:
    assert as_json({"native": frozenset({"fp8", "bf16"}), "day": date(2026, 11, 30)}) == {
        "native": ["bf16", "fp8"],
        "day": "2026-11-30",
    }


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text().filter(lambda key: not key.endswith("_")), inner),
)


@given(plain)
def test_plain_data_passes_unchanged_through_json(value: Any) -> None:
    assert json.loads(json.dumps(as_json(value), allow_nan=False)) == value


def test_a_whole_plan_is_json(advice: Advice) -> None:
    answer = as_json(advice)
    assert next(iter(answer)) == "schema_version"
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer
    assert set(answer) == {field.name for field in dataclasses.fields(Advice)}
