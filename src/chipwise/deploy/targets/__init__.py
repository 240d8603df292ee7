"""Takes a `Capacity`; gives the objects by which one provisioner launches its nodes. Read `karpenter.py` first."""

from __future__ import annotations

from collections.abc import Callable

from chipwise.deploy.capacity import Capacity
from chipwise.deploy.kinds.cluster_config import ClusterConfig
from chipwise.deploy.parameters import Parameters, Target
from chipwise.deploy.targets.auto_mode import auto_mode
from chipwise.deploy.targets.eksctl import eksctl
from chipwise.deploy.targets.karpenter import karpenter

Launched = tuple[list[object], tuple[str, ...]]
"""The objects, and what a reader must be told."""


def merged(objects: list[object]) -> list[object]:
    """The same objects with the node groups of one cluster in one file, which is how eksctl takes them."""
    configs = [one for one in objects if isinstance(one, ClusterConfig)]
    if len(configs) < 2:
        return objects
    groups = [group for config in configs for group in config.groups]
    return [ClusterConfig(meta=configs[0].meta, groups=groups)]


TARGETS: dict[Target, Callable[[Capacity, Parameters], Launched]] = {
    "karpenter": karpenter,
    "auto-mode": auto_mode,
    "eksctl": eksctl,
}
