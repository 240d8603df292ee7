"""What the topics of the guide are served by, asked at the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chipwise.guide import bands
from chipwise.memory.training import RolesInput, TrainingMemory, TrainingMemoryInput, training_memory
from chipwise.memory.training_job import Method, TrainingJob, TrainingLayout
from chipwise.model import load_model
from chipwise.report.schema import schema

Ask = Callable[..., dict[str, Any]]

ON_H100 = ["--chip", "h100-sxm", "--tp", "4", "--context", "4k"]


def whole_weights(ask: Ask, precision: str) -> float:
    answer = ask("memory", "llama-3.3-70b", *ON_H100, "--precision", precision)
    return float(answer["per_chip"]["weights_bytes"] * 4)


def test_weights_take_parameters_times_bytes(ask: Ask) -> None:
    assert whole_weights(ask, "bf16") == pytest.approx(141.1e9, rel=0.005)
    assert whole_weights(ask, "fp8") == pytest.approx(70e9 + 2.1e9, rel=0.02)  # embedding and head stay at 16 bits
    assert whole_weights(ask, "int4") == pytest.approx(36e9 + 3.2e9, rel=0.05)


@pytest.mark.parametrize(
    ("model", "size", "precision"),
    [
        ("deepseek-v3", "p5en.48xlarge", "fp8"),
        ("llama-3.1-405b", "p5e.48xlarge", "bf16"),
        ("llama-3.3-70b", "g7e.48xlarge", "bf16"),
        ("llama-3.3-70b", "g7e.12xlarge", "fp8"),
    ],
)
def test_big_models_fit_single_nodes(ask: Ask, model: str, size: str, precision: str) -> None:
    answer = ask("memory", model, "--instance", size, "--precision", precision, "--context", "4k")
    assert answer["fits"], answer["shortfall_bytes"]


def held(method: Method, *, roles: RolesInput | None = None) -> TrainingMemory:
    job = TrainingJob(method=method, seq_len=2048, micro_batch=1)
    model = load_model("llama-3.1-8b")
    given = TrainingMemoryInput(model=model, layout=TrainingLayout(), job=job, roles=roles or RolesInput())
    return training_memory(given)


def test_a_full_fine_tune_holds_states_that_lora_does_not() -> None:
    full, lora = held("full-ft"), held("lora")
    assert full.optimizer_bytes > full.weights_bytes  # AdamW keeps two moments
    assert full.gradients_bytes > 10 * lora.gradients_bytes
    assert full.total_bytes > 3 * lora.total_bytes


def test_a_preference_run_holds_several_models() -> None:
    model = load_model("llama-3.1-8b")
    alone = held("ppo")
    four = held("ppo", roles=RolesInput(frozen=(model, model), trained=(model,)))
    assert four.weights_bytes >= 3 * alone.weights_bytes
    assert four.optimizer_bytes == pytest.approx(2 * alone.optimizer_bytes, rel=0.1)  # actor and critic


def test_prefill_and_decode_are_bound_as_the_guide_says(ask: Ask) -> None:
    where = ["--on", "p5.48xlarge", "--tp", "4", "--isl", "4k", "--osl", "256", "--concurrency", "1"]
    terms = ask("estimate", "llama-3.3-70b", *where)["serving"]
    assert terms["bound_by"] in {"bandwidth", "communication"}
    h200 = ask("estimate", "llama-3.3-70b", "--on", "p5e.48xlarge", *where[2:])["serving"]
    assert h200["tpot_s"]["mid"] < 0.9 * terms["tpot_s"]["mid"]  # more bandwidth, faster tokens
    assert h200["ttft_s"]["mid"] == pytest.approx(terms["ttft_s"]["mid"], rel=0.25)  # equal FLOPS


def test_training_terms_are_explained() -> None:
    training = schema("estimate")["properties"]["training"]["properties"]
    kinds = set(training["communication_efficiency"]["properties"]) - {"overall"}
    assert kinds == {band.statistic for band in bands("communication_efficiency")}
    assert {"mfu_fraction", "hfu_fraction", "pipeline_bubble_fraction"} <= set(training)


@pytest.mark.parametrize(
    ("name", "total", "active"),
    [
        ("deepseek-v3", 671e9, 37e9),
        ("kimi-k2", 1.03e12, 32e9),
        ("qwen3-235b-a22b", 235e9, 22e9),
        ("mixtral-8x7b", 46.7e9, 12.9e9),
    ],
)
def test_model_facts_of_the_guide(ask: Ask, name: str, total: float, active: float) -> None:
    answer = ask("model", name)
    assert answer["params_total"] == pytest.approx(total, rel=0.01)
    assert answer["params_active"] == pytest.approx(active, rel=0.04)


def test_what_a_checkpoint_may_become_names_loss_and_condition(ask: Ask) -> None:
    found = {one["format"]: one for one in ask("model", "llama-3.3-70b")["precisions"]}
    int4 = next(one for name, one in found.items() if name.startswith("int4"))
    assert int4["calibration_data"]
    assert all(one["condition"] and one["source"] for one in found.values())
    fp8 = next(one for name, one in found.items() if name == "fp8")
    assert "0.5 %" in str(fp8["quality_loss"])
    assert "1 %" in str(fp8["quality_loss"])  # both figures of the guide: it contradicts itself


def test_a_plan_carries_sizing_costs_and_regions(ask: Ask) -> None:
    asked = ["--for", "chat", "--users", "64", "--context", "8k", "--ha", "2", "--region", "us-east-1"]
    answer = ask("plan", "llama-3.3-70b", *asked, "--only", "p5,p5en,g7e")
    assert 1 <= len(answer["options"]) <= 3
    for option in answer["options"]:
        assert option["sizing"]["ha_factor"] == 2
        assert option["replicas"] % 2 == 0
        assert option["regions"] == ["us-east-1"]
        price = option["cost"]["usd_per_hour"]
        assert price is None or {"low", "mid", "high"} <= set(price)
        assert option["cost"]["caveats"]
    assert answer["benchmark"]["commands"]
    assert answer["guide"]["path"][:2] == ["8.1", "8.3"]
