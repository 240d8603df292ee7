"""NodePool: which nodes Karpenter (or EKS Auto Mode) may launch, for how long, and what it may take away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chipwise.deploy.manifest import Manifest, Meta, Said, manifest_of, present


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A label that a node must have one of these values of."""

    key: str
    values: Sequence[str]
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePool:
    """Nodes of one size, bought one way."""

    meta: Meta
    class_group: str
    class_kind: str
    class_name: str
    requirements: Sequence[Requirement]
    taint: str | None
    limits: Mapping[str, str]
    consolidate_after: str
    budgets: Sequence[Mapping[str, Any]]
    budgets_why: str
    expire_after: str
    grace: str
    node_labels: Mapping[str, str] = field(default_factory=dict)
    weight: int | None = None
    """Higher is tried first."""
    replicas: int | None = None
    """A pool of fixed size."""
    about: str = ""


@manifest_of.register
def node_pool(made: NodePool) -> Manifest:
    """Its manifest."""
    return Manifest(
        kind="NodePool",
        meta=made.meta,
        body={
            "spec": present(
                {
                    "weight": made.weight,
                    "replicas": made.replicas,
                    "limits": dict(made.limits),
                    "disruption": {
                        "consolidationPolicy": "WhenEmpty",
                        "consolidateAfter": made.consolidate_after,
                        "budgets": Said(value=[dict(one) for one in made.budgets], why=made.budgets_why),
                    },
                    "template": _template(made),
                }
            )
        },
        about=made.about,
    )


def _template(made: NodePool) -> dict[str, Any]:
    spec = {
        "nodeClassRef": {"group": made.class_group, "kind": made.class_kind, "name": made.class_name},
        "expireAfter": made.expire_after,
        "terminationGracePeriod": made.grace,
        **_tainted(made.taint),
        "requirements": [_requirement(one) for one in made.requirements],
    }
    metadata = {"metadata": {"labels": dict(made.node_labels)}} if made.node_labels else {}
    return {**metadata, "spec": spec}


def _tainted(key: str | None) -> dict[str, Any]:
    if key is None:
        return {}
    taints = [{"key": key, "effect": "NoSchedule"}]
    return {"taints": Said(value=taints, why="keeps pods without accelerators off dear nodes")}


def _requirement(one: Requirement) -> Any:
    made = {"key": one.key, "operator": "In", "values": list(one.values)}
    return Said(value=made, why=one.why) if one.why else made
