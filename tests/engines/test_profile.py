from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.engines import engine_names, kv_formats, load_engine, parse_version
from chipwise.engines.profile import sources
from chipwise.engines.versions import at_least
from chipwise.errors import UnknownNameError
from chipwise.facts import KIND_RANK
from chipwise.precision import kv_format_names


def test_the_newest_version_is_the_default() -> None:
    assert load_engine("vllm").version == "0.33.0"
    assert load_engine("vllm").notes == ()


@pytest.mark.parametrize(
    ("name", "version", "used", "noted"),
    [
        ("vllm", "0.11.0", "0.11.0", False),
        ("vllm", "0.8.5.post1", "0.8.5", False),
        ("vllm", "0.11.0 (image of the how-to)", "0.11.0", False),
        ("vllm", "0.11.5", "0.11.2", True),
        ("vllm", "9.0", "0.33.0", True),
        ("vllm", "0.1.0", "0.2.0", True),
        ("vllm", "main of spring", "0.33.0", True),
        ("sglang", "0.4.3.post4", "0.4.3", False),
        ("sglang", "0.5.9", "0.5.5", True),
        ("tensorrt-llm", "1.0.0", "1.0.0", False),
    ],
)
def test_an_unread_version_takes_the_nearest_lower_one_and_says_so(
    name: str, version: str, used: str, *, noted: bool
) -> None:
    profile = load_engine(name, version)
    assert profile.version == used
    assert bool(profile.notes) is noted
    assert profile.asked_version == version


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("vLLM", "vllm"), ("TRT-LLM", "tensorrt-llm"), ("trtllm", "tensorrt-llm"), ("neuron", "vllm-neuron"),
        ("nxdi", "nxd-inference"), ("NeMo", "megatron"), ("Megatron-LM", "megatron"), ("accelerate", "fsdp"),
    ],
)  # fmt: skip
def test_aliases(alias: str, name: str) -> None:
    profile = load_engine(alias)
    assert profile.name == name
    assert profile.notes == ()


@pytest.mark.parametrize(
    ("long_name", "name"),
    [
        ("vllm (a fork)", "vllm"), ("tensorrt-llm (triton backend)", "tensorrt-llm"),
        ("vllm + optimum-neuron", "optimum-neuron"), ("nxd-inference (vllm server)", "nxd-inference"),
    ],
)  # fmt: skip
def test_a_longer_name_is_read_by_the_engine_inside_and_says_so(long_name: str, name: str) -> None:
    profile = load_engine(long_name)
    assert profile.name == name
    assert any(long_name in note for note in profile.notes)


@pytest.mark.parametrize("name", ["vlm", "vllmm", "", "tens-rt"])
def test_unknown_engines_are_refused(name: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        load_engine(name)
    assert caught.value.fix


def test_the_refusal_proposes_the_near_name() -> None:
    with pytest.raises(UnknownNameError) as caught:
        load_engine("vlm")
    assert "vllm" in caught.value.fix


def test_engines_serve_or_train() -> None:
    assert {"vllm", "sglang", "tensorrt-llm", "tgi", "vllm-neuron", "nxd-inference"} <= set(engine_names("serve"))
    assert {"megatron", "fsdp", "deepspeed", "llm-foundry"} <= set(engine_names("train"))
    assert set(engine_names("serve")) | set(engine_names("train")) == set(engine_names())


def test_every_fact_says_where_it_comes_from() -> None:
    for name in engine_names():
        for fact in load_engine(name).facts:
            assert fact.source in sources(), (name, fact.key)
            assert fact.kind in KIND_RANK
            assert fact.where
            assert fact.kind != "assumed" or fact.why


def test_facts_of_later_versions_do_not_leak_into_earlier_ones() -> None:
    for version in ("0.6.4", "0.8.4", "0.19.0"):
        floor = parse_version(version)
        assert floor is not None
        assert all(at_least(floor, fact.since) for fact in load_engine("vllm", version).facts)


def test_cache_formats_of_engines_are_known_formats() -> None:
    for name in engine_names("serve"):
        assert set(kv_formats(load_engine(name))) <= set(kv_format_names())
    assert kv_formats(load_engine("vllm", "0.11.0")) == ("bf16", "fp16", "fp8")
    assert "nvfp4" in kv_formats(load_engine("tensorrt-llm"))
    assert kv_formats(load_engine("fsdp")) == ()


@given(st.lists(st.integers(0, 40), min_size=1, max_size=4), st.lists(st.integers(0, 40), min_size=1, max_size=4))
def test_versions_compare_as_numbers(left: list[int], right: list[int]) -> None:
    width = max(len(left), len(right))
    padded = [part + [0] * (width - len(part)) for part in (left, right)]
    assert at_least(tuple(left), tuple(right)) is (padded[0] >= padded[1])


def test_text_without_a_number_is_no_version() -> None:
    assert parse_version("commit bfde49e28") is None
    assert parse_version("v1.4.0rc4") == (1, 4, 0)
