"""The whole text of a dozen deployments, of plans that do not change; UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chipwise.deploy.asked.chosen import choose
from chipwise.deploy.asked.parameters import Parameters
from chipwise.deploy.asked.plan_file import Part
from chipwise.deploy.build import bundle_of
from chipwise.deploy.written.bundle import Bundle

Frozen = Callable[[str], dict[str, Any]]
GOLDEN = Path(__file__).parent / "golden"
HERE = {"cluster": "prod", "region": "us-west-2", "zone": "us-west-2a"}
SHARED = {"file_system": "fs-0123456789abcdef0", "mount_name": "fsx"}
BLOCK = {"reservation": "cr-0123456789abcdef0"}
CASES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "chat-8b-karpenter": ("chat-8b", 1, {}),
    "chat-70b-auto-mode": ("chat-70b", 3, {"target": "auto-mode"}),
    "chat-70b-neuron-block": ("chat-70b", 1, {**BLOCK, **SHARED}),
    "chat-70b-block-eksctl": ("chat-70b-block", 2, {"target": "eksctl", **BLOCK}),
    "deepseek-two-nodes": ("chat-deepseek", 2, {}),
    "chat-spot": ("chat-spot", 2, {}),
    "tenants-mig": ("tenants", 1, {}),
    "chat-8b-claims": ("chat-8b", 1, {"devices": "dra"}),
    "chat-8b-kustomize": ("chat-8b", 1, {"form": "kustomize", "scaler": "hpa"}),
    "chat-70b-helm": ("chat-70b", 3, {"form": "helm"}),
    "lora-spot": ("lora-spot", 1, SHARED),
    "pretrain-70b-eksctl": ("pretrain-70b", 1, {"target": "eksctl", **BLOCK, **SHARED}),
    "pretrain-70b-jobset": ("pretrain-70b", 2, {"runner": "jobset", "static": True, **SHARED}),
    "finetune-neuron": ("finetune-neuron", 1, SHARED),
}


def text_of(bundle: Bundle) -> str:
    return "".join(f"===== {file.path}\n{file.text}" for file in bundle.files)


@pytest.mark.parametrize("name", CASES)
def test_a_deployment_is_as_it_was(frozen: Frozen, name: str) -> None:
    plan, rank, given = CASES[name]
    made = text_of(bundle_of(choose(Part(value=frozen(plan), where=""), rank), Parameters(**{**HERE, **given})))
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(made, encoding="utf-8")
    assert made == path.read_text(encoding="utf-8")


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(CASES)
