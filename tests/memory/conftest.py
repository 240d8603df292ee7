"""Small models laid out by hand, with shapes that the literature prints, and one question about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import pytest

from chipwise.memory import ServingMemoryInput
from chipwise.model import Attention, Experts, Layer, ModelSpec, Weight
from chipwise.model.spec import Part
from chipwise.parallelism import Split, shard

GIB = 2.0**30
Cut = Literal["out", "in"]


def matrix(name: str, part: Part, rows: int, cols: int, units: int, *, cut: Cut = "out") -> Weight:
    return Weight(name=name, part=part, out_features=rows, in_features=cols, tp_units=units, cut=cut)


def gqa(heads: int, kv_heads: int, head_dim: int, **more: Any) -> Attention:
    base = Attention(kind="full", query_heads=heads, kv_heads=kv_heads, head_dim=head_dim, value_head_dim=head_dim)
    return replace(base, **more)


def dense_layer(count: int, hidden: int, ffn: int, attention: Attention) -> Layer:
    width, kv_width = attention.query_heads * attention.head_dim, attention.kv_heads * attention.head_dim
    return Layer(
        count=count,
        attention=attention,
        weights=(
            matrix("q", "attention", width, hidden, attention.query_heads),
            matrix("k", "attention", kv_width, hidden, attention.kv_heads),
            matrix("v", "attention", kv_width, hidden, attention.kv_heads),
            matrix("o", "attention", hidden, width, attention.query_heads, cut="in"),
            matrix("gate", "mlp", ffn, hidden, ffn),
            matrix("up", "mlp", ffn, hidden, ffn),
            matrix("down", "mlp", hidden, ffn, ffn, cut="in"),
        ),
        indices=tuple(range(count)),
    )


def expert_layer(count: int, hidden: int, width: int, *, routed: int, per_token: int, attention: Attention) -> Layer:
    dense = dense_layer(count, hidden, width, attention)
    experts = Experts(
        routed=routed,
        per_token=per_token,
        weights=(
            matrix("gate", "expert", width, hidden, width),
            matrix("up", "expert", width, hidden, width),
            matrix("down", "expert", hidden, width, width, cut="in"),
        ),
    )
    return replace(dense, weights=dense.weights[:4], experts=experts)


def model(layers: tuple[Layer, ...], hidden: int, vocabulary: int, *, tied: bool = False, **more: Any) -> ModelSpec:
    head = replace(matrix("head", "head", vocabulary, hidden, vocabulary), stored=not tied)
    embedding = replace(matrix("embed", "embedding", vocabulary, hidden, vocabulary), gemm=False)
    base = ModelSpec(
        name="by hand",
        model_type="llama",
        architecture="dense-llm",
        layers=layers,
        outer=(embedding, head),
        hidden_size=hidden,
        vocab_size=vocabulary,
        max_context_tokens=131072,
        dtype="bfloat16",
        params_source="user",
    )
    return replace(base, **more)


@pytest.fixture(scope="session")
def llama70b() -> ModelSpec:
    """Llama 3.3 70B: 80 layers of 64 query and 8 KV heads of 128."""
    return model((dense_layer(80, 8192, 28672, gqa(64, 8, 128)),), 8192, 128256)


@pytest.fixture(scope="session")
def llama8b() -> ModelSpec:
    return model((dense_layer(32, 4096, 14336, gqa(32, 8, 128)),), 4096, 128256)


@pytest.fixture(scope="session")
def latent() -> ModelSpec:
    """MLA as in DeepSeek-V3: 512 + 64 elements a token and layer, experts of 2048."""
    mla = gqa(128, 128, 128, kind="mla", kv_lora_rank=512, rope_head_dim=64)
    return model((expert_layer(61, 7168, 2048, routed=256, per_token=8, attention=mla),), 7168, 129280)


@pytest.fixture(scope="session")
def windowed() -> ModelSpec:
    """Gemma-2-2B's cache: 13 layers of a 4,096-token window and 13 full ones, 4 KV heads of 256."""
    near = dense_layer(13, 2304, 9216, gqa(8, 4, 256, kind="sliding", window_tokens=4096))
    far = dense_layer(13, 2304, 9216, gqa(8, 4, 256))
    near = replace(near, indices=tuple(range(0, 26, 2)))
    far = replace(far, indices=tuple(range(1, 26, 2)))
    return model((near, far), 2304, 256000, tied=True)


@pytest.fixture(scope="session")
def hybrid() -> ModelSpec:
    """Qwen3.6-35B-A3B's cache: 30 recurrent layers of 2,146,304 bytes and 10 full ones, 2 KV heads of 256."""
    state = gqa(32, 16, 128, kind="linear", state_bytes_per_sequence=32 * 128 * 128 * 4 + 8192 * 3 * 2)
    recurrent = dense_layer(30, 2048, 512, state)
    full = dense_layer(10, 2048, 512, gqa(16, 2, 256))
    return model((recurrent, full), 2048, 248320)


Ask = Callable[..., ServingMemoryInput]


@pytest.fixture(scope="session")
def ask() -> Ask:
    """A question with the defaults of vLLM 0.19 on an H100 of 79.19 GiB."""

    def build(spec: ModelSpec, split: Split | None = None, **more: Any) -> ServingMemoryInput:
        base = ServingMemoryInput(
            shards=shard(spec, split or Split()),
            capacity_bytes=79.19 * GIB,
            utilization=0.95,
            context_tokens=8192,
            concurrency=1,
            chunk_tokens=8192,
            max_num_seqs=1024,
            engine_version="0.19.0",
        )
        return replace(base, **more)

    return build
