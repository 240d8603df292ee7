"""What the manifests ask for, read back, is the plan's: devices, split, precision, engine settings, nodes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from chipwise.deploy.asked.chosen import Chosen, choose
from chipwise.deploy.asked.parameters import TARGETS, Parameters, Target
from chipwise.deploy.asked.plan_file import Part
from chipwise.deploy.build import bundle_of
from chipwise.deploy.lint import lint_texts
from chipwise.deploy.lint.documents import Tree, read_text
from chipwise.deploy.lint.engine import devices_of, serves, split_of
from chipwise.deploy.lint.pods import Pod, pods_of
from chipwise.deploy.lint.pools import accelerated
from chipwise.deploy.nodes.node import Node, node_of
from chipwise.deploy.written.bundle import Bundle

Plan = Callable[[str], Part]
AXES = ("tp", "pp", "ep", "dp", "cp")
FORMATS = {"bf16": (), "fp8": ("--quantization=fp8",)}
"""Formats that a bf16 checkpoint gets to while loading, and the flags for it."""


def tree_of(bundle: Bundle) -> Tree:
    read = [read_text(file.path, file.text)[0] for file in bundle.files if file.kind]
    return Tree(documents=tuple(document for documents in read for document in documents))


def engine_engine(node: Node) -> str:
    if node.vendor == "nvidia":
        return "vllm"
    return "vllm-neuron" if node.instance.startswith(("trn2", "trn3")) else "nxd-inference"


@st.composite
def splits(draw: st.DrawFn, node: Node) -> tuple[int, int, int, int]:
    """Split over tp, pp and dp that pods of equal size can hold, and over how many nodes."""
    tp = draw(st.sampled_from([size for size in (1, 2, 4, 8, 16, 32, 64) if size <= node.devices]))
    pp, dp = draw(
        st.sampled_from([(1, 1), (1, 1), (2, 1), (4, 1), (1, 2), (1, 8)] if node.vendor == "nvidia" else [(1, 1)])
    )
    devices = tp * pp * dp
    nodes = -(-devices // node.devices)
    assume(devices % nodes == 0)
    assume(nodes == 1 or dp == 1 or dp % nodes == 0)
    assume(devices >= node.cores or node.cores % devices == 0)
    return tp, pp, dp, nodes


@st.composite
def changes(draw: st.DrawFn) -> dict[str, Any]:
    """Another size, another split, other settings: what an option of a plan says of them."""
    node = node_of(draw(st.sampled_from(accelerated())))
    tp, pp, dp, nodes = draw(splits(node))
    replicas = draw(st.integers(1, 9))
    per_node = max(1, node.devices // (tp * pp * dp)) if nodes == 1 else 1
    instances = replicas * nodes if nodes > 1 else -(-replicas // per_node)
    engine = engine_engine(node)
    weights = draw(st.sampled_from(sorted(FORMATS))) if engine == "vllm" else "bf16"
    kv = draw(st.sampled_from(["bf16", "fp8"])) if engine != "nxd-inference" else "bf16"
    engine_settings = {
        "max_num_seqs": draw(st.integers(1, 512)),
        "max_model_len": draw(st.sampled_from([4096, 8192, 131072])),
        "max_num_batched_tokens": draw(st.sampled_from([512, 2048, 8192])),
        "gpu_memory_utilization": draw(st.sampled_from([0.9, 0.92])),
        "engine_version": {"vllm": "0.33.0", "vllm-neuron": "0.24.0"}.get(engine, "0.10.0"),
    }
    return {
        "instance": node.instance,
        "instances": instances,
        "replicas": replicas,
        "engine": engine,
        "devices_per_replica": tp * pp * dp,
        "parallelism": {"tp": tp, "pp": pp, "ep": 1, "dp": dp, "cp": 1},
        "precision": {"weights": weights, "kv": kv, "compute": weights},
        "settings": engine_settings,
    }


def read_back(chosen: Chosen, bundle: Bundle) -> None:
    """The replicas of the folder are those of the option."""
    tree = tree_of(bundle)
    workload = next(one for one in tree.of_kind("Deployment", "LeaderWorkerSet"))
    assert workload.data["spec"]["replicas"] == chosen.replicas
    pods = [pod for pod in pods_of(tree) if pod.document is workload]
    for pod in pods:
        (container,) = [one for one in pod.containers() if serves(one)]
        words, split, devices = container.words, split_of(container.words), devices_of(tree, pod)
        assert devices is not None
        assert devices * (pod.nodes or 1) == chosen.devices_per_replica
        assert (split.tp, split.pp, split.dp) == (chosen.split.tp, chosen.split.pp, chosen.split.dp)
        assert split.devices == chosen.devices_per_replica
        assert pod.instances[0] == chosen.instance
        assert_precision(chosen, pod, words)
        assert_settings(chosen, words)


def assert_precision(chosen: Chosen, pod: Pod, words: list[str]) -> None:
    around = pod.document.data["spec"]
    template = around["template"] if "template" in around else around["leaderWorkerTemplate"]["leaderTemplate"]
    said = template["metadata"]["annotations"]
    assert said["chipwise/weights"] == chosen.precision.weights
    assert said["chipwise/cache"] == chosen.precision.kv
    assert ("--quantization=fp8" in words) == (chosen.precision.weights == "fp8")
    assert ("--kv-cache-dtype=fp8" in words) == (chosen.precision.kv == "fp8")


def assert_settings(chosen: Chosen, words: list[str]) -> None:
    flags = {"--max-num-seqs": "max_num_seqs", "--max-model-len": "max_model_len"}
    if chosen.engine != "nxd-inference":
        flags |= {
            "--max-num-batched-tokens": "max_num_batched_tokens",
            "--gpu-memory-utilization": "gpu_memory_utilization",
        }
    for flag, name in flags.items():
        assert f"{flag}={chosen.settings[name]}" in words


def check(base: Part, changed: dict[str, Any], target: Target) -> None:
    plan = copy.deepcopy(base.value)
    plan["options"][0] |= changed
    chosen = choose(Part(value=plan, where=""))
    bundle = bundle_of(chosen, Parameters(target=target, region="us-west-2", zone="us-west-2a"))
    read_back(chosen, bundle)
    texts = {file.path: file.text for file in bundle.files if file.kind}
    assert [one for one in lint_texts(texts) if one.severity == "error"] == []


@given(changed=changes(), target=st.sampled_from(TARGETS))
def test_what_is_written_is_what_was_planned(plan_json: Plan, changed: dict[str, Any], target: Target) -> None:
    check(plan_json("chat 70b block"), changed, target)


@pytest.mark.slow
@settings(max_examples=500)
@given(changed=changes(), target=st.sampled_from(TARGETS))
def test_what_is_written_is_what_was_planned_for_hundreds(
    plan_json: Plan, changed: dict[str, Any], target: Target
) -> None:
    check(plan_json("chat 70b block"), changed, target)


@pytest.mark.parametrize("target", TARGETS)
def test_real_options_are_read_back(every: tuple[Chosen, ...], target: Target) -> None:
    served = [one for one in every if one.work == "serving" and one.sharing is None]
    assert len(served) >= 15
    for chosen in served[TARGETS.index(target) :: len(TARGETS)]:
        bundle = bundle_of(chosen, Parameters(target=target, region="us-west-2", checkpoint="org/made-beforehand"))
        pods = [pod for pod in pods_of(tree_of(bundle)) if any(serves(one) for one in pod.containers())]
        for pod in pods:
            devices = devices_of(tree_of(bundle), pod)
            assert devices is not None
            assert devices * (pod.nodes or 1) == chosen.devices_per_replica


def test_runs_are_read_back(every: tuple[Chosen, ...]) -> None:
    runs = [one for one in every if one.work == "training"]
    assert len(runs) >= 12
    for chosen in runs:
        tree = tree_of(bundle_of(chosen, Parameters(region="us-west-2")))
        (job,) = tree.of_kind("TrainJob")
        trainer = job.data["spec"]["trainer"]
        assert trainer["numNodes"] == chosen.instances
        assert trainer["numNodes"] * trainer["numProcPerNode"] == chosen.devices_per_replica * chosen.replicas
        (config,) = tree.of_kind("ConfigMap")
        plan = yaml.safe_load(config.data["data"]["plan.yaml"])
        assert {axis: plan[axis] for axis in AXES} == {axis: getattr(chosen.split, axis) for axis in AXES}
        assert plan["weights"] == chosen.precision.weights
        assert plan["micro_batch"] == chosen.settings["micro_batch"]
