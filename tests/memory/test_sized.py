"""A layout is sized once for all its loads, and its pool alone is that of the whole answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from chipwise.memory import ServingMemoryInput, answer_of, size_pool, size_serving, sized
from chipwise.memory.answer import fits
from chipwise.model import ModelSpec

GIB = 2.0**30
Ask = Callable[..., ServingMemoryInput]


@pytest.mark.parametrize("whole_prompts", [False, True])
@pytest.mark.parametrize(("context", "requests"), [(1, 1), (1000, 7), (40_000, 300)])
def test_a_sized_layout_answers_every_load(
    llama8b: ModelSpec, ask: Ask, context: int, requests: int, *, whole_prompts: bool
) -> None:
    """Sized once and asked for a load, it says what it says when it is asked for that load at first."""
    asked = ask(llama8b, whole_prompts=whole_prompts, chunk_tokens=2048, engine_version="0.7.3", max_num_seqs=8)
    found = answer_of(sized(asked).under(context_tokens=context, concurrency=requests))
    assert found == size_serving(replace(asked, context_tokens=context, concurrency=requests))
    assert found.budget.cache_bytes == requests * -(-context // 16) * 16 * 131072


@pytest.mark.parametrize("capacity_gib", [12.0, 80.0])
def test_the_pool_alone_is_that_of_the_whole_answer(llama8b: ModelSpec, ask: Ask, capacity_gib: float) -> None:
    question = ask(llama8b, capacity_bytes=capacity_gib * GIB)
    pool, whole = size_pool(question), size_serving(question)
    assert pool.fits == whole.fits == (capacity_gib > 20.0)
    assert pool.budget == whole.budget
    assert (pool.shortfall_bytes, pool.kv_pool_bytes) == (whole.shortfall_bytes, whole.kv_pool_bytes)
    assert pool.max_concurrency_at_context == whole.max_concurrency_at_context


def test_what_lacks_less_than_a_byte_lacks() -> None:
    assert fits(0.0) is True
    assert fits(0.5) is False
    assert fits(np.array([-1.0, 0.0, 0.5])).tolist() == [True, True, False]


def test_a_model_that_states_no_longest_context_is_asked_up_to_sixteen_million_tokens(
    llama8b: ModelSpec, ask: Ask
) -> None:
    endless = replace(llama8b, max_context_tokens=None)
    answer = size_serving(ask(endless, capacity_bytes=1e15, concurrency=1))
    assert answer.longest_context == 16_777_216
