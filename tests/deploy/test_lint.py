"""Every rule finds the faults planted for it, on their line, and nothing in what is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from chipwise.deploy.lint import Finding, lint, lint_texts, rules
from chipwise.errors import InputError

PLANTED: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "faults.yaml").read_text(encoding="utf-8"))
FAULTS: list[dict[str, Any]] = PLANTED["faults"]


def text_of(names: list[str]) -> str:
    return "---\n".join(PLANTED["right"][name] for name in names)


def planted(fault: dict[str, Any]) -> str:
    right = text_of(fault["in"])
    assert fault["replace"] in right
    return right.replace(fault["replace"], fault["by"])


def found(text: str) -> dict[str, Finding]:
    return {one.rule: one for one in lint_texts({"a.yaml": text})}


@pytest.mark.parametrize("names", PLANTED["clean"], ids=", ".join)
def test_what_is_right_passes(names: list[str]) -> None:
    assert found(text_of(names)) == {}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault["rule"])
def test_a_planted_fault_is_found(fault: dict[str, Any]) -> None:
    text = planted(fault)
    finding = found(text).get(fault["rule"])
    assert finding is not None, [*found(text)]
    assert finding.severity == rules()[fault["rule"]].severity
    assert 1 <= finding.line <= len(text.splitlines())
    assert len(finding.why) > 10
    assert finding.fix


def test_every_rule_has_its_fault() -> None:
    assert {fault["rule"] for fault in FAULTS} == set(rules())


def test_a_finding_names_the_line() -> None:
    text = text_of(["pod", "pool"]).replace("memory: 300Gi", "memory: 390Gi")
    (fault,) = lint_texts({"serving/pod.yaml": text})
    assert fault.file == "serving/pod.yaml"
    assert "390Gi" in text.splitlines()[fault.line - 1]


def test_a_pool_may_fall_back_from_a_reservation() -> None:
    """Two pools of one class, of which one takes what is reserved."""
    reserved = PLANTED["right"]["block"]
    beside = reserved.replace("{name: block}", "{name: more}", 1).replace("[reserved]", "[on-demand]")
    beside = "".join(line for line in beside.splitlines(keepends=True) if "capacity-reservation-type" not in line)
    assert found("---\n".join([reserved, beside, PLANTED["right"]["block class"]])) == {}
    assert set(found("---\n".join([beside, PLANTED["right"]["block class"]]))) == {"reservation-not-reserved"}


def test_a_leader_that_is_ready_at_once_waits_for_nobody() -> None:
    group = text_of(["group"]).replace("LeaderCreated", "LeaderReady")
    unprobed = "".join(line for line in group.splitlines(keepends=True) if "startupProbe" not in line)
    assert "leader-waits-for-workers" not in found(unprobed)
    assert "leader-waits-for-workers" in found(group)
    assert "leader-waits-for-workers" in found(group.replace("startupProbe", "readinessProbe"))


def test_workers_that_answer_themselves_need_no_headless() -> None:
    """Data parallel with a server a node; without that flag the same workers are the leader's."""
    own = "[m, --data-parallel-size=16, --data-parallel-size-local=8, --data-parallel-start-rank=8"
    plain = "[m, --tensor-parallel-size=8, --pipeline-parallel-size=2, --nnodes=2"
    ranked = text_of(["group"]).replace(plain, own).replace(", --headless", "")
    assert "worker-not-headless" in found(ranked)
    assert "worker-not-headless" not in found(ranked.replace(own, f"{own}, --data-parallel-hybrid-lb"))


def test_the_hand_checked_examples_hold_no_error(shared: Path) -> None:
    folder = shared / "ecosystem" / "examples"
    for target in (folder, *sorted(folder.glob("*.yaml"))):
        assert [one for one in lint(target) if one.severity == "error"] == []


def test_aliases_that_expand_without_end_are_refused() -> None:
    layers = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 12))
    (fault,) = lint_texts({"a.yaml": f"l0: &l0 [a]\n{layers}\n"})
    assert fault.rule == "not-yaml"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "kind",
                        "apiVersion",
                        "metadata",
                        "spec",
                        "containers",
                        "name",
                        "resources",
                        "limits",
                        "requests",
                        "template",
                        "requirements",
                        "values",
                        "key",
                        "selector",
                        "matchLabels",
                        "args",
                        "trainer",
                        "devices",
                        "exactly",
                        "nvidia.com/gpu",
                    ]
                ),
                inner,
                max_size=5,
            )
        ),
        max_leaves=40,
    ),
    st.sampled_from(
        [
            "Deployment",
            "NodePool",
            "ResourceClaimTemplate",
            "TrainJob",
            "ClusterConfig",
            "LeaderWorkerSet",
            "ScaledObject",
            "ConfigMap",
            "EC2NodeClass",
        ]
    ),
)
def test_any_shape_is_read_without_falling_over(value: object, kind: str) -> None:
    document = {"apiVersion": "karpenter.sh/v1", "kind": kind, "metadata": {"name": "a"}, "spec": value, "data": value}
    lint_texts({"a.json": json.dumps(document), "b.json": json.dumps(value)})


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not there"):
        lint(tmp_path / "none")


THREADS = {
    "aws/karpenter-provider-aws#9489": "reserved-with-interfaces",
    "aws/karpenter-provider-aws#6296": "efa-without-huge-pages",
    "kubernetes-sigs/karpenter#751": "huge-pages-on-dynamic-pool",
    "aws/karpenter-provider-aws#9071": "efa-count",
    "aws/karpenter-provider-aws#7796": "pool-never-launches",
    "aws/karpenter-provider-aws#5703": "pool-too-large",
    "aws/karpenter-provider-aws#5666": "public-address-with-efa",
    "awslabs/ai-on-eks#112": "taint-without-toleration",
    "kubernetes-sigs/karpenter#1219": "mig-on-dynamic-pool",
    "NVIDIA/k8s-device-plugin#767": "label-is-output",
    "vllm-project/vllm#6319": "no-shared-memory",
    "llm-d/llm-d-benchmark#83": "startup-probe-too-short",
    "vllm-project/vllm-neuron#7": "image-against-chip",
    "aws-neuron/neuronx-distributed-inference#26": "compile-memory",
}
"""Where people stumbled in public, and the rule that would have told them; faults.yaml plants each."""


@pytest.mark.parametrize("thread", THREADS)
def test_a_public_stumbling_block_is_found(thread: str) -> None:
    rule = THREADS[thread]
    assert rules()[rule].source == thread
    fault = next(one for one in FAULTS if one["rule"] == rule)
    assert rule in found(planted(fault))
