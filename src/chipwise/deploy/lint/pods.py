"""The pods of a tree, whatever kind embeds them: found by their `containers`, not by a list of kinds."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from chipwise.deploy.lint.documents import Document, Path_, Tree, as_text, at, fields, items
from chipwise.deploy.lint.quantities import quantity

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
EFA = "vpc.amazonaws.com/efa"
GPU = "nvidia.com/gpu"
SHARED_GPU = "nvidia.com/gpu.shared"
MIG = "nvidia.com/mig-"
NEURON = "aws.amazon.com/neuron"
NEURON_CORE = "aws.amazon.com/neuroncore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """One container and where it stands."""

    path: Path_
    data: Mapping[str, Any]

    @property
    def image(self) -> str:
        """Its image."""
        return as_text(self.data.get("image"))

    @property
    def requests(self) -> Mapping[str, Any]:
        """What it asks for; limits stand in for requests that are not said."""
        return {**self.limits, **fields(at(self.data, "resources", "requests"))}

    @property
    def limits(self) -> Mapping[str, Any]:
        """Its limits."""
        return fields(at(self.data, "resources", "limits"))

    @property
    def env(self) -> Mapping[str, Any]:
        """Its variables that have a value of their own."""
        return {as_text(at(one, "name")): at(one, "value") for one in items(self.data.get("env"))}

    @property
    def words(self) -> list[str]:
        """Its command line, word by word, that of a shell script included."""
        said = [str(one) for key in ("command", "args") for one in items(self.data.get(key))]
        return [word for one in said for word in (_split(one) if re.search(r"\s", one) else [one])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod as a document describes it."""

    document: Document
    path: Path_
    """Of its spec."""
    spec: Mapping[str, Any]
    labels: Mapping[str, Any]
    nodes: int | None = None
    """How many such pods make one group, where the kind says it."""
    whole: bool = True
    """Whether all that steers it is here: the runtime of a TrainJob may be elsewhere."""

    def containers(self) -> Iterator[Container]:
        """Its containers, the first ones too."""
        for key in ("initContainers", "containers"):
            for place, one in enumerate(items(self.spec.get(key))):
                if isinstance(one, Mapping):
                    yield Container(path=(*self.path, key, place), data=one)

    @property
    def requests(self) -> dict[str, float]:
        """What all its containers ask for together, in base units."""
        total: dict[str, float] = {}
        for container in self.containers():
            if "initContainers" not in container.path:
                for name, amount in container.requests.items():
                    total[name] = total.get(name, 0.0) + (quantity(amount) or 0.0)
        return total

    @property
    def instances(self) -> tuple[str, ...]:
        """The sizes it is pinned to; empty where it is not."""
        return selected(self.spec).get(INSTANCE_TYPE, ())

    @property
    def claims(self) -> list[Mapping[str, Any]]:
        """Its resource claims."""
        return [one for one in items(self.spec.get("resourceClaims")) if isinstance(one, Mapping)]


def accelerators(requests: Mapping[str, Any]) -> dict[str, float]:
    """Of what is asked for, the accelerators."""
    return {
        name: float(quantity(amount) or 0.0)
        for name, amount in requests.items()
        if name in {GPU, SHARED_GPU, NEURON, NEURON_CORE} or name.startswith(MIG)
    }


def selected(spec: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Label to the values that a node may have of it, by node selector and required affinity of one term.

    >>> selected({"nodeSelector": {"a": "b"}})
    {'a': ('b',)}
    """
    chosen = fields(spec.get("nodeSelector")).items()
    found: dict[str, tuple[str, ...]] = {str(key): (str(value),) for key, value in chosen}
    required = at(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = items(at(required, "nodeSelectorTerms"))
    for one in items(at(terms[0], "matchExpressions")) if len(terms) == 1 else ():
        if at(one, "operator") == "In":
            found[as_text(at(one, "key"))] = tuple(str(value) for value in items(at(one, "values")))
    return found


def pods_of(tree: Tree) -> list[Pod]:
    """Every pod of every document, and what a TrainJob asks of its runtime's pods."""
    found = [pod for document in tree.documents for pod in _pods(document, document.data, ())]
    return [*found, *(pod for document in tree.of_kind("TrainJob") for pod in _trainers(tree, document))]


def _pods(document: Document, value: Any, path: Path_) -> Iterator[Pod]:
    if isinstance(value, Mapping):
        containers = value.get("containers")
        if isinstance(containers, list) and all(isinstance(one, Mapping) and "name" in one for one in containers):
            yield _pod(document, value, path)
            return
        for key, inner in value.items():
            yield from _pods(document, inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _pods(document, inner, (*path, place))


def _pod(document: Document, spec: Mapping[str, Any], path: Path_) -> Pod:
    around = at(document.data, *path[:-1])
    labels = fields(at(around, "metadata", "labels"))
    size = None
    if document.kind == "LeaderWorkerSet":
        size = at(document.data, "spec", "leaderWorkerTemplate", "size")
        size = size if isinstance(size, int) else 1
    return Pod(document=document, path=path, spec=spec, labels=labels, nodes=size)


def _trainers(tree: Tree, document: Document) -> Iterator[Pod]:
    """The pods of a TrainJob: the runtime's, if it stands here, with the trainer's command and resources."""
    trainer = fields(at(document.data, "spec", "trainer"))
    name = at(document.data, "spec", "runtimeRef", "name")
    runtimes = [one for one in tree.of_kind("TrainingRuntime", "ClusterTrainingRuntime") if one.name == name]
    below = next((pod for one in runtimes for pod in _pods(one, one.data, ())), None)
    patches = items(at(document.data, "spec", "runtimePatches"))
    patched = next((spec for patch in patches for spec in _pod_specs(patch)), {})
    container = {"name": "trainer", **trainer, "resources": fields(trainer.get("resourcesPerNode"))}
    spec = {**fields(below.spec if below else None), **patched, "containers": [container]}
    nodes = trainer.get("numNodes")
    yield Pod(
        document=document,
        path=("spec", "trainer"),
        spec=spec,
        labels=below.labels if below else {},
        nodes=nodes if isinstance(nodes, int) else None,
        whole=below is not None or bool(patched),
    )


def _pod_specs(value: Any) -> Iterator[Mapping[str, Any]]:
    """Mappings that look like a pod's spec: they steer or equip it."""
    if isinstance(value, Mapping):
        if {"nodeSelector", "tolerations", "affinity", "volumes"} & set(value):
            yield value
            return
        for inner in value.values():
            yield from _pod_specs(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _pod_specs(inner)


def _split(script: str) -> list[str]:
    try:
        return shlex.split(script, comments=True)
    except ValueError:
        return script.split()
