"""Twelve scenarios of the guide's two documents, asked at the command line, their JSON read as a user would."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from chipwise.interfaces.cli import cli
from chipwise.report.schema import schema

MODEL = "llama-3.3-70b"
TREES = "sklearn:GradientBoostingClassifier"
SCENARIOS = {
    "a fast chat service that minds its cost": [MODEL, "--for", "chat", "--goal", "latency,cost", "--ttft-p99", "1s"],
    "medical answers at 16 bits, cheapest of those": [MODEL, "--for", "chat", "--goal", "quality,cost"],
    "the guide to its letter": [MODEL, "--for", "chat", "--goal", "latency", "--strict-guide"],
    "stochastic rounding without Blackwell": [
        *("llama-3.1-8b", "--for", "batch", "--needs", "stochastic-rounding", "--exclude", "p6*,p6e*"),
    ],
    "trees, where no GPU is needed": [TREES, "--for", "tabular"],
    "images of 1024 pixels": ["stable-diffusion-3-medium", "--for", "diffusion", "--image-size", "1024"],
    "speech to text in real time": ["whisper-large-v3", "--for", "transcribe"],
    "a thousand users at peak": [
        MODEL,
        "--for",
        "chat",
        "--goal",
        "concurrency",
        "--users",
        "1000",
        "--ttft-p99",
        "2s",
    ],
    "a mixture of experts": ["deepseek-v3", "--for", "chat"],
    "70B fine-tuned within three days": [MODEL, "--for", "finetune", "--goal", "time-to-train", "--deadline", "3d"],
    "7B class fine-tuned for 50,000 USD on Spot": [
        *("llama-3.1-8b", "--for", "finetune", "--goal", "training-cost", "--budget", "$50k", "--purchase", "spot"),
    ],
    "several small models apart on one GPU": [
        *("llama-3.2-1b", "--for", "multi-serving", "--isolation", "hardware", "--only", "p5.4xlarge"),
    ],
}


@pytest.fixture(scope="module")
def answers() -> dict[str, dict[str, Any]]:
    """Each scenario's answer, asked once."""
    return {}


def ask(answers: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    if name not in answers:
        result = CliRunner().invoke(cli, ["plan", *SCENARIOS[name], "--json"], prog_name="chipwise")
        assert result.exit_code == 0, result.stderr
        answers[name] = json.loads(result.stdout)
    return answers[name]


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_size_has_its_reason(answers: dict[str, dict[str, Any]], name: str) -> None:
    answer = ask(answers, name)
    Draft202012Validator(schema("plan")).validate(answer)
    lists = ("also_feasible", "rejected", "not_judged", "excluded")
    seen = Counter(row["instance"] for rows in lists for row in answer[rows])
    seen.update({option["instance"] for option in answer["options"]})
    assert set(seen.values()) == {1}
    assert sum(seen.values()) == answer["considered"]["sizes"]
    assert all(option["reasons"] and option["evidence"] for option in answer["options"])
    assert all(row["behind_because"] and row["behind"]["than"] for row in answer["also_feasible"])
    assert all(row["rule"] and row["reason"] and row["change"] and row["source"] for row in answer["rejected"])
    assert all(row["lacks"] for row in answer["not_judged"])
    assert answer["guide"]["agrees"] or answer["guide"]["differs"] or not answer["guide"]["recommends"]


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_cost_is_a_range_with_its_date(answers: dict[str, dict[str, Any]], name: str) -> None:
    for option in ask(answers, name)["options"]:
        cost = option["cost"]
        if cost["usd_per_hour"] is not None:
            assert cost["usd_per_hour"]["low"] <= cost["usd_per_hour"]["mid"] <= cost["usd_per_hour"]["high"]
            assert cost["caveats"]
            assert cost["price_kind"] in {"api", "assumed"}


def test_of_two_goals_the_first_is_a_bar_and_the_second_orders(answers: dict[str, dict[str, Any]]) -> None:
    fast = ask(answers, "a fast chat service that minds its cost")
    assert all(option["latency"]["ttft_s"]["p99"] <= 1.0 for option in fast["options"])
    missed = [row for row in fast["rejected"] if row["rule"] == "slo"]
    assert missed
    assert all(row["shortfall"]["unit"] == "s" and row["shortfall"]["value"] > 0 for row in missed if row["shortfall"])
    right = ask(answers, "medical answers at 16 bits, cheapest of those")
    assert {option["precision"]["weights"] for option in right["options"]} == {"bf16"}
    prices = [option["cost"]["usd_per_hour"]["mid"] for option in right["options"]]
    assert prices == sorted(prices)


def test_the_letter_rejects_by_its_own_rules(answers: dict[str, dict[str, Any]]) -> None:
    answer = ask(answers, "the guide to its letter")
    rules = {row["rule"] for row in answer["rejected"]}
    assert {"strict-nvlink", "strict-flow"} <= rules
    assert {option["instance"] for option in answer["options"]} <= set(answer["guide"]["recommends"])
    assert answer["guide"]["agrees"]


def test_a_feature_that_only_neuron_has_gives_a_neuron_verdict(answers: dict[str, dict[str, Any]]) -> None:
    answer = ask(answers, "stochastic rounding without Blackwell")
    assert answer["gpu_or_neuron"]["verdict"] == "neuron"
    lacking = [row["instance"] for row in answer["rejected"] if row["rule"] == "needs-stochastic-rounding"]
    assert "p5.48xlarge" in lacking
    assert {row["by"] for row in answer["excluded"]} == {"--exclude"}


def test_trees_run_on_cpus(answers: dict[str, dict[str, Any]]) -> None:
    answer = ask(answers, "trees, where no GPU is needed")
    assert answer["gpu_needed"]["answer"] is False
    assert answer["options"][0]["chip"].startswith("graviton")


def test_images_and_speech_are_predicted_in_their_own_units(answers: dict[str, dict[str, Any]]) -> None:
    images = ask(answers, "images of 1024 pixels")["options"][0]["performance"]["other"]
    assert images["unit"] == "image"
    speech = ask(answers, "speech to text in real time")["options"][0]["performance"]["other"]
    assert speech["unit"] == "audio-second"
    assert 0.0 < speech["real_time_factor"]["mid"] < 1.0
    assert ask(answers, "images of 1024 pixels")["gpu_needed"]["answer"] is True


def test_a_thousand_users_are_carried(answers: dict[str, dict[str, Any]]) -> None:
    for option in ask(answers, "a thousand users at peak")["options"]:
        assert option["replicas"] * option["settings"]["max_num_seqs"] >= 1000
        assert option["latency"]["ttft_s"]["p99"] <= 2.0


def test_one_node_holds_a_mixture_of_experts_as_it_is_released(answers: dict[str, dict[str, Any]]) -> None:
    answer = ask(answers, "a mixture of experts")
    assert answer["model"]["architecture"] == "moe-llm"
    first = answer["options"][0]
    assert first["instances"] == first["replicas"] == 1
    assert first["precision"]["weights"].startswith("fp8")
    assert any(row["rule"] == "memory" and row["shortfall"]["value"] > 0 for row in answer["rejected"])


def test_runs_keep_their_deadline_and_budget(answers: dict[str, dict[str, Any]]) -> None:
    for option in ask(answers, "70B fine-tuned within three days")["options"]:
        assert option["run"]["duration_s"]["mid"] <= 259200.0
    spot = ask(answers, "7B class fine-tuned for 50,000 USD on Spot")
    for option in spot["options"]:
        assert option["cost"]["usd_per_run"]["mid"] <= 50_000.0
        assert option["run"]["interruption_cost_usd"] is not None
    assert any(row["rule"] == "purchase" for row in spot["rejected"])


def test_tenants_apart_ask_for_slices(answers: dict[str, dict[str, Any]]) -> None:
    answer = ask(answers, "several small models apart on one GPU")
    checks = [one for option in answer["options"] for one in option["infrastructure"] if one["feature"] == "mig"]
    assert {one["need"] for one in checks} == {"required"}
    sharing = answer["options"][0]["sharing"]
    assert (sharing["technique"], sharing["profile"], sharing["tenants"]) == ("mig", "1g.10gb", 7)
