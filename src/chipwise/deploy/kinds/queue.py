"""Kueue's objects: who may use how many nodes of which kind, and how near to one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chipwise.deploy.manifest import Manifest, Meta, Said, manifest_of, present


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The labels that tell how near nodes are, the widest first."""

    meta: Meta
    levels: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceFlavor:
    """The nodes of one size."""

    meta: Meta
    topology: str | None
    node_labels: Mapping[str, str]
    taint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterQueue:
    """All that these nodes offer, for the runs of one namespace."""

    meta: Meta
    namespace: str
    flavor: str
    quota: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalQueue:
    """Where a namespace hands in its runs."""

    meta: Meta
    cluster_queue: str


@manifest_of.register
def topology(made: Topology) -> Manifest:
    """Its manifest."""
    levels = [{"nodeLabel": level} for level in made.levels]
    return Manifest(
        kind="Topology",
        meta=made.meta,
        body={"spec": {"levels": levels}},
        about="How near nodes are: network layers of EC2, the widest first.",
    )


@manifest_of.register
def resource_flavor(made: ResourceFlavor) -> Manifest:
    """Its manifest."""
    return Manifest(
        kind="ResourceFlavor",
        meta=made.meta,
        body={
            "spec": present(
                {
                    "topologyName": made.topology,
                    "nodeLabels": dict(made.node_labels),
                    "tolerations": [{"key": made.taint, "operator": "Exists", "effect": "NoSchedule"}],
                }
            )
        },
        about="The nodes of the run.",
    )


@manifest_of.register
def cluster_queue(made: ClusterQueue) -> Manifest:
    """Its manifest."""
    resources = [{"name": name, "nominalQuota": amount} for name, amount in made.quota.items()]
    group = {"coveredResources": list(made.quota), "flavors": [{"name": made.flavor, "resources": resources}]}
    return Manifest(
        kind="ClusterQueue",
        meta=made.meta,
        body={
            "spec": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": made.namespace}},
                "resourceGroups": Said(
                    value=[group],
                    why="every resource that a pod asks for must be covered, or its run is never admitted",
                ),
            }
        },
        about="A run starts when all its pods fit, or not at all.",
    )


@manifest_of.register
def local_queue(made: LocalQueue) -> Manifest:
    """Its manifest."""
    return Manifest(
        kind="LocalQueue",
        meta=made.meta,
        body={"spec": {"clusterQueue": made.cluster_queue}},
        about="Where the namespace hands in its runs.",
    )
