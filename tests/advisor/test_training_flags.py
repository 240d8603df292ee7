"""What `memory` and `estimate` do with each flag of a run: they count it, or say that they cannot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chipwise import estimate, size
from chipwise.advisor import EngineRequest, EstimateRequest, SizeRequest, SplitRequest, TrainingRequest
from chipwise.errors import ChipwiseError, InfeasibleError, InputError, KnowledgeError, UnknownNameError

PRETRAIN = TrainingRequest(method="pretrain")


def answer(
    instance: str, precision: str | None = None, run: TrainingRequest = PRETRAIN, **asked: Any
) -> dict[str, Any]:
    engine = EngineRequest(precision=precision)
    return estimate(EstimateRequest(model="llama-3.1-8b", instance=instance, training=run, engine=engine, **asked))


def seconds(found: dict[str, Any]) -> dict[str, float]:
    return {term["op"]: term["seconds"] for term in found["training"]["terms"]}


def test_fewer_bits_are_multiplied_faster_and_nothing_else_is() -> None:
    wide, narrow = (answer("p6-b200.48xlarge", name) for name in (None, "mxfp8"))
    least = answer("p6-b200.48xlarge", "nvfp4")
    assert [one["config"]["precision"]["compute"] for one in (wide, narrow, least)] == ["bf16", "mxfp8", "nvfp4"]
    gemm = [seconds(one)["gemm"] for one in (wide, narrow, least)]
    assert gemm == sorted(gemm, reverse=True)
    assert seconds(wide)["attention"] == seconds(least)["attention"]
    assert seconds(wide)["head"] == seconds(least)["head"]
    steps = [one["training"]["step_s"].mid for one in (wide, narrow, least)]
    assert steps == sorted(steps, reverse=True)


@pytest.mark.parametrize(
    ("instance", "precision", "family", "message"),
    [
        ("p4d.24xlarge", "fp8", InfeasibleError, "does not multiply fp8"),
        ("p5.48xlarge", "nvfp4", InfeasibleError, "does not multiply nvfp4"),
        ("p5.48xlarge", "int4", UnknownNameError, "unknown training precision"),
        ("trn1.32xlarge", "fp8", KnowledgeError, "trains in fp8"),
    ],
)
def test_a_format_that_is_not_multiplied_is_refused(
    instance: str, precision: str, family: type[ChipwiseError], message: str
) -> None:
    with pytest.raises(family, match=message):
        answer(instance, precision)


def test_states_on_the_host_are_updated_by_its_processors() -> None:
    """A gist by chenyaofo: LLaMA 7B on 8 A800, ZeRO-3, 64 sequences of 4,096: 4.45 a second, 2.05 with offload."""

    def run(offload: str) -> dict[str, Any]:
        asked = TrainingRequest(
            method="full-ft", trainer="deepspeed", shard="zero3", micro_batch=2, global_batch=64, seq_len=4096,
            offload=offload,
        )  # fmt: skip
        return estimate(EstimateRequest(model="llama-2-7b", instance="p4de.24xlarge", training=asked))

    held, offloaded = run("none"), run("optimizer")
    added = seconds(offloaded)["optimizer"] - seconds(held)["optimizer"]
    assert added == pytest.approx(64 / 2.05 - 64 / 4.45, rel=0.25)
    assert offloaded["memory"]["per_chip"]["optimizer_bytes"] == 0


@pytest.mark.parametrize(
    "flag", ["concurrency", "rate_per_s", "batch", "offline", "replicas", "isl_tokens", "osl_tokens"]
)
def test_a_run_has_no_load(flag: str) -> None:
    load: dict[str, Any] = {flag: True if flag == "offline" else 4}
    with pytest.raises(InputError, match="does not go with --method pretrain"):
        answer("p5.48xlarge", **load)


def test_a_run_has_no_engine_and_its_context_is_its_sequence() -> None:
    engine = EngineRequest(engine="vllm")
    with pytest.raises(InputError, match="--engine does not go"):
        size(SizeRequest(model="llama-3.1-8b", chip="h100-sxm", training=PRETRAIN, engine=engine))
    run = TrainingRequest(method="lora")
    found = size(SizeRequest(model="llama-3.1-8b", chip="h100-sxm", training=run, context_tokens=1024))
    assert found["config"]["seq_len"] == 1024


def test_a_layout_that_cannot_run_says_which_would() -> None:
    """The first runs nothing: two sequences for eight copies; the second holds a copy of 8B a NeuronCore."""
    training = TrainingRequest(method="lora", seq_len=131072)
    with pytest.raises(InputError) as caught:
        estimate(EstimateRequest(model="llama-3.1-8b", instance="p5.48xlarge", training=training))
    assert "--tp 4 or --cp 4" in str(caught.value.fix)
    dpo = EstimateRequest(model="llama-3.1-8b", instance="trn2.48xlarge", training=TrainingRequest(method="dpo"))
    found = estimate(dpo)
    assert not found["feasible"]
    (said,) = [text for text in found["warnings"] if "would fit with --tp" in text]
    tp = int(said.split("--tp ")[1].split()[0])
    assert estimate(replace(dpo, split=SplitRequest(tp=tp)))["feasible"]
    assert not estimate(replace(dpo, split=SplitRequest(tp=tp // 2)))["feasible"]


def test_weights_that_are_not_sharded_say_so() -> None:
    asked = TrainingRequest(method="lora", seq_len=2048, recompute="full")
    whole = EstimateRequest(model="llama-3.3-70b", instance="p5.48xlarge", training=asked)
    assert any("--shard zero3" in text for text in estimate(whole)["warnings"])
    assert estimate(replace(whole, training=replace(asked, shard="zero3")))["feasible"]
