"""`memory` and `estimate` refuse what is beyond the model's context, its legal degrees, the engine's versions."""

from __future__ import annotations

import dataclasses

import pytest

from chipwise.advisor import EngineRequest, EstimateRequest, SizeRequest, SplitRequest, TrainingRequest, estimate, size
from chipwise.errors import InputError

LARGE = SizeRequest(model="llama-3.3-70b", instance="p5.48xlarge")
LOAD = EstimateRequest(model="llama-3.3-70b", instance="p5.48xlarge", isl_tokens=1024, osl_tokens=256, concurrency=2)


def test_a_context_beyond_the_models_names_it() -> None:
    with pytest.raises(InputError) as caught:
        size(dataclasses.replace(LARGE, context_tokens=2**20))
    assert "--context" in caught.value.what
    assert "131,072" in caught.value.why
    assert size(dataclasses.replace(LARGE, context_tokens=131_072))["fits"]


@pytest.mark.parametrize("change", [{"isl_tokens": 200_000}, {"context_tokens": 200_000}])
def test_lengths_beyond_the_context_are_refused(change: dict[str, int]) -> None:
    with pytest.raises(InputError) as caught:
        estimate(dataclasses.replace(LOAD, **change))  # type: ignore[arg-type] # both fields are integers
    assert "131,072" in caught.value.why


def test_a_training_sequence_beyond_the_context_is_refused() -> None:
    training = TrainingRequest(method="lora", seq_len=200_000)
    with pytest.raises(InputError, match="--seq-len"):
        size(dataclasses.replace(LARGE, training=training))
    with pytest.raises(InputError, match="--seq-len"):
        estimate(dataclasses.replace(LOAD, training=training))


@pytest.mark.parametrize("version", ["99.1", "1.0", "newest"])
def test_an_unknown_version_names_the_known_ones(version: str) -> None:
    engine = EngineRequest(engine="vllm", version=version)
    with pytest.raises(InputError) as caught:
        size(dataclasses.replace(LARGE, engine=engine))
    assert "0.33.0" in caught.value.why
    with pytest.raises(InputError, match="unknown version"):
        estimate(dataclasses.replace(LOAD, engine=engine))


@pytest.mark.parametrize(("version", "nearest"), [("0.8.7", "0.8.5"), ("0.99", "0.33.0"), ("0.0.1", "0.2.0")])
def test_a_version_that_was_not_read_takes_the_nearest_and_says_so(version: str, nearest: str) -> None:
    answer = size(dataclasses.replace(LARGE, engine=EngineRequest(engine="vllm", version=version)))
    assert answer["engine_version"] == nearest
    assert any(version in note and nearest in note for note in answer["warnings"])


def test_the_version_is_that_of_the_chips_engine_where_none_is_named() -> None:
    neuron = SizeRequest(model="llama-3.1-8b", chip="trainium2", engine=EngineRequest(version="99.0"))
    with pytest.raises(InputError, match="Neuron"):
        size(neuron)


def test_an_illegal_degree_names_the_legal_ones() -> None:
    with pytest.raises(InputError) as caught:
        size(SizeRequest(model="llama-3.1-8b", chip="h100-sxm", split=SplitRequest(tp=3)))
    assert "1, 2, 4, 8, 16, 32" in caught.value.why
    assert caught.value.fix == "--tp 2"
