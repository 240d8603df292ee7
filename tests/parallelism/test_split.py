"""Which splits are legal, and what they count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise.model import Attention, Experts, Layer, ModelSpec, Weight
from chipwise.parallelism import Split, ep_problem, legal_tp, tp_problem


def model_of(heads: int, kv_heads: int, ffn: int, routed: int = 0) -> ModelSpec:
    attention = Attention(kind="full", query_heads=heads, kv_heads=kv_heads, head_dim=64, value_head_dim=64)
    gate = Weight(name="gate", part="mlp", out_features=ffn, in_features=512, tp_units=ffn)
    experts = Experts(routed=routed, per_token=1, weights=(gate,)) if routed else None
    layer = Layer(count=2, attention=attention, weights=(gate,), experts=experts)
    return ModelSpec(
        name="by hand",
        model_type="llama",
        architecture="dense-llm",
        layers=(layer,),
        outer=(),
        hidden_size=512,
        vocab_size=1000,
        max_context_tokens=None,
        dtype=None,
        params_source="user",
    )


def test_devices_of_a_replica() -> None:
    split = Split(tp=4, pp=2, dp=3, cp=2, ep=12)
    assert split.devices == 48
    assert split.stage_devices == 12


@pytest.mark.parametrize(
    ("heads", "kv_heads", "legal"),
    [(64, 8, [1, 2, 4, 8, 16, 32, 64]), (12, 4, [1, 2, 4, 12]), (71, 1, [1, 71]), (24, 8, [1, 2, 4, 8, 24])],
)
def test_tp_divides_the_heads_and_divides_or_repeats_the_kv_heads(heads: int, kv_heads: int, legal: list[int]) -> None:
    assert legal_tp(model_of(heads, kv_heads, 64 * 71 * 3), most=71) == legal


def test_tp_divides_the_mlp() -> None:
    spec = model_of(64, 8, 18944)
    assert tp_problem(spec, 64) == "tp=64 does not divide the MLP width 18944" or 18944 % 64 == 0
    assert "MLP width 1000" in (tp_problem(model_of(64, 8, 1000), 16) or "")


def test_a_layer_without_heads_asks_for_none() -> None:
    spec = model_of(64, 8, 4096)
    nothing = Attention(kind="none", query_heads=0, kv_heads=0, head_dim=0, value_head_dim=0)
    plain = replace(spec, layers=(replace(spec.layers[0], attention=nothing),))
    assert tp_problem(plain, 32) is None


def test_experts_are_dealt_out_evenly_over_devices_of_a_stage() -> None:
    experts = model_of(64, 8, 4096, routed=96)
    assert ep_problem(experts, Split(tp=8, ep=8)) is None
    assert ep_problem(experts, Split(tp=8, ep=1)) is None
    assert "does not divide tp x dp = 8" in (ep_problem(experts, Split(tp=8, ep=16)) or "")
    assert "does not divide the 96 experts" in (ep_problem(experts, Split(tp=64, ep=64)) or "")
    assert "mixture-of-experts" in (ep_problem(model_of(64, 8, 4096), Split(tp=8, ep=8)) or "")
