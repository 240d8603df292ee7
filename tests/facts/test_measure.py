"""Printed values become base values: worked numbers, and what holds for every unit."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.facts import UNITS, Fact, Value, base_value
from chipwise.facts.measure import to_base


@pytest.mark.parametrize(
    ("value", "unit", "base"),
    [
        (144384, "MiB", 151_397_597_184),
        (141, "GB", 141_000_000_000),
        (96, "GiB", 103_079_215_104),
        (3200, "Gbps", 400e9),
        (820, "GiB/s", 820 * 2.0**30),
        (989, "TFLOPS", 989e12),
        (67, "percent", 0.67),
        (2, "ms", 0.002),
    ],
)
def test_a_printed_value_in_base_units(value: float, unit: str, base: float) -> None:
    assert to_base(value, unit) == pytest.approx(base, rel=1e-12)


def test_decimal_and_binary_units_differ_by_what_they_should() -> None:
    assert UNITS["GiB"].factor / UNITS["GB"].factor == 1.073741824
    assert UNITS["GiB/s"].factor == UNITS["GiB"].factor
    assert UNITS["GB/s"].factor == 8 * UNITS["Gbps"].factor


def test_bytes_and_counts_are_whole_numbers() -> None:
    assert to_base(79.19, "GiB") == 85_029_615_043
    assert isinstance(to_base(79.19, "GiB"), int)
    assert isinstance(to_base(8, "count"), int)
    assert isinstance(to_base(8, "GB/s"), float)


@given(st.sampled_from(sorted(UNITS)), st.floats(0, 1e6), st.floats(0, 1e6))
def test_more_printed_is_never_less_in_base_units(unit: str, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert float(to_base(low, unit)) <= float(to_base(high, unit))


@given(st.sampled_from(sorted(UNITS)), st.floats(1, 1e9))
def test_the_factor_is_all_there_is(unit: str, value: float) -> None:
    base = float(to_base(value, unit))
    rounding = 0.5 if UNITS[unit].whole else 0.0
    assert math.isclose(base, value * UNITS[unit].factor, rel_tol=1e-12, abs_tol=rounding)


@pytest.mark.parametrize("value", ["hopper", True, False, "9.0"])
def test_text_and_flags_pass_unchanged(value: Value) -> None:
    assert to_base(value, None) is value


def test_the_base_value_of_a_fact() -> None:
    fact = Fact(
        subject="x",
        key="memory",
        value=2,
        unit="GiB",
        kind="api",
        source="s",
        where="w",
        read_on="2026-11-30",
        why=None,
        conflicts=(),
    )
    assert base_value(fact) == 2**31
