"""What towers are profiled with: items that fit a step, one a sequence in encoder-decoder models."""

from __future__ import annotations

import csv
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.facts import read_sources
from chipwise.memory import memory_profile
from chipwise.memory.encoder import COLUMNS, encoder_facts, profiled_items, profiled_rows
from chipwise.memory.profile import DATA

NEW, OLD = memory_profile("vllm", "0.19.0"), memory_profile("vllm", "0.7.3")


def test_every_tower_says_where_it_comes_from() -> None:
    with (DATA / "encoders.csv").open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    sources = read_sources(DATA / "sources.csv")
    assert tuple(rows[0]) == COLUMNS
    assert all(row["source"] in sources and row["where"] and row["read_on"] for row in rows)
    assert len({row["model_type"] for row in rows}) == len(rows)
    assert {row["kind"] for row in rows} <= {"vendor", "derived", "assumed"}


@pytest.mark.parametrize(
    ("family", "chunk", "sequences", "items"),
    [
        ("gemma3", 8192, 1024, 32),  # 256 tokens each
        ("gemma3", 8192, 8, 8),
        ("qwen2_5_vl", 8192, 2, 1),  # one image is larger than the step
        ("qwen2_5_vl", 65536, 256, 4),
        ("mllama", 8192, 256, 256),  # one for every sequence
        ("a family of its own", 8192, 16, 8192),
    ],
)
def test_as_many_items_as_a_step_holds(family: str, chunk: int, sequences: int, items: int) -> None:
    found = profiled_items(encoder_facts(family), NEW, chunk_tokens=chunk, max_num_seqs=sequences)
    assert found == items


def test_the_first_engine_gives_a_step_with_images_5120_tokens_at_least() -> None:
    facts = encoder_facts("gemma3")
    assert profiled_items(facts, OLD, chunk_tokens=2048, max_num_seqs=256) == 20
    assert profiled_items(facts, NEW, chunk_tokens=2048, max_num_seqs=256) == 8


def test_the_first_engine_samples_no_more_sequences_than_items() -> None:
    facts = encoder_facts("gemma3")
    assert profiled_rows(facts, OLD, items=20, max_num_seqs=256, seeing=True) == 20
    assert profiled_rows(facts, OLD, items=20, max_num_seqs=16, seeing=True) == 16
    assert profiled_rows(facts, OLD, items=20, max_num_seqs=256, seeing=False) == 256
    assert profiled_rows(facts, NEW, items=20, max_num_seqs=256, seeing=True) == 256
    assert profiled_rows(encoder_facts("mllama"), OLD, items=1, max_num_seqs=256, seeing=True) == 256
    assert profiled_rows(encoder_facts("unheard of"), OLD, items=1, max_num_seqs=256, seeing=True) == 256
    two = replace(facts, tokens_per_item=2.0)  # an item of one token limits nothing, of two it does
    assert profiled_rows(two, OLD, items=20, max_num_seqs=256, seeing=True) == 20
    one = replace(facts, tokens_per_item=1.0)
    assert profiled_rows(one, OLD, items=20, max_num_seqs=256, seeing=True) == 256


@given(chunk=st.integers(1, 10**6), sequences=st.integers(1, 4096), size=st.integers(2, 20000))
def test_items_are_at_least_one_and_never_more_than_sequences(chunk: int, sequences: int, size: int) -> None:
    facts = replace(encoder_facts("gemma3"), tokens_per_item=float(size))
    items = profiled_items(facts, NEW, chunk_tokens=chunk, max_num_seqs=sequences)
    assert 1 <= items <= sequences
    assert items == 1 or items * size <= chunk
