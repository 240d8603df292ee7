"""What a shell proposes after TAB, asked the way bash asks."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def proposed(*words: str) -> list[tuple[str, str]]:
    """Kind and text of the proposals for the last word."""
    environment = {
        **os.environ,
        "_CHIPWISE_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("chipwise", *words)),
        "COMP_CWORD": str(len(words)),
    }
    code = "from chipwise.interfaces.cli import main; main()"
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    pairs = [row.partition(",") for row in result.stdout.split()]
    return [(kind, text) for kind, _, text in pairs]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("wh",), "why"),
        (("catalog", "sh"), "show"),
        (("plan", "--ttft"), "--ttft-p99"),
        (("plan", "llama-3.3"), "llama-3.3-70b"),
        (("plan", "--for", "cha"), "chat"),
        (("plan", "--vendor", "neu"), "neuron"),
        (("plan", "--region", "us-east-1,us-w"), "us-east-1,us-west-2"),
        (("plan", "--only", "p5.4"), "p5.48xlarge"),
        (("memory", "--chip", "l40"), "l40s"),
        (("memory", "--mig", "1g.1"), "1g.10gb"),
        (("plan", "--engine", "nx"), "nxd-inference"),
        (("plan", "--needs", "fp8,gp"), "fp8,gpudirect"),
        (("why", "trn2.48"), "trn2.48xlarge"),
        (("compare", "p5.48xlarge", "trn2.48"), "trn2.48xlarge"),
        (("compare", "--model", "llama-3.3"), "llama-3.3-70b"),
        (("catalog", "show", "h100-s"), "h100-sxm"),
        (("schema", "err"), "error"),
    ],
)
def test_a_name_is_proposed(words: tuple[str, ...], found: str) -> None:
    assert ("plain", found) in proposed(*words)


@pytest.mark.parametrize("words", [("plan", "./config"), ("plan", "--workload", "chat.y")])
def test_files_are_left_to_the_shell(words: tuple[str, ...]) -> None:
    assert proposed(*words) == [("file", words[-1])]


def test_what_takes_anything_proposes_nothing() -> None:
    assert proposed("plan", "--users", "6") == []
