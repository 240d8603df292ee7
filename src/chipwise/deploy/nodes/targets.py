"""Who launches the nodes of a `Capacity`: Karpenter, EKS Auto Mode or eksctl."""

from __future__ import annotations

from collections.abc import Callable

from chipwise.deploy.asked.parameters import Parameters, Target
from chipwise.deploy.kinds.cluster_config import ClusterConfig
from chipwise.deploy.nodes.auto_mode import auto_mode
from chipwise.deploy.nodes.capacity import Capacity
from chipwise.deploy.nodes.eksctl import eksctl
from chipwise.deploy.nodes.karpenter import karpenter

Launched = tuple[list[object], tuple[str, ...]]
"""The objects, and what a reader must be told."""


def merged(objects: list[object]) -> list[object]:
    """The same objects with the node groups of one cluster in one file, which is how eksctl takes them."""
    configs = [one for one in objects if isinstance(one, ClusterConfig)]
    if len(configs) < 2:
        return objects
    groups = [group for config in configs for group in config.groups]
    return [ClusterConfig(meta=configs[0].meta, groups=groups)]


LAUNCHERS: dict[Target, Callable[[Capacity, Parameters], Launched]] = {
    "karpenter": karpenter,
    "auto-mode": auto_mode,
    "eksctl": eksctl,
}
