"""NodePools, which Karpenter and EKS Auto Mode share: one a size, the preferred one with the highest weight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from chipwise.deploy import marks
from chipwise.deploy.asked.parameters import Parameters
from chipwise.deploy.facts import number
from chipwise.deploy.kinds.node_pool import NodePool, Requirement
from chipwise.deploy.nodes.capacity import Capacity, pool_name
from chipwise.deploy.nodes.node import Node

_CAPACITY_TYPES = {
    "on-demand": "on-demand",
    "spot": "spot",
    "reserved": "reserved",
    "capacity-block": "reserved",
}
_RESERVATIONS = {"reserved": "default", "capacity-block": "capacity-block"}
_NEVER = "Never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Class:
    """Which node class the pools use, and under which domain its labels stand."""

    group: str
    kind: str
    name: str
    domain: str
    longest_life_s: float | None = None


def pools(capacity: Capacity, parameters: Parameters, of: Class) -> list[object]:
    """The pool of the planned size, then one for every size that stands in for it."""
    weight, step = int(number("capacity", "first_weight")), int(number("capacity", "weight_step"))
    made: list[object] = []
    for place, node in enumerate((capacity.node, *capacity.fallbacks)):
        ranked = weight - step * place if capacity.fallbacks else None
        made.append(_pool(capacity, parameters, of, node, ranked))
    return made


def _pool(capacity: Capacity, parameters: Parameters, of: Class, node: Node, weight: int | None) -> NodePool:
    first = node is capacity.node
    return NodePool(
        meta=marks.own_meta(capacity.name, called=pool_name(capacity, node)),
        class_group=of.group,
        class_kind=of.kind,
        class_name=of.name,
        requirements=tuple(_requirements(capacity, parameters, of, node)),
        taint=capacity.taint,
        limits=_limits(capacity, node),
        consolidate_after=_duration(number("capacity", "consolidate_after")),
        budgets=_budgets(capacity)[0],
        budgets_why=_budgets(capacity)[1],
        expire_after=_life(capacity, of),
        grace=_duration(number("capacity", "grace")),
        node_labels=dict(capacity.labels),
        weight=weight,
        replicas=capacity.nodes if capacity.static else None,
        about=_about(capacity, node, first=first),
    )


def _requirements(capacity: Capacity, parameters: Parameters, of: Class, node: Node) -> Iterator[Requirement]:
    yield Requirement(key="node.kubernetes.io/instance-type", values=(node.instance,))
    yield Requirement(key="karpenter.sh/capacity-type", values=(_CAPACITY_TYPES[capacity.purchase],))
    if capacity.purchase in _RESERVATIONS:
        key = f"{of.domain}/capacity-reservation-type"
        yield Requirement(key=key, values=(_RESERVATIONS[capacity.purchase],))
    yield Requirement(key="kubernetes.io/arch", values=(node.arch,))
    if parameters.zone:
        yield Requirement(key="topology.kubernetes.io/zone", values=(parameters.zone,))


def _limits(capacity: Capacity, node: Node) -> dict[str, str]:
    if capacity.static:
        return {"nodes": str(capacity.most_nodes)}
    return capacity.limit(node)


def _budgets(capacity: Capacity) -> tuple[tuple[Mapping[str, Any], ...], str]:
    if capacity.training:
        held = {"nodes": "0", "reasons": ["Drifted", "Underutilized"]}
        return ({"nodes": "1"}, held), "a run is not moved for the sake of a newer or cheaper node"
    return ({"nodes": "1"},), "one node at a time: its replicas must load elsewhere first"


def _life(capacity: Capacity, of: Class) -> str:
    """Serving nodes are renewed; those that train or are reserved stay, as long as the provisioner lets them."""
    if of.longest_life_s is not None:
        return _duration(of.longest_life_s)
    stays = capacity.training or capacity.purchase in _RESERVATIONS
    return _NEVER if stays else _duration(number("capacity", "life"))


def _duration(seconds: float) -> str:
    """Seconds as Karpenter writes them.

    >>> _duration(600), _duration(2592000)
    ('10m', '720h')
    """
    return f"{round(seconds / 3600)}h" if seconds >= 3600 else f"{round(seconds / 60)}m"


def _about(capacity: Capacity, node: Node, *, first: bool) -> str:
    if first:
        return (
            f"{marks.several(capacity.nodes, 'node')} of {node.instance} as planned, bought {capacity.purchase}, "
            f"{capacity.most_nodes} at most."
        )
    return f"Stands in where no {capacity.node.instance} is to be had: the same pods run on {node.instance}."
