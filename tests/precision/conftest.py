"""A small model, written out by hand, that the tests of this room re-format."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chipwise.model import Attention, Experts, Layer, ModelSpec, Quantisation, Weight
from chipwise.model.spec import Architecture

HIDDEN, WIDTH, VOCABULARY = 256, 512, 1024


def _layer(fmt: str, *, experts: int = 0) -> Layer:
    attention = Attention(kind="full", query_heads=4, kv_heads=2, head_dim=64, value_head_dim=64)
    weights = (
        Weight(name="q", part="attention", out_features=HIDDEN, in_features=HIDDEN, tp_units=4, format=fmt),
        Weight(name="down", part="mlp", out_features=HIDDEN, in_features=WIDTH, cut="in", tp_units=WIDTH, format=fmt),
        Weight(name="norm", part="norm", out_features=HIDDEN, in_features=1, gemm=False, quantisable=False),
        Weight(name="gate", part="router", out_features=8, in_features=HIDDEN, quantisable=False),
    )
    expert = Weight(name="up", part="expert", out_features=WIDTH, in_features=HIDDEN, format=fmt)
    routed = Experts(routed=experts, per_token=2, weights=(expert,)) if experts else None
    return Layer(count=2, attention=attention, weights=weights, experts=routed)


@pytest.fixture(scope="session")
def make_model() -> Callable[..., ModelSpec]:
    """`make_model(fmt="bf16", dtype=..., architecture=..., experts=0, quantised=None, mtp=False)`."""

    def make(
        *,
        fmt: str = "bf16",
        dtype: str | None = "bfloat16",
        architecture: Architecture = "dense-llm",
        experts: int = 0,
        quantised: str | None = None,
        mtp: bool = False,
    ) -> ModelSpec:
        outer = (
            Weight(name="embedding", part="embedding", out_features=VOCABULARY, in_features=HIDDEN, gemm=False),
            Weight(name="head", part="head", out_features=VOCABULARY, in_features=HIDDEN),
        )
        quantisation = None
        if quantised:
            quantisation = Quantisation(method=quantised, weight_format=quantised, bits_per_weight=8.0)
        return ModelSpec(
            name="small",
            model_type="llama",
            architecture=architecture,
            layers=(_layer(quantised or fmt, experts=experts),),
            outer=outer,
            hidden_size=HIDDEN,
            vocab_size=VOCABULARY,
            max_context_tokens=4096,
            dtype=dtype,
            params_source="config",
            mtp=(_layer(fmt),) if mtp else (),
            quantisation=quantisation,
        )

    return make
