"""The fewest chips, and what would make a model fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from chipwise.catalog import load_catalog
from chipwise.memory import (
    Change,
    FitOptions,
    ServingMemoryInput,
    answer_of,
    changes_of,
    min_chips,
    min_split,
    size_serving,
    sized,
    to_make_it_fit,
    visible_bytes,
    ways_of,
)
from chipwise.model import ModelSpec
from chipwise.parallelism import Split, shard
from chipwise.precision import with_precision

GIB = 2.0**30
Ask = Callable[..., ServingMemoryInput]


def helped(model: ModelSpec, asked: ServingMemoryInput, may: FitOptions | None = None) -> list[Change]:
    """What would make the question fit, by changes that were sized under another load."""
    one = sized(asked)
    return to_make_it_fit(one, answer_of(one), changes_of(model, replace(asked, context_tokens=1, concurrency=1), may))


def test_llama_70b_needs_two_h100_for_its_weights(llama70b: ModelSpec, ask: Ask) -> None:
    assert min_split(ways_of(llama70b, ask(llama70b))) == Split(tp=2, pp=1)
    assert min_chips(ways_of(llama70b, ask(llama70b))) == 2


def test_one_device_less_than_the_fewest_does_not_hold_it(llama70b: ModelSpec, ask: Ask) -> None:
    asked = ask(llama70b, context_tokens=32768, concurrency=16, utilization=0.9)
    split = min_split(ways_of(llama70b, asked))
    assert split is not None
    assert size_serving(replace(asked, shards=shard(llama70b, split))).fits
    for tp in (1, 2, 4, 8):
        for pp in range(1, 9):
            if tp * pp < split.devices:
                assert not size_serving(replace(asked, shards=shard(llama70b, Split(tp=tp, pp=pp)))).fits


def test_a_longer_context_takes_more_chips_of_the_same_ways(llama70b: ModelSpec, ask: Ask) -> None:
    """Two H100 leave 12 GiB for the cache of 70B, 0.31 GiB for 1,024 tokens: a request of 65,536 needs 20."""
    ways = ways_of(llama70b, ask(llama70b))
    assert ways is not None
    assert min_chips(ways.under(context_tokens=8192, concurrency=1)) == 2
    assert min_chips(ways.under(context_tokens=65536, concurrency=1)) == 3
    assert min_chips(ways_of(llama70b, ask(llama70b, context_tokens=65536))) == 3


def test_nothing_holds_what_is_too_large(llama70b: ModelSpec, ask: Ask) -> None:
    assert min_split(ways_of(llama70b, ask(llama70b, capacity_bytes=2 * GIB))) is None
    assert min_chips(ways_of(llama70b, ask(llama70b, capacity_bytes=2 * GIB))) is None


def test_stages_go_as_far_as_nodes_do(llama70b: ModelSpec, ask: Ask) -> None:
    """Over one device a node: 8 stages of 10 layers are 16.3 GiB each and an end of 2; 7 of up to 12 are more."""
    asked = ask(llama70b, capacity_bytes=20.5 * GIB, chunk_tokens=512, max_num_seqs=16)
    assert min_split(ways_of(llama70b, asked, FitOptions(most_tp=1))) == Split(tp=1, pp=8)
    assert min_split(ways_of(llama70b, asked, FitOptions(most_tp=1, most_stages=7))) is None
    assert min_split(ways_of(llama70b, replace(asked, capacity_bytes=18 * GIB), FitOptions(most_tp=1))) is None


def test_devices_of_a_chip_share_it(llama70b: ModelSpec, ask: Ask) -> None:
    chip = ask(
        llama70b, engine="neuron", engine_version=None, capacity_bytes=96 * GIB, devices_per_chip=4,
        max_num_seqs=16, utilization=0.92,
    )  # fmt: skip
    split = min_split(ways_of(llama70b, chip))
    assert split is not None
    assert min_chips(ways_of(llama70b, chip)) == -(-split.devices // 4)


def test_what_fits_needs_no_change(llama8b: ModelSpec, ask: Ask) -> None:
    assert helped(llama8b, ask(llama8b)) == []


def test_changes_come_in_the_order_of_what_they_cost(llama70b: ModelSpec, ask: Ask) -> None:
    asked = ask(llama70b, Split(tp=2), context_tokens=32768, concurrency=4)
    before = size_serving(asked)
    assert not before.fits
    changes = helped(llama70b, asked, FitOptions(bigger_chips_bytes={"h200": 139.81 * GIB, "smaller": 40 * GIB}))
    assert [change.change for change in changes] == [
        "hold the KV cache in fp8",
        "hold the weights in fp8",
        "tp 2 to 4",
        f"context of {int(before.longest_context)} tokens",
        "1 requests in flight",
        "h200",
    ]
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
    changes = helped(llama70b, asked, FitOptions(weight_formats=()))
    assert all("KV" not in change.change and "weights" not in change.change for change in changes)


def test_an_engine_may_be_asked_to_fill_more_and_to_capture_nothing(llama70b: ModelSpec, ask: Ask) -> None:
    asked = ask(llama70b, Split(tp=2), utilization=0.85, engine_version="0.21.0", context_tokens=32768)
    found = {change.change: change for change in helped(llama70b, asked)}
    fill, eager = found["fill 0.95 of the memory"], found["no graphs (eager)"]
    assert fill.frees_bytes == pytest.approx(0.1 * 79.19 * GIB)
    assert eager.frees_bytes == pytest.approx(float(size_serving(asked).graphs_total_bytes))
    still = helped(llama70b, replace(asked, eager=True), FitOptions(most_utilization=None))
    assert not {"fill 0.95 of the memory", "no graphs (eager)"} & {change.change for change in still}


def test_of_bigger_chips_the_two_smallest_that_hold_it_are_proposed(llama70b: ModelSpec, ask: Ask) -> None:
    asked = ask(llama70b, Split(tp=2), context_tokens=32768, concurrency=4)
    sizes = {"too small": 82 * GIB, "huge": 288 * GIB, "large": 180 * GIB, "enough": 141 * GIB}
    names = [change.change for change in helped(llama70b, asked, FitOptions(bigger_chips_bytes=sizes))]
    assert names[-2:] == ["enough", "large"]
    assert "huge" not in names
    assert "too small" not in names


def test_a_change_that_frees_next_to_nothing_is_not_named(llama70b: ModelSpec, ask: Ask) -> None:
    narrow = with_precision(llama70b, "fp8-channel")
    asked = ask(narrow, Split(tp=1), context_tokens=131072, concurrency=4, eager=True)
    names = [change.change for change in helped(narrow, asked)]
    assert "hold the weights in fp8" not in names
    assert "tp 1 to 2" in names


def test_a_chip_of_the_catalog_says_its_total_itself() -> None:
    assert visible_bytes("h100-sxm", 80 * GIB) == 80 * GIB
    assert load_catalog().chips["h100-sxm"].memory_bytes == round(79.19 * GIB)
    unknown = visible_bytes("a chip of the future", 100 * GIB)
    assert unknown == pytest.approx(98.9 * GIB)


def test_a_change_frees_what_was_short_and_what_is_then_left(llama70b: ModelSpec, ask: Ask) -> None:
    asked = ask(llama70b, Split(tp=2), context_tokens=32768, concurrency=4)
    before, after = size_serving(asked), size_serving(replace(asked, capacity_bytes=141 * GIB))
    (bigger,) = helped(llama70b, asked, FitOptions(bigger_chips_bytes={"h200": 141 * GIB}))[-1:]
    assert bigger.frees_bytes == pytest.approx(float(before.shortfall_bytes + after.budget.free_bytes))


def test_a_draft_is_laid_over_the_other_split_too(llama70b: ModelSpec, llama8b: ModelSpec, ask: Ask) -> None:
    """70B and a draft of 8B are 147 GiB of weights: two H100 at 0.95 hold 150 less their work, three hold both."""
    split = Split(tp=1)
    asked = ask(llama70b, split, draft=shard(llama8b, split), draft_tokens=3)
    may = FitOptions(draft=llama8b)
    found = min_split(ways_of(llama70b, asked, may))
    assert found == Split(tp=1, pp=3)
    over = replace(asked, shards=shard(llama70b, found), draft=shard(llama8b, found))
    assert size_serving(over).fits
    wider = next(one for one in helped(llama70b, asked, may) if one.change == "tp 1 to 2")
    before = size_serving(asked)
    after = size_serving(replace(asked, shards=shard(llama70b, Split(tp=2)), draft=shard(llama8b, Split(tp=2))))
    assert wider.frees_bytes == pytest.approx(float(before.shortfall_bytes) - float(after.shortfall_bytes))
    assert after.budget.draft_bytes == before.budget.draft_bytes / 2


def test_the_fewest_chips_are_dealt_layers_by_the_engine_s_rule(llama70b: ModelSpec, ask: Ask) -> None:
    """80 layers over 3 stages are 27, 27 and 26 or 26, 26 and 28; 28 and the head need a fourth stage."""
    asked = ask(llama70b, capacity_bytes=49.8 * GIB, chunk_tokens=512, max_num_seqs=16)
    last = replace(asked, shards=shard(llama70b, Split(spare_layers="last")))
    may = FitOptions(most_tp=1)
    assert min_split(ways_of(llama70b, asked, may)) == Split(tp=1, pp=3)
    assert min_split(ways_of(llama70b, last, may)) == Split(tp=1, pp=4)


def test_what_is_still_short_counts_against_a_change(llama70b: ModelSpec, ask: Ask) -> None:
    """Half the cache of a shortfall that stays one: it shrinks by exactly that half."""
    asked = ask(llama70b, Split(tp=2), context_tokens=131072, concurrency=64)
    narrow = next(one for one in helped(llama70b, asked) if one.change == "hold the KV cache in fp8")
    assert not narrow.enough
    assert narrow.frees_bytes == pytest.approx(float(size_serving(asked).budget.cache_bytes) / 2)


def test_stages_are_doubled_up_to_the_nodes_there_may_be(llama70b: ModelSpec, ask: Ask) -> None:
    asked = ask(llama70b, Split(pp=2), context_tokens=131072, concurrency=64)
    for nodes, proposed in ((4, ["pp 2 to 4"]), (3, [])):
        found = helped(llama70b, asked, FitOptions(most_tp=1, most_stages=nodes))
        assert [one.change for one in found if one.costs == "twice the chips"] == proposed
