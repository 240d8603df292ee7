"""A dense and a routed model, a device, fitted and ideal parameters for the serving tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import pytest

from chipwise.model import Attention, Experts, Layer, ModelSpec, Weight
from chipwise.model.spec import Part
from chipwise.parallelism import Split, shard
from chipwise.perf.hardware import FABRICS, Hardware
from chipwise.perf.load import ServingInput, ServingLoad
from chipwise.perf.parameters import NAMES, Parameters, parameters_for

HIDDEN, MLP, LAYERS, VOCAB = 8192, 28672, 80, 128256


def matrix(name: str, part: Part, shape: tuple[int, int], units: int, *, cut: Literal["out", "in"] = "out") -> Weight:
    return Weight(name=name, part=part, out_features=shape[0], in_features=shape[1], tp_units=units, cut=cut)


def attention_weights() -> tuple[Weight, ...]:
    return (
        matrix("q", "attention", (HIDDEN, HIDDEN), 64),
        matrix("k", "attention", (1024, HIDDEN), 8),
        matrix("v", "attention", (1024, HIDDEN), 8),
        matrix("o", "attention", (HIDDEN, HIDDEN), 64, cut="in"),
    )


def mlp_weights(part: Part, width: int) -> tuple[Weight, ...]:
    return (
        matrix("gate", part, (width, HIDDEN), width),
        matrix("up", part, (width, HIDDEN), width),
        matrix("down", part, (HIDDEN, width), width, cut="in"),
    )


def spec(layer: Layer) -> ModelSpec:
    return ModelSpec(
        name="toy",
        model_type="toy",
        architecture="dense-llm",
        layers=(layer,),
        outer=(matrix("head", "head", (VOCAB, HIDDEN), VOCAB),),
        hidden_size=HIDDEN,
        vocab_size=VOCAB,
        max_context_tokens=None,
        dtype="bfloat16",
        params_source="config",
    )


GQA = Attention(kind="full", query_heads=64, kv_heads=8, head_dim=128, value_head_dim=128)


@pytest.fixture(scope="session")
def dense() -> ModelSpec:
    """The shape of Llama 70B: 69.5e9 parameters that are multiplied."""
    layer = Layer(count=LAYERS, attention=GQA, weights=(*attention_weights(), *mlp_weights("mlp", MLP)))
    return spec(layer)


@pytest.fixture(scope="session")
def routed() -> ModelSpec:
    """64 experts, 4 a token, in every layer."""
    experts = Experts(routed=64, per_token=4, weights=mlp_weights("expert", 2048))
    router = matrix("router", "router", (64, HIDDEN), 1)
    return spec(Layer(count=40, attention=GQA, weights=(*attention_weights(), router), experts=experts))


@pytest.fixture(scope="session")
def device() -> Hardware:
    """Round figures near an H100 SXM: 1 PFLOP/s bf16, 3 TB/s, 450 GB/s one way among 8."""
    return Hardware(
        gemm_flops_per_s={"bf16": 1e15, "fp8": 2e15, "int4": 1e15},
        widened={"int4": 1.0},
        attention_flops_per_s=1e15,
        memory_bandwidth_bytes_per_s=3e12,
        fabric=float(FABRICS.index("nvswitch")),
        link_bytes_per_s=450e9,
        peer_to_peer=1.0,
        node_devices=8.0,
        network_bytes_per_s=400e9,
    )


@pytest.fixture(scope="session")
def fitted() -> Parameters:
    return parameters_for(chip="h100-sxm", generation="hopper", engine="vllm", fabric="nvswitch")


@pytest.fixture(scope="session")
def ideal() -> Parameters:
    """Every rate reached, nothing else costs anything: the bare physics."""
    ones = {name: 1.0 if name.endswith("_fraction") else 0.0 for name in NAMES}
    return Parameters(**{**ones, "expert_imbalance": 1.0, "array_lanes": 1.0, "burst_fraction": 0.0})


Ask = Callable[..., ServingInput]


@pytest.fixture
def ask(dense: ModelSpec, device: Hardware, fitted: Parameters) -> Ask:
    """A question about the dense model on eight devices; keywords replace fields of the input."""

    def build(
        load: ServingLoad, *, model: ModelSpec = dense, split: Split | None = None, **fields: Any
    ) -> ServingInput:
        base = ServingInput(
            shards=shard(model, split or Split(tp=8.0)),
            hardware=device,
            parameters=fitted,
            weight_bytes={"bf16": 2.0, "fp8": 1.0, "int4": 0.5},
            kv_element_bytes=2.0,
            kv_pool_bytes=50e9,
            max_num_seqs=256.0,
            chunk_tokens=8192.0,
            load=load,
        )
        return replace(base, **fields)

    return build
