"""PodDisruptionBudget: how many pods a drain may take at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.deploy.manifest import Manifest, Meta, manifest_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDisruptionBudget:
    """At most `unavailable` of the selected pods are down by choice."""

    meta: Meta
    selector: Mapping[str, str]
    unavailable: int = 1


@manifest_of.register
def pod_disruption_budget(made: PodDisruptionBudget) -> Manifest:
    """Its manifest."""
    return Manifest(
        kind="PodDisruptionBudget",
        meta=made.meta,
        body={"spec": {"maxUnavailable": made.unavailable, "selector": {"matchLabels": dict(made.selector)}}},
        about="A drain takes one replica at a time; with minAvailable instead, the last one would never go.",
    )
