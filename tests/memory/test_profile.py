"""What is known of engine versions, and that each constant says where it comes from."""

from __future__ import annotations

import pytest

from chipwise.errors import UnknownNameError
from chipwise.facts import facts_of, read_facts, read_sources
from chipwise.facts.provenance import find_defects
from chipwise.memory import memory_profile
from chipwise.memory.profile import DATA


@pytest.mark.parametrize("name", ["profiles.csv", "capacity.csv"])
def test_every_constant_says_where_it_comes_from(name: str) -> None:
    sources = read_sources(DATA / "sources.csv")
    table = read_facts(DATA / name, sources)
    facts = [fact for subject in table.rows for fact in facts_of(table, subject)]
    assert facts
    assert find_defects(facts, sources) == []


def test_a_version_takes_what_was_last_said_before_it() -> None:
    copies = {v: memory_profile("vllm", v).sampler_copies for v in ("0.6.4", "0.16.0", "0.17.0", "0.19.0", None)}
    assert copies == {"0.6.4": 9, "0.16.0": 9, "0.17.0": 3, "0.19.0": 3, None: 3}
    assert memory_profile("vllm", "0.18.0").nvlink_bytes < memory_profile("vllm", "0.19.0").nvlink_bytes
    assert memory_profile("vllm", "0.18.0").basis == "0.18.0"


def test_windows_graphs_and_print_change_with_their_version() -> None:
    old, mid, new = (memory_profile("vllm", version) for version in ("0.8.5", "0.19.0", "0.21.0"))
    assert [p.windows_bounded for p in (old, mid, new)] == [False, True, True]
    assert [p.graphs_counted for p in (old, mid, new)] == [False, False, True]
    assert [p.tokens_per_group for p in (old, mid, new)] == [True, True, False]
    assert [p.blocks_per_state for p in (old, mid, new)] == [1, 1, 2]


def test_utilization_means_something_else_in_each_engine() -> None:
    rules = {name: memory_profile(name).utilization_rule for name in ("vllm", "sglang", "tensorrt-llm")}
    assert rules == {"vllm": "total", "sglang": "static", "tensorrt-llm": "free"}


def test_an_engine_without_logs_stands_on_assumptions_and_says_so() -> None:
    assumed = memory_profile("tgi")
    assert assumed.evidence == "physics"
    assert any("no start-up log" in warning for warning in assumed.warnings)
    assert assumed.capacity_error > memory_profile("vllm", "0.19.0").capacity_error


def test_neuron_captures_no_graphs_and_caps_its_cache() -> None:
    neuron = memory_profile("neuron")
    assert neuron.engine == "vllm-neuron"
    assert neuron.graph_size_bytes == neuron.graph_layer_bytes == 0
    assert not neuron.windows_bounded
    assert 0 < neuron.cache_cap_fraction < 1
    assert memory_profile("vllm").cache_cap_fraction == 1


def test_a_version_that_nobody_read_takes_the_nearest_and_says_so() -> None:
    assert memory_profile("vllm", "0.19.0").warnings == ()
    assert memory_profile("vllm", "0.19.7").warnings
    assert memory_profile("vllm", "nightly").warnings


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(UnknownNameError):
        memory_profile("no such engine")


def test_old_versions_count_the_driver_s_context_within_the_utilization() -> None:
    first, counting, later = (memory_profile("vllm", version) for version in ("0.2.4", "0.3.3", "0.6.5"))
    assert (first.context_bytes > 0, counting.context_bytes, later.context_bytes > 0) == (True, 0, True)
    assert first.single_bytes == later.single_bytes < counting.single_bytes


def test_064_counts_what_lies_outside_the_allocator_and_no_more() -> None:
    """Before, all that was gone from the device counted; 0.6.4 prints 0.35 GiB on RTX 3090, the context among it."""
    before, then, later = (memory_profile("vllm", version) for version in ("0.6.3", "0.6.4", "0.6.5"))
    assert before.single_bytes > then.single_bytes > later.single_bytes
    assert then.single_bytes / 2**30 == pytest.approx(0.35, abs=0.005)
    assert then.context_bytes == 0 < later.context_bytes


def test_a_version_between_those_read_is_not_rounded_down() -> None:
    """0.2.7 lies between 0.2.0 and 0.5.0, whose defaults were read; its memory is known."""
    assert [memory_profile("vllm", version).reductions_kept for version in ("0.2.4", "0.2.7", "0.3.0", "0.19.0")] == [
        0,
        2.25,
        0,
        0,
    ]


def test_bitsandbytes_statistics_are_compressed_until_092() -> None:
    assert memory_profile("vllm", "0.9.1").storage.held_as == {"nf4": "nf4-dq"}
    assert memory_profile("vllm", "0.9.2").storage.held_as == {"nf4": "nf4", "nf4-dq": "nf4"}


def test_gpt_oss_captures_larger_batches() -> None:
    assert memory_profile("vllm", "0.19.0").graph_max == {"gpt_oss": 1024}
    assert memory_profile("vllm", "0.10.2").graph_max == {}


def test_long_prompts_are_chunked_by_themselves_for_a_time() -> None:
    lengths = [memory_profile("vllm", version).chunks_beyond_tokens for version in ("0.5.0", "0.5.4", "0.7.3", "0.8.0")]
    assert lengths == [0, 32768, 32768, 0]


def test_quantised_checkpoints_are_less_sure() -> None:
    profile = memory_profile("vllm", "0.19.0")
    assert 0 < profile.weights_error < profile.quantised_error < 0.1
