"""The fewest chips, and what would make a model fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from chipwise.memory import (
    FitOptions,
    ServingMemoryInput,
    min_chips,
    min_split,
    size_serving,
    to_make_it_fit,
    visible_bytes,
)
from chipwise.model import ModelSpec
from chipwise.parallelism import Split, shard

GIB = 2.0**30
Ask = Callable[..., ServingMemoryInput]


def test_llama_70b_needs_two_h100_for_its_weights(llama70b: ModelSpec, ask: Ask) -> None:
    assert min_split(llama70b, ask(llama70b)) == Split(tp=2, pp=1)
    assert min_chips(llama70b, ask(llama70b)) == 2


def test_one_device_less_than_the_fewest_does_not_hold_it(llama70b: ModelSpec, ask: Ask) -> None:
    asked = ask(llama70b, context_tokens=32768, concurrency=16, utilization=0.9)
    split = min_split(llama70b, asked)
    assert split is not None
    assert size_serving(replace(asked, shards=shard(llama70b, split))).fits
    for tp in (1, 2, 4, 8):
        for pp in range(1, 9):
            if tp * pp < split.devices:
                assert not size_serving(replace(asked, shards=shard(llama70b, Split(tp=tp, pp=pp)))).fits


def test_nothing_holds_what_is_too_large(llama70b: ModelSpec, ask: Ask) -> None:
    assert min_split(llama70b, ask(llama70b, capacity_bytes=2 * GIB)) is None
    assert min_chips(llama70b, ask(llama70b, capacity_bytes=2 * GIB)) is None


def test_devices_of_a_chip_share_it(llama70b: ModelSpec, ask: Ask) -> None:
    chip = ask(
        llama70b, engine="neuron", engine_version=None, capacity_bytes=96 * GIB, devices_per_chip=4,
        max_num_seqs=16, utilization=0.92,
    )  # fmt: skip
    split = min_split(llama70b, chip)
    assert split is not None
    assert min_chips(llama70b, chip) == -(-split.devices // 4)


def test_what_fits_needs_no_change(llama8b: ModelSpec, ask: Ask) -> None:
    assert to_make_it_fit(llama8b, ask(llama8b)) == []


def test_changes_come_in_the_order_of_what_they_cost(llama70b: ModelSpec, ask: Ask) -> None:
    asked = ask(llama70b, Split(tp=2), context_tokens=32768, concurrency=4)
    before = size_serving(asked)
    assert not before.fits
    changes = to_make_it_fit(
        llama70b, asked, FitOptions(bigger_chips_bytes={"h200": 139.81 * GIB, "smaller": 40 * GIB})
    )
    names = [change.change.split()[0] + change.change.split()[-1] for change in changes]
    assert names == ["holdfp8", "holdfp8", "tp4", "contexttokens", "1flight", "h200h200"]
    gain = {change.change: change.frees_bytes for change in changes}
    assert gain["hold the KV cache in fp8"] == pytest.approx(before.budget.cache_bytes / 2)
    assert all(change.frees_bytes > 0 and change.costs for change in changes)
    assert [change.enough for change in changes] == [False, True, True, True, True, True]


def test_a_change_that_is_called_enough_is(llama70b: ModelSpec, ask: Ask) -> None:
    asked = ask(llama70b, Split(tp=2), context_tokens=32768, concurrency=4)
    tokens = int(size_serving(asked).longest_context)
    assert 0 < tokens < 32768
    assert size_serving(replace(asked, context_tokens=tokens)).fits
    assert not size_serving(replace(asked, context_tokens=tokens + 16)).fits


def test_a_cache_in_eight_bits_is_not_offered_twice(llama70b: ModelSpec, ask: Ask) -> None:
    asked = ask(llama70b, Split(tp=2), context_tokens=131072, concurrency=64, kv_format="fp8")
    changes = to_make_it_fit(llama70b, asked, FitOptions(weight_format=None))
    assert all("KV" not in change.change and "weights" not in change.change for change in changes)


def test_a_chip_is_as_large_as_its_log_says() -> None:
    assert visible_bytes("h100-sxm", 80 * GIB) == pytest.approx(79.19 * GIB)
    unknown = visible_bytes("a chip of the future", 100 * GIB)
    assert 0.97 * 100 * GIB < unknown < 100 * GIB
