"""The check of the tests itself: the hand-checked examples pass it, and documents with a fault do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

Strict = Callable[[Mapping[str, Any]], list[str]]


def documents(text: str) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(text) if one]


def test_the_hand_checked_examples_pass(shared: Path, strict: Strict) -> None:
    paths = sorted((shared / "ecosystem" / "examples").glob("*.yaml"))
    found = {path.name: strict(one) for path in paths for one in documents(path.read_text(encoding="utf-8"))}
    assert len(paths) == 12
    assert {name: errors for name, errors in found.items() if errors} == {}


POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}
      requirements: [{key: KEY, operator: In, values: [a]}]
"""


@pytest.mark.parametrize(
    "key", ["karpenter.sh/nodepool", "karpenter.k8s.aws/instance-gpu-brand", "kubernetes.io/hostname"]
)
def test_a_label_that_karpenter_forbids_is_seen(strict: Strict, key: str) -> None:
    (pool,) = documents(POOL.replace("KEY", key))
    assert strict(pool)
    (good,) = documents(POOL.replace("KEY", "karpenter.k8s.aws/instance-gpu-name"))
    assert strict(good) == []


def test_an_unknown_field_is_seen(strict: Strict) -> None:
    (pool,) = documents(POOL.replace("KEY", "accelerator"))
    pool["spec"]["template"]["spec"]["taint"] = []
    assert strict(pool)
    (deployment,) = documents(
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {}, template: {}, replica: 1}}"
    )
    assert strict(deployment)
