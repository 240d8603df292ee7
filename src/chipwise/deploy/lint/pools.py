"""The node pools of a tree, whoever launches them: which sizes, which labels, which taints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from chipwise.catalog import load_catalog
from chipwise.deploy.lint.documents import Document, Path_, Tree, as_text, at, fields, items
from chipwise.deploy.lint.pods import INSTANCE_TYPE, Pod, selected
from chipwise.deploy.lint.quantities import quantity
from chipwise.deploy.nodes.node import Node, node_of
from chipwise.errors import ChipwiseError

Provisioner = Literal["karpenter", "auto-mode", "eksctl"]
AUTO_GROUP = "eks.amazonaws.com"
_DOMAINS = ("karpenter.k8s.aws/instance-", "eks.amazonaws.com/instance-")
_ALWAYS = frozenset(
    {
        *("kubernetes.io/os", "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"),
        *("karpenter.sh/capacity-type", "karpenter.sh/nodepool", "eks.amazonaws.com/compute-type"),
        *("eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name", "alpha.eksctl.io/cluster-name"),
        *("node-role.kubernetes.io/worker", "topology.k8s.aws/zone-id"),
    }
)
"""Labels that nodes get from elsewhere: no pool needs to say them."""
_LATE = ("nvidia.com/", "feature.node.kubernetes.io/", "topology.k8s.aws/", "karpenter.k8s.aws/capacity-reservation")
"""Labels that appear once a node runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Nodes of one kind."""

    document: Document
    path: Path_
    provisioner: Provisioner
    name: str
    requirements: Mapping[str, tuple[str, ...]]
    """Label to the values allowed; only `In`."""
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, Any], ...]
    static: bool
    limits: Mapping[str, Any]

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes it may launch, of those with accelerators; empty where none is known."""
        return tuple(size for size in accelerated() if self._allows(size))

    def _allows(self, size: str) -> bool:
        own = labels_of(size)
        return all(
            own.get(_generic(key)) in values for key, values in self.requirements.items() if _generic(key) in own
        )

    def offers(self, key: str, values: tuple[str, ...]) -> bool:
        """Whether a node of it can have one of these values of a label."""
        if key in self.labels:
            return self.labels[key] in values
        if key in self.requirements:
            return bool(set(self.requirements[key]) & set(values))
        if key in _ALWAYS or key.startswith(_LATE):
            return True
        generic = _generic(key)
        if generic in _SAID:
            sizes = self.sizes
            return not sizes or any(labels_of(size).get(generic) in values for size in sizes)
        return False

    def tolerated(self, pod: Pod) -> bool:
        """Whether the pod tolerates every taint of its nodes."""
        tolerations = [fields(one) for one in items(pod.spec.get("tolerations"))]
        return all(any(_tolerates(one, taint) for one in tolerations) for taint in self.taints)

    def selects(self, pod: Pod) -> list[str]:
        """The labels that the pod asks for and no node of it has."""
        return [key for key, values in selected(pod.spec).items() if not self.offers(key, values)]


def pools_of(tree: Tree) -> list[Pool]:
    """Every pool."""
    return [pool for document in tree.documents for pool in _pools(document)]


def node_known(size: str) -> Node | None:
    """The node of a size; None where it is not known or has no accelerators."""
    try:
        return node_of(size)
    except ChipwiseError:
        return None


@cache
def accelerated() -> tuple[str, ...]:
    """Every size with accelerators of NVIDIA or AWS."""
    catalog = load_catalog()
    names = [name for name, size in catalog.instances.items() if size.chip and size.kind in {"gpu", "neuron"}]
    return tuple(name for name in names if node_known(name) is not None)


_SAID = (
    frozenset({INSTANCE_TYPE, "kubernetes.io/arch"})
    | {
        f"instance-{name}"
        for name in ("family", "category", "generation", "size", "gpu-count", "gpu-manufacturer", "accelerator-count")
    }
    | {"instance-accelerator-manufacturer"}
)


@cache
def labels_of(size: str) -> Mapping[str, str]:
    """The labels that a node of a size bears, without the domain of who launches it."""
    node = node_known(size)
    if node is None:
        return {}
    family, _, rest = size.partition(".")
    parts = re.match(r"([a-z]+)(\d+)", family)
    kind = "gpu" if node.vendor == "nvidia" else "accelerator"
    return {
        INSTANCE_TYPE: size,
        "kubernetes.io/arch": node.arch,
        "instance-family": family,
        "instance-size": rest,
        "instance-category": parts.group(1) if parts else "",
        "instance-generation": parts.group(2) if parts else "",
        f"instance-{kind}-count": str(node.accelerators),
        f"instance-{kind}-manufacturer": node.vendor,
    }


def _generic(key: str) -> str:
    for domain in _DOMAINS:
        if key.startswith(domain):
            return f"instance-{key.removeprefix(domain)}"
    return key


def _pools(document: Document) -> Iterator[Pool]:
    if document.kind == "NodePool" and document.group == "karpenter.sh":
        yield _node_pool(document)
    elif document.kind == "ClusterConfig":
        for key in ("managedNodeGroups", "nodeGroups"):
            for place, group in enumerate(items(document.data.get(key))):
                if isinstance(group, Mapping):
                    yield _node_group(document, (key, place), group)


def _node_pool(document: Document) -> Pool:
    template = at(document.data, "spec", "template")
    spec = fields(at(template, "spec"))
    group = as_text(at(spec, "nodeClassRef", "group"))
    return Pool(
        document=document,
        path=("spec", "template", "spec"),
        provisioner="auto-mode" if group == AUTO_GROUP else "karpenter",
        name=document.name,
        requirements={
            as_text(at(one, "key")): tuple(str(value) for value in items(at(one, "values")))
            for one in items(spec.get("requirements"))
            if at(one, "operator") == "In"
        },
        labels={str(key): str(value) for key, value in fields(at(template, "metadata", "labels")).items()},
        taints=_taints(spec.get("taints")),
        static=isinstance(at(document.data, "spec", "replicas"), int),
        limits=fields(at(document.data, "spec", "limits")),
    )


def _node_group(document: Document, path: Path_, group: Mapping[str, Any]) -> Pool:
    one = [as_text(group.get("instanceType"))] if group.get("instanceType") else []
    sizes = tuple(one or [str(size) for size in items(group.get("instanceTypes"))])
    return Pool(
        document=document,
        path=path,
        provisioner="eksctl",
        name=as_text(group.get("name")),
        requirements={INSTANCE_TYPE: sizes} if sizes else {},
        labels={str(key): str(value) for key, value in fields(group.get("labels")).items()},
        taints=_taints(group.get("taints")),
        static=True,
        limits={},
    )


def _taints(value: Any) -> tuple[Mapping[str, Any], ...]:
    hard = ("NoSchedule", "NoExecute")
    return tuple(fields(one) for one in items(value) if at(one, "effect") in hard)


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") not in {None, "", taint.get("effect")}:
        return False
    if toleration.get("key") in {None, ""}:
        return toleration.get("operator") == "Exists"
    if toleration.get("key") != taint.get("key"):
        return False
    same = (toleration.get("value") or "") == (taint.get("value") or "")
    return toleration.get("operator") == "Exists" or same


def asked_of(pod: Pod, node: Node) -> list[tuple[str, float, float]]:
    """Resource, asked and allocatable of everything that a pod asks for beyond what such a node has."""
    has = {
        "cpu": node.allocatable_cpu_m / 1000,
        "memory": float(node.allocatable_memory_bytes),
        "nvidia.com/gpu": float(node.accelerators if node.vendor == "nvidia" else 0),
        "aws.amazon.com/neuron": float(node.accelerators if node.vendor == "aws" else 0),
        "aws.amazon.com/neuroncore": float(node.devices * (node.lnc or 1) if node.vendor == "aws" else 0),
    }
    asked = {name: amount for name, amount in pod.requests.items() if name in has}
    return [(name, amount, has[name]) for name, amount in asked.items() if amount > has[name] + 1e-9]


def limit_of(pool: Pool, resource: str) -> float | None:
    """The most of a resource that a pool may launch."""
    return quantity(pool.limits.get(resource))
