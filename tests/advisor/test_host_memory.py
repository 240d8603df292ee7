"""Host memory on Neuron: what a small size cannot compile and shard itself is said beside the option."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise import Request, advise
from chipwise.decide.serving.host import host_shortfall_bytes

GIB = 2**30


def said(model: str, size: str) -> list[str]:
    option = advise(Request(model=model, purpose="chat", users=2, only=(size,), min_precision="bf16")).options[0]
    return [risk for risk in option.risks if "of host memory" in risk]


@pytest.mark.parametrize(
    ("model", "size", "lacks"),
    [
        ("llama-3.1-8b", "inf2.xlarge", "1.4 GB"),
        ("llama-3.1-8b", "inf2.8xlarge", None),
        ("llama-3.2-1b", "inf2.xlarge", None),
        ("llama-3.1-8b", "g6e.xlarge", None),
    ],
)
def test_16_gb_of_weights_do_not_pass_through_16_gib_beside_the_system(
    model: str, size: str, lacks: str | None
) -> None:
    """8.03B parameters are 16.06 GB; with 2.5 GB of system 18.56 GB against 17.18 GB on an inf2.xlarge."""
    risks = said(model, size)
    assert bool(risks) == (lacks is not None)
    assert all(lacks in risk for risk in risks if lacks)


@given(st.floats(0, 1e13), st.floats(1e9, 1e13))
def test_the_shortfall_grows_with_weights_and_shrinks_with_memory(weights_bytes: float, ram_bytes: float) -> None:
    short = host_shortfall_bytes(weights_bytes=weights_bytes, ram_bytes=ram_bytes)
    assert short >= 0.0
    assert host_shortfall_bytes(weights_bytes=weights_bytes + GIB, ram_bytes=ram_bytes) >= short
    assert host_shortfall_bytes(weights_bytes=weights_bytes, ram_bytes=ram_bytes + GIB) <= short
