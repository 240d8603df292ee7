"""Engines asked for by name: only stacks that they are, what they do not run rejected with who says so."""

from __future__ import annotations

import pytest

from chipwise import EstimateRequest, Request, SizeRequest, advise, estimate, load_catalog, size
from chipwise.advisor import EngineRequest, SplitRequest
from chipwise.decide import Advice
from chipwise.errors import InfeasibleError, KnowledgeError

CHIPS = {size.name: size.chip for size in load_catalog().instances.values()}


def engines(advice: Advice) -> set[str]:
    return {option.engine for option in advice.options}


def test_nxd_inference_alone_leaves_no_other_stack_and_no_gpu() -> None:
    advice = advise(Request(model="llama-3.1-8b", purpose="chat", users=4, engine="nxd-inference"))
    assert engines(advice) == {"nxd-inference"}
    rows = {row.instance: row for row in advice.rejected}
    assert rows["g6e.xlarge"].rule == "engine"
    assert "NxD Inference does not run on nvidia chips" in rows["g6e.xlarge"].reason


def test_the_plugin_alone_runs_on_trainium2_and_later() -> None:
    advice = advise(Request(model="llama-3.1-8b", purpose="chat", users=4, engine="vllm-neuron"))
    assert engines(advice) == {"vllm-neuron"}
    rows = {row.instance: row for row in advice.rejected}
    assert rows["inf2.xlarge"].rule == "support"
    assert "Trainium2 and Trainium3 only" in rows["inf2.xlarge"].reason
    assert "release-notes" in rows["inf2.xlarge"].source


def test_neuron_is_whichever_stack_is_documented() -> None:
    advice = advise(Request(model="llama-3.1-8b", purpose="chat", users=4, engine="neuron"))
    assert {CHIPS[option.instance] for option in advice.options} >= {"inferentia2"}
    assert "nxd-inference" in engines(advice)


def test_an_engine_of_gpus_rejects_neuron_sizes_by_its_name() -> None:
    advice = advise(Request(model="llama-3.1-8b", purpose="chat", users=4, engine="sglang"))
    rows = {row.instance: row for row in advice.rejected}
    assert rows["trn2.48xlarge"].rule == "engine"
    assert "--engine sglang" in rows["trn2.48xlarge"].reason


def test_memory_and_estimate_take_the_engine_by_name() -> None:
    two = SplitRequest(tp=2)
    named = EngineRequest(engine="nxd-inference")
    assert size(SizeRequest(model="qwen3-8b", chip="trainium2", split=two, engine=named))["engine"] == "nxd-inference"
    asked = EstimateRequest(
        model="qwen3-8b", chip="trainium2", split=two, engine=named, isl_tokens=512, osl_tokens=128, concurrency=2
    )
    assert estimate(asked)["config"]["engine"] == "nxd-inference"


def test_a_version_of_a_neuron_engine_is_the_one_asked_for() -> None:
    old = EngineRequest(engine="nxd-inference", version="0.7.0")
    assert size(SizeRequest(model="llama-3.1-8b", chip="trainium2", engine=old))["engine_version"] == "0.7.0"


@pytest.mark.parametrize(
    ("engine", "model", "chip", "error", "said"),
    [
        ("nxd-inference", "deepseek-v3", "inferentia2", InfeasibleError, "deepseek_v3"),
        ("nxd-inference", "llama-3.1-8b", "h100-sxm", InfeasibleError, "no back end"),
        ("vllm-neuron", "llama-3.1-8b", "inferentia2", InfeasibleError, "Trainium2"),
        ("vllm-neuron", "qwen3-8b", "trainium2", KnowledgeError, "validated"),
    ],
)
def test_what_it_does_not_run_is_refused_with_its_source(
    engine: str, model: str, chip: str, error: type[InfeasibleError | KnowledgeError], said: str
) -> None:
    with pytest.raises(error, match=said) as caught:
        size(SizeRequest(model=model, chip=chip, engine=EngineRequest(engine=engine)))
    assert caught.value.why
