"""What a search leaves: feasible deployments and failures by size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chipwise.catalog import Instance
    from chipwise.decide.deployment import Deployment
    from chipwise.decide.failures import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search found, by size; its collections grow while it runs."""

    deployments: dict[str, list[Deployment]] = field(default_factory=dict)
    failures: dict[str, list[Failure]] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    """Sizes on which some layout holds the model."""
    layouts_tried: list[int] = field(default_factory=list)
    """How many, by call."""

    def fail(self, members: Iterable[Instance], failure: Failure) -> None:
        """One failure for every size of a platform."""
        for member in members:
            self.failures.setdefault(member.name, []).append(failure)

    def add(self, deployment: Deployment) -> None:
        """One feasible deployment of its size."""
        self.deployments.setdefault(deployment.instance.name, []).append(deployment)
