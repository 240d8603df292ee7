"""What a node can allocate, how a replica becomes pods, how long a start takes, which sizes stand in."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog import load_catalog
from chipwise.deploy.asked.chosen import choose
from chipwise.deploy.asked.parameters import TARGETS, Parameters
from chipwise.deploy.asked.plan_file import Part
from chipwise.deploy.build import bundle_of
from chipwise.deploy.facts import DATA
from chipwise.deploy.lint.pools import accelerated
from chipwise.deploy.lint.quantities import quantity
from chipwise.deploy.nodes.node import COLUMNS, allocatable_cpu_m, allocatable_memory_bytes, node_of
from chipwise.deploy.nodes.shape import Share, cpu_text, memory_text, shape_of
from chipwise.deploy.pods import limits_of
from chipwise.deploy.serving.startup import startup_of
from chipwise.errors import UnknownNameError
from chipwise.facts import read_rows

Frozen = Callable[[str], dict[str, Any]]
MIB = 2**20


def printed() -> list[dict[str, str]]:
    return [dict(zip(COLUMNS, row, strict=True)) for _, row in read_rows(DATA / "nodes.csv", COLUMNS)]


def test_the_rule_gives_what_karpenter_prints() -> None:
    """Of all 77 sizes; those with ARM processors keep 59 MiB more, which the rule does not know."""
    assert len(printed()) == 77
    for row in printed():
        cpu = allocatable_cpu_m(vcpu=int(row["vcpu"]))
        memory = allocatable_memory_bytes(ram_bytes=int(row["memory_mib"]) * MIB, pods=int(row["pods"])) / MIB
        assert cpu == int(row["allocatable_cpu_m"]), row["instance"]
        assert memory == pytest.approx(int(row["allocatable_memory_mib"]), abs=1 if row["arch"] == "amd64" else 60)


def test_the_table_and_the_catalog_agree() -> None:
    catalog = load_catalog()
    for row in printed():
        size = catalog.instances.get(row["instance"])
        if size is not None and size.chips and row["manufacturer"] in {"nvidia", "aws"}:
            assert size.chips == int(row["accelerators"]), row["instance"]
            assert size.vcpu == int(row["vcpu"]), row["instance"]


def test_a_size_that_is_not_printed_is_derived() -> None:
    node = node_of("trn2.3xlarge")
    assert not node.printed
    assert (node.accelerators, node.cores, node.devices) == (1, 4, 4)
    assert 0 < node.allocatable_memory_bytes < load_catalog().instance("trn2.3xlarge").ram_bytes  # type: ignore[operator] # it has RAM


def test_a_size_without_accelerators_is_its_own_device(frozen: Frozen) -> None:
    name = next(size.name for size in load_catalog().instances.values() if size.kind == "cpu" and size.vcpu == 16)
    assert (node_of(name).vendor, node_of(name).devices, node_of(name).accelerators) == ("cpu", 1, 0)
    plan = copy.deepcopy(frozen("chat-8b"))
    plan["options"][0] |= {"instance": name, "chip": "epyc-turin"}
    for target in TARGETS:
        bundle = bundle_of(choose(Part(value=plan, where="")), Parameters(target=target, region="us-west-2"))
        text = "".join(file.text for file in bundle.files if file.kind)
        assert "taints" not in text
        assert "nvidia" not in text.replace("nvidia/", "")


def test_an_unknown_size_is_refused() -> None:
    with pytest.raises(UnknownNameError):
        node_of("p9.huge")


@given(instance=st.sampled_from(accelerated()), part=st.floats(0, 1))
def test_full_nodes_always_hold_their_pods(instance: str, part: float) -> None:
    node = node_of(instance)
    devices = max(1, round(part * node.devices))
    shape = shape_of(node, devices=devices)
    limits = limits_of(shape, memory_bytes=shape.memory_bytes)
    cpu, memory = quantity(cpu_text(shape.cpu_m)), quantity(limits["memory"])
    assert cpu is not None
    assert memory is not None
    assert cpu * shape.pods_per_node <= node.allocatable_cpu_m / 1000
    assert memory * shape.pods_per_node <= node.allocatable_memory_bytes
    assert sum(shape.resources.values()) * shape.pods_per_node <= node.devices * (node.lnc or 1)


def test_a_part_of_a_neuron_chip_asks_for_its_physical_cores() -> None:
    assert dict(shape_of(node_of("trn2.3xlarge"), devices=1).resources) == {"aws.amazon.com/neuroncore": 2}
    assert dict(shape_of(node_of("inf2.xlarge"), devices=1).resources) == {"aws.amazon.com/neuroncore": 1}
    assert dict(shape_of(node_of("trn2.48xlarge"), devices=16).resources) == {"aws.amazon.com/neuron": 4}


def test_slices_divide_a_node() -> None:
    shape = shape_of(node_of("p5.48xlarge"), devices=1, share=Share(resource="nvidia.com/mig-1g.10gb", parts=7))
    assert shape.pods_per_node == 56
    assert dict(shape.resources) == {"nvidia.com/mig-1g.10gb": 1}


@pytest.mark.parametrize(("size", "text"), [(500 * MIB, "500Mi"), (3 * 2**30, "3072Mi"), (5.9 * 2**30, "5Gi")])
def test_memory_is_rounded_down(size: float, text: str) -> None:
    assert memory_text(size) == text


def test_a_longer_load_waits_longer() -> None:
    small = startup_of(weights_bytes=16e9, params=8e9, compiles=False)
    large = startup_of(weights_bytes=140e9, params=70e9, compiles=False)
    neuron = startup_of(weights_bytes=16e9, params=8e9, compiles=True)
    assert small.failures < large.failures
    assert neuron.failures * 10 >= 3600
    assert all(one.deadline_s > one.failures * 10 for one in (small, large, neuron))


def pools(plan: dict[str, Any], **parameters: Any) -> list[str]:
    bundle = bundle_of(choose(Part(value=plan, where="")), Parameters(region="us-west-2", **parameters))
    return [file.text for file in bundle.files if file.kind == "NodePool"]


def test_sizes_that_run_the_same_pods_stand_in(frozen: Frozen) -> None:
    first, *others = pools(frozen("chat-8b"))
    assert "weight: 100" in first
    assert others
    for text in others:
        assert "[g6e.xlarge]" not in text
    assert all("weight: 100" not in text for text in others)


@pytest.mark.parametrize("parameters", [{"static": True}, {"purchase": "capacity-block"}, {"purchase": "reserved"}])
def test_nothing_stands_in_for_what_is_fixed(frozen: Frozen, parameters: dict[str, Any]) -> None:
    (only,) = pools(frozen("chat-8b"), **parameters)
    assert "weight" not in only


def test_a_size_with_another_split_does_not_stand_in(frozen: Frozen) -> None:
    plan = copy.deepcopy(frozen("chat-8b"))
    for one in plan["also_feasible"]:
        one["parallelism"]["tp"] = 2
    assert len(pools(plan)) == 1
