"""Wrong requests through the real command: each is told what, why and fix, with the exit status of its family."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from chipwise.report.schema import schema

MODEL = "llama-3.3-70b"
SMALL = "llama-3.1-8b"
STATUS = {"infeasible": 1, "input": 2, "knowledge": 3}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """A request, the family of its error, and what the answer must name: in `what` and in `fix`."""

    words: tuple[str, ...]
    told: str
    fixed: str
    family: str = "input"


H100 = ("memory", MODEL, "--chip", "h100-sxm")
SERVE = ("--isl", "1k", "--osl", "256")
WRONG = {
    "unknown model": Wrong(words=("plan", "llama-3.3-71b"), told="llama-3.3-71b", fixed=MODEL, family="knowledge"),
    "empty model": Wrong(words=("plan", ""), told="MODEL is empty", fixed="MODEL"),
    "unknown instance": Wrong(
        words=("memory", MODEL, "--instance", "p5.48xlarg"), told="p5.48xlarg", fixed="p5.48xlarge"
    ),
    "unknown instance to ask why": Wrong(words=("why", "g6.xlarg", SMALL), told="g6.xlarg", fixed="g6.xlarge"),
    "unknown instance to compare": Wrong(
        words=("compare", "p5.48xlarge", "p5en.48xlarg"), told="p5en.48xlarg", fixed="p5en.48xlarge"
    ),
    "tp that does not divide": Wrong(words=(*H100, "--tp", "7"), told="tp=7 does not divide", fixed=""),
    "unknown region": Wrong(words=("plan", MODEL, "--region", "us-east-99"), told="us-east-99", fixed="us-east-"),
    "negative users": Wrong(words=("plan", MODEL, "--users", "-5"), told="--users", fixed="64"),
    "load stated three times": Wrong(
        words=("plan", MODEL, "--users", "5", "--rate", "3", "--throughput", "4000"), told="--rate", fixed="leave one"
    ),
    "load stated twice": Wrong(
        words=("estimate", SMALL, "--on", "g6e.xlarge", *SERVE, "--concurrency", "4", "--offline"),
        told="--concurrency and --offline",
        fixed="leave one",
    ),
    "two places": Wrong(
        words=("estimate", SMALL, "--on", "g6e.xlarge", "--chip", "l4", *SERVE), told="exactly one", fixed="--chip"
    ),
    "a deadline for serving": Wrong(
        words=("plan", MODEL, "--for", "chat", "--deadline", "3d"), told="--deadline", fixed="leave --deadline out"
    ),
    "users of a training run": Wrong(
        words=("plan", SMALL, "--for", "lora", "--users", "3"), told="--users", fixed="leave --users out"
    ),
    "two formats": Wrong(words=("model", SMALL, "-o", "md"), told="--format md", fixed="keep one"),
    "unknown engine": Wrong(words=("plan", MODEL, "--engine", "vlllm"), told="--engine", fixed="vllm"),
    "unknown precision": Wrong(words=(*H100, "--precision", "fp3"), told="fp3", fixed="fp8"),
    "isl beyond context": Wrong(
        words=("plan", MODEL, "--isl", "200k", "--osl", "1k"), told="beyond what the model takes", fixed="131072"
    ),
    "lengths beyond their context": Wrong(
        words=("plan", MODEL, "--isl", "9k", "--osl", "1k", "--context", "8k"), told="context of 8192", fixed="10240"
    ),
    "malformed duration": Wrong(words=("plan", MODEL, "--ttft-p99", "1parsec"), told="--ttft-p99", fixed="500ms"),
    "malformed amount": Wrong(words=("plan", SMALL, "--budget", "5EUR"), told="--budget", fixed="$50k"),
    "malformed length": Wrong(words=(*H100, "--context", "8q"), told="--context", fixed="8k"),
    "unknown MIG profile": Wrong(words=(*H100, "--mig", "9g.99gb"), told="9g.99gb", fixed="1g.10gb"),
    "a chip without MIG": Wrong(
        words=("memory", SMALL, "--chip", "l4", "--mig", "1g.10gb"), told="1g.10gb", fixed="choose a GPU with MIG"
    ),
    "headroom that takes away": Wrong(words=("plan", SMALL, "--ha", "0.5"), told="--ha", fixed="1.25"),
    "a comparison for no model": Wrong(
        words=("compare", "p5.48xlarge", "g6.xlarge", "--for", "chat"), told="without a model", fixed="--model"
    ),
    "a preset for another class": Wrong(
        words=("plan", SMALL, "--for", "tabular"), told="does not go with a model of class dense-llm", fixed="chat"
    ),
    "a size of which too little is known": Wrong(
        words=("memory", SMALL, "--instance", "trn3-gen1-ultraserver"),
        told="trn3-gen1-ultraserver",
        fixed="choose another",
        family="knowledge",
    ),
    "a chip that no stack serves it on": Wrong(
        words=("memory", SMALL, "--chip", "inferentia1"), told="inferentia1", fixed="NVIDIA", family="infeasible"
    ),
}


def chipwise(*words: str) -> subprocess.CompletedProcess[str]:
    """The real command in a process of its own."""
    command = [sys.executable, "-m", "chipwise", *words]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("name", WRONG)
def test_it_is_told_what_why_and_fix(name: str) -> None:
    wrong = WRONG[name]
    result = chipwise(*wrong.words, "--json")
    answer: dict[str, Any] = json.loads(result.stdout)
    Draft202012Validator(schema("error")).validate(answer)
    error = answer["error"]
    assert (error["family"], result.returncode) == (wrong.family, STATUS[wrong.family])
    assert wrong.told in error["what"]
    assert wrong.fixed in error["fix"]
    shown = [f"{label:>5}: {error[key]}" for label, key in (("error", "what"), ("why", "why"), ("fix", "fix"))]
    assert result.stderr.splitlines() == shown


def test_without_json_stdout_stays_empty() -> None:
    result = chipwise("plan", MODEL, "--users", "-5")
    assert (result.returncode, result.stdout) == (2, "")


def test_a_region_without_offers_is_an_answer_and_says_which_has_them() -> None:
    result = chipwise("plan", MODEL, "--region", "af-south-1", "--only", "p5.48xlarge", "--json")
    answer = json.loads(result.stdout)
    (row,) = [row for row in answer["rejected"] if row["instance"] == "p5.48xlarge"]
    assert (result.returncode, answer["options"], row["rule"]) == (1, [], "region")
    assert "af-south-1" in row["reason"]
    assert row["change"].startswith("--region ")
