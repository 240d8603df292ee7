"""Memory of training on samples, and of layouts at their edges: worked numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise.memory.training import TrainingMemoryInput, training_memory
from chipwise.memory.training_fitting import min_devices, training_fits
from chipwise.memory.training_job import Adapter, TrainingJob, TrainingLayout, layout_problem
from chipwise.memory.training_recipes import fitted, recipe_of
from chipwise.memory.training_samples import SampleCounts, kept_fraction, sample_bytes
from chipwise.model import load_model

COUNTS = SampleCounts(params=900.0, table_params=50.0, adapter_params_per_rank=7.0, saved_bytes=1e6, matrices=100.0)
FULL = TrainingJob(method="full-ft", seq_len=1, micro_batch=4)
LORA = replace(FULL, method="lora", adapter=Adapter(rank=8))


def test_adapters_grow_with_their_rank_and_alone_are_averaged() -> None:
    assert COUNTS.adapter_params(LORA) == 7 * 8
    assert COUNTS.trained_params(LORA) == 7 * 8
    assert COUNTS.trained_params(FULL) == 900


def test_a_tenth_of_a_hundred_matrices_is_a_segment() -> None:
    """Ten segments: two tenths of what a sample leaves are held where all is recomputed, all of it where nothing is."""
    assert kept_fraction(COUNTS, replace(FULL, recompute="full")) == pytest.approx(0.2)
    assert kept_fraction(COUNTS, replace(FULL, recompute="none")) == 1.0
    assert kept_fraction(replace(COUNTS, matrices=1.0), replace(FULL, recompute="full")) == 1.0


def test_sharded_weights_come_back_two_segments_at_a_time() -> None:
    held, gathered = sample_bytes(COUNTS, FULL, TrainingLayout(dp=4, shard="zero3"))
    assert (held, float(gathered)) == (4e6, 180.0)
    few = replace(COUNTS, matrices=1.0)
    assert float(sample_bytes(few, FULL, TrainingLayout(dp=4, shard="zero3"))[1]) == 900.0  # no more than there are
    for layout in (TrainingLayout(shard="zero3"), TrainingLayout(dp=4, shard="none")):
        assert float(sample_bytes(COUNTS, FULL, layout)[1]) == 0.0


def test_a_model_without_layers_has_one_stage() -> None:
    bare = replace(load_model("llama-3.2-1b"), layers=())
    assert layout_problem(bare, TrainingLayout()) is None
    assert "2 stages are more than the 0 layers" in str(layout_problem(bare, TrainingLayout(pp=2)))


def test_the_fewest_devices_neither_cut_sequences_nor_interleave_stages() -> None:
    """One device holds a step to the byte where it is asked whole: no context parallelism makes room in silence."""
    job = TrainingJob(method="full-ft", seq_len=16384, micro_batch=1, recompute="full", trainer="hf")
    alone = TrainingMemoryInput(model=load_model("llama-3.2-1b"), layout=TrainingLayout(), job=job)
    low, high = 1e9, 1e12
    while high - low > 1e6:
        middle = (low + high) / 2
        low, high = (low, middle) if bool(training_fits(alone, middle)) else (middle, high)
    assert min_devices(alone, capacity_bytes=high, node_devices=8) == 1
    assert min_devices(alone, capacity_bytes=low, node_devices=8) == 2


def test_weights_that_come_back_are_as_wide_as_the_recipe_says() -> None:
    """180 parameters come back, at two bytes or at four: 360 bytes more. A second device brings a group's buffers."""
    job, layout = replace(FULL, trainer="hf"), TrainingLayout(dp=4, shard="zero3")
    given = TrainingMemoryInput(model=load_model("resnet-50"), layout=layout, job=job, sample=COUNTS)
    two, four = (
        training_memory(replace(given, recipe=replace(recipe_of(job), gather_bytes=width))).overhead_bytes
        for width in (2.0, 4.0)
    )
    assert float(four - two) == pytest.approx(2 * 180)


def test_a_single_device_joins_no_group() -> None:
    job, numbers = (
        replace(FULL, trainer="hf"),
        replace(fitted(), process_bytes=10.0, group_bytes=7.0, slack_fraction=0.5),
    )
    given = TrainingMemoryInput(
        model=load_model("resnet-50"), layout=TrainingLayout(), job=job, sample=COUNTS, fitted=numbers
    )
    assert float(training_memory(given).overhead_bytes) == 10.0 + 0.5 * 4e6
    pair = replace(given, layout=TrainingLayout(dp=2, shard="none"))
    assert float(training_memory(pair).overhead_bytes) == 10.0 + 7.0 + 0.5 * 4e6
