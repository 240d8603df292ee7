"""What every autoscaler holds: the workload it scales, and between how many replicas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chipwise.deploy.manifest import Meta


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """Between `least` and `most` replicas of the workload of the same name."""

    meta: Meta
    target_kind: str
    target_api_version: str
    least: int
    most: int
    cooldown_s: int

    @property
    def target(self) -> dict[str, Any]:
        """The reference to the workload."""
        return {"apiVersion": self.target_api_version, "kind": self.target_kind, "name": self.meta.name}
