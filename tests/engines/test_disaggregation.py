"""Two pools by engine and kind of model: the first rule that speaks decides, and silence is not a yes."""

from __future__ import annotations

import pytest

from chipwise.engines import disaggregation, load_engine


@pytest.mark.parametrize(
    ("engine", "version", "kinds", "status", "unlike"),
    [
        ("vllm", None, {"dense-llm"}, "experimental", (True, True)),
        ("vllm", None, {"moe-llm", "mla"}, "experimental", (False, True)),
        ("vllm", None, {"moe-llm", "recurrent"}, "experimental", (False, True)),
        ("vllm", None, {"vision-language"}, "unknown", (False, False)),
        ("vllm", None, {"dense-llm", "encoder-decoder"}, "unsupported", (False, False)),
        ("vllm", "0.6.4", {"dense-llm"}, "unknown", (False, False)),
        ("sglang", None, {"dense-llm"}, "supported", (False, False)),
        ("tensorrt-llm", None, {"dense-llm"}, "beta", (True, True)),
        ("vllm-neuron", None, {"dense-llm"}, "beta", (True, False)),
    ],
)
def test_what_an_engine_documents(
    engine: str, version: str | None, kinds: set[str], status: str, unlike: tuple[bool, bool]
) -> None:
    found = disaggregation(load_engine(engine, version), kinds)
    assert (found.status, (found.unlike_splits, found.unlike_chips)) == (status, unlike)
    assert found.runs == (status in {"supported", "beta", "experimental"})
    assert found.source


def test_neuron_moves_caches_over_the_network_even_inside_an_instance() -> None:
    assert disaggregation(load_engine("vllm-neuron"), {"dense-llm"}).through == {"network"}
    assert "link" in disaggregation(load_engine("vllm"), {"dense-llm"}).through
