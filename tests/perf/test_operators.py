"""Worked numbers and properties of the operations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.perf import operators as op

positive = st.floats(min_value=1.0, max_value=1e6)


def test_roofline_takes_the_longer_side() -> None:
    roof = op.roofline(flops=4e12, flops_per_s=1e15, size_bytes=3e9, bytes_per_s=3e12)
    assert roof.compute_s == pytest.approx(0.004)
    assert roof.bandwidth_s == pytest.approx(0.001)
    assert roof.seconds == pytest.approx(0.004)


def test_causal_prefill_counts_half_of_the_square() -> None:
    """1000 tokens, one head of 128 + 128: 2 * 256 * 1000 * 500."""
    flops = op.prefill_attention_flops(query_heads=1.0, head_dims=256.0, tokens=1000.0, past=0.0, window=None)
    assert flops == pytest.approx(2.56e8)


def test_a_window_bounds_what_a_query_looks_back_at() -> None:
    full = op.prefill_attention_flops(query_heads=8.0, head_dims=256.0, tokens=100.0, past=9000.0, window=None)
    near = op.prefill_attention_flops(query_heads=8.0, head_dims=256.0, tokens=100.0, past=9000.0, window=128.0)
    assert float(near) == pytest.approx(float(full) * 128.0 / 9050.0)


@given(tokens=positive, more=positive)
def test_distinct_experts_grow_and_never_exceed_the_local_ones(tokens: float, more: float) -> None:
    few = float(op.distinct_experts(tokens=tokens, routed=64, per_token=4, local=16.0))
    many = float(op.distinct_experts(tokens=tokens + more, routed=64, per_token=4, local=16.0))
    assert 1.0 <= few <= many <= 16.0


@given(tokens=positive, variance=st.floats(1e-3, 4.0))
def test_uneven_choices_touch_fewer_experts(tokens: float, variance: float) -> None:
    even = float(op.distinct_experts(tokens=tokens, routed=64, per_token=4, local=64.0))
    uneven = float(op.distinct_experts(tokens=tokens, routed=64, per_token=4, local=64.0, variance=variance))
    assert 4.0 <= uneven <= even * (1 + 1e-9)


@pytest.mark.parametrize("variance", [0.0, 1.0])
def test_one_token_touches_its_own_experts_only(variance: float) -> None:
    touched = op.distinct_experts(tokens=1.0, routed=64, per_token=4, local=64.0, variance=variance)
    assert float(touched) == pytest.approx(4.0)
    assert float(op.distinct_experts(tokens=0.0, routed=64, per_token=4, local=64.0, variance=variance)) == 0.0


def test_few_tokens_of_a_compiled_graph_read_their_experts_each() -> None:
    computed, touched = op.compiled_experts(tokens=2.0, routed=64, per_token=4, local=64.0, tile=512.0)
    assert (float(computed), float(touched)) == (8.0, 8.0)
    computed, touched = op.compiled_experts(tokens=16.0, routed=64, per_token=4, local=64.0, tile=512.0)
    assert (float(computed), float(touched)) == (16.0 * 64, 64.0)


def test_a_state_is_read_and_written_once_a_step() -> None:
    assert float(op.state_bytes(state_bytes_per_sequence=1e6, sequences=3.0, tokens=0.0)) == pytest.approx(6e6)
    assert float(op.state_bytes(state_bytes_per_sequence=1e6, sequences=0.0, tokens=128.0)) == pytest.approx(4e6)


def test_formulas_broadcast() -> None:
    size = op.gemm_bytes(tokens=np.array([1.0, 2.0]), params=10.0, weight_bytes=2.0, activations=3.0)
    np.testing.assert_allclose(size, [26.0, 32.0])
