"""Gathering shards into work loses nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.model import ModelSpec
from chipwise.parallelism import Split, shard
from chipwise.perf.costs import cache_bytes_per_sequence
from chipwise.perf.work import work_of


def test_gathered_parameters_are_those_of_the_shards(dense: ModelSpec) -> None:
    shards = shard(dense, Split(tp=4.0))
    work = work_of(shards)
    gathered = sum(float(gemm.params) for gemm in work.layers[0].gemms)
    assert gathered == pytest.approx(sum(float(gemm.params) for gemm in shards.layers[0].gemms))
    assert [gemm.operation for gemm in work.layers[0].gemms] == ["attention projections", "mlp"]


def test_equal_layers_add_up_however_they_are_listed(dense: ModelSpec) -> None:
    layer = dense.layers[0]
    apart = replace(dense, layers=tuple(replace(layer, count=20) for _ in range(4)))
    work = work_of(shard(apart, Split(tp=2.0)))
    assert len(work.layers) == 1
    assert float(np.asarray(work.layers[0].count)) == 80.0


def test_a_dense_layer_launches_eight_kernels(dense: ModelSpec) -> None:
    """Fused qkv, output, fused gate and up, down; two norms, rotary with the cache write, attention."""
    (layer,) = work_of(shard(dense, Split(tp=1.0))).layers
    assert layer.kernels == 8
    assert layer.gemm_kernels == (("bf16", 4),)


def test_a_window_bounds_the_cache(dense: ModelSpec) -> None:
    layer = dense.layers[0]
    near = replace(layer, attention=replace(layer.attention, kind="sliding", window_tokens=128))
    work = work_of(shard(replace(dense, layers=(near,)), Split(tp=1.0)))
    held = cache_bytes_per_sequence(work.layers, cp=work.cp, context=np.array([64.0, 5000.0]), element_bytes=2.0)
    np.testing.assert_allclose(held, np.array([64.0, 128.0]) * 80 * 2048 * 2)


def test_a_compressed_past_adds_an_entry_in_so_many_tokens(dense: ModelSpec) -> None:
    """Beside a window of 128, 5000 tokens leave 1250 entries, each with an 8-bit index key of 64."""
    layer = dense.layers[0]
    past = replace(
        layer.attention, kind="sliding", window_tokens=128, compressed_every=4, indexer_dim=64, values_cached=False
    )
    work = work_of(shard(replace(dense, layers=(replace(layer, attention=past),)), Split(tp=1.0)))
    held = cache_bytes_per_sequence(work.layers, cp=work.cp, context=5000.0, element_bytes=2.0)
    assert float(np.asarray(held)) == 80 * ((128 + 1250) * 1024 * 2 + 1250 * 64)
