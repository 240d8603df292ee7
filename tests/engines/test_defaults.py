from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.engines import DeviceFacts, EngineDefaults, engine_defaults, load_engine
from chipwise.engines.defaults import Usage, static_reserve_mib

GIB = 2**30


def defaults(engine: str, version: str, device: DeviceFacts) -> EngineDefaults:
    return engine_defaults(load_engine(engine, version), device)


def device(chip: str, gib: float, *, tp: int = 1, usage: Usage = "server") -> DeviceFacts:
    return DeviceFacts(chip=chip, memory_bytes=int(gib * GIB), tp=tp, usage=usage)


@pytest.mark.parametrize(
    ("version", "chip", "gib", "usage", "seqs", "tokens"),
    [
        ("0.6.4", "h100-sxm", 79.6, "server", 256, 2048),
        ("0.8.1", "a100-sxm-80", 79.3, "server", 1024, 2048),
        ("0.8.4", "h100-sxm", 79.6, "server", 1024, 8192),
        ("0.8.4", "l4", 22.2, "server", 256, 2048),
        ("0.11.0", "h100-sxm", 79.6, "server", 1024, 8192),
        ("0.11.0", "h100-sxm", 79.6, "offline", 1024, 16384),
        ("0.11.0", "a100-sxm-80", 79.3, "server", 256, 2048),
        ("0.11.0", "a100-sxm-80", 79.3, "offline", 256, 8192),
        ("0.11.0", "l40s", 45.0, "server", 256, 2048),
        ("0.33.0", "rtx-pro-6000", 95.6, "server", 1024, 8192),
    ],
)
def test_vllm_batch_limits_by_version_device_and_usage(
    version: str, chip: str, gib: float, usage: Usage, *, seqs: int, tokens: int
) -> None:
    found = defaults("vllm", version, device(chip, gib, usage=usage))
    assert (found.max_num_seqs, found.max_num_batched_tokens) == (seqs, tokens)


@pytest.mark.parametrize(
    ("version", "utilization", "chunked", "graphs", "counted"),
    [
        ("0.6.4", 0.9, False, 256, False),
        ("0.8.0", 0.9, True, 512, False),
        ("0.19.0", 0.9, True, 512, False),
        ("0.21.0", 0.92, True, 512, True),
        ("0.33.0", 0.92, True, 512, True),
    ],
)
def test_vllm_memory_defaults_by_version(
    version: str, utilization: float, graphs: int, *, chunked: bool, counted: bool
) -> None:
    found = defaults("vllm", version, device("h100-sxm", 79.6))
    assert found.utilization == utilization
    assert found.budget == "of-total"
    assert found.block_tokens == 16
    assert found.chunked_prefill is chunked
    assert found.prefix_caching is chunked
    assert found.graph_max_batch == graphs
    assert found.graph_memory_counted is counted


@pytest.mark.parametrize(
    ("version", "latent", "elements"),
    [("0.6.4", False, None), ("0.7.1", True, None), ("0.7.3", True, 640), ("0.8.0", True, 640), ("0.11.0", True, 576)],
)
def test_vllm_caches_of_latent_attention(version: str, elements: int | None, *, latent: bool) -> None:
    found = defaults("vllm", version, device("h200-sxm", 140.0))
    assert (found.mla_latent, found.mla_cache_elements) == (latent, elements)


@pytest.mark.parametrize(
    ("version", "gib", "tp", "share", "chunk", "graphs"),
    [
        # 0.5.3 and later: (m - max(floor, 512 + 1.5 chunk + 2 graphs + 128 tp)) / m
        ("0.5.5", 80.0, 1, 1 - 13440 / 81920, 8192, 256),
        ("0.5.5", 80.0, 8, 1 - 14848 / 81920, 8192, 512),
        ("0.5.5", 22.0, 1, 1 - (512 + 3072 + 48 + 128) / 22528, 2048, 24),
        ("0.5.5", 45.0, 4, 1 - (512 + 6144 + 320 + 512) / 46080, 4096, 160),
        # before: a constant a memory class and a share of tp
        ("0.4.6", 80.0, 8, 1 - (9728 + 512 * 8) / 81920, 8192, 160),
        ("0.4.6", 22.0, 1, 1 - (2867.2 + 102.4) / 22528, 2048, 8),
        ("0.4.6", 180.0, 8, 1 - 32768 / 184320, 16384, 512),
    ],
)
def test_sglang_derives_its_static_share(
    version: str, gib: float, tp: int, *, share: float, chunk: int, graphs: int
) -> None:
    found = defaults("sglang", version, device("any", gib, tp=tp))
    assert found.budget == "static"
    assert found.utilization is not None
    assert math.isclose(found.utilization, share, abs_tol=5e-4)
    assert (found.max_num_batched_tokens, found.graph_max_batch) == (chunk, graphs)


def test_sglang_without_a_known_memory_has_no_share() -> None:
    found = engine_defaults(load_engine("sglang"), DeviceFacts(chip="any", memory_bytes=None))
    assert found.utilization is None


def test_tensorrt_llm_takes_a_share_of_what_is_free() -> None:
    found = defaults("tensorrt-llm", "1.2.0", device("b200", 179.0))
    assert (found.utilization, found.budget) == (0.9, "of-free")
    assert (found.max_num_seqs, found.max_num_batched_tokens, found.block_tokens) == (2048, 8192, 32)


def test_vllm_on_neuron_caps_its_cache() -> None:
    found = defaults("vllm-neuron", "0.24.0", device("trainium2", 24.0))
    assert found.kv_share_cap == 0.3
    assert found.block_tokens == 32
    assert found.chunked_prefill is False


def test_what_nobody_says_is_none() -> None:
    found = defaults("deepspeed", "0.18.0", device("h100-sxm", 79.6))
    assert found.utilization is None
    assert found.max_num_seqs is None
    assert found.sources == {}


def test_every_default_carries_its_source() -> None:
    found = defaults("vllm", "0.33.0", device("h100-sxm", 79.6))
    assert set(found.sources) >= {"utilization", "budget", "max_num_seqs", "max_num_batched_tokens", "block_tokens"}
    assert found.sources["utilization"].startswith("vllm-pr-38284: ")


@given(tokens=st.integers(0, 65536), ranks=st.floats(0, 1e5), graphs=st.floats(0, 1e4))
def test_the_reserve_grows_with_every_part_and_keeps_its_floor(tokens: int, ranks: float, graphs: float) -> None:
    one = static_reserve_mib(floor=10240, base=512, per_token=1.5, tokens=tokens, graphs=graphs, ranks=ranks)
    more = static_reserve_mib(floor=10240, base=512, per_token=1.5, tokens=tokens + 1, graphs=graphs, ranks=ranks)
    assert one >= 10240
    assert more >= one
    assert one == 10240 or math.isclose(one, 512 + 1.5 * tokens + graphs + ranks)
