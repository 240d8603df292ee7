"""Why a tried size is not feasible: the check it got furthest past, with the number it lacked and what came nearest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chipwise.catalog import Instance
    from chipwise.decide.advice import NotJudged, Rejected

STAGES = ("engine", "support", "custom-kernels", "precision", "facts", "split", "memory", "slo")
"""Checks in their order; a later one failed means that more had been passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a platform cannot be asked at one precision; `known` False says that we lack the knowledge instead."""

    rule: str
    reason: str
    source: str
    change: str
    known: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One layout's failure on a platform; of two at one stage the smaller `distance` came nearer."""

    stage: str
    distance: float
    reason: str
    source: str
    change: str
    shortfall: dict[str, float | str] | None = None
    nearest: dict[str, Any] | None = None
    known: bool = True

    @property
    def rank(self) -> tuple[int, float]:
        """Further along first, then nearer."""
        return -STAGES.index(self.stage), self.distance


def refusal_failure(refusal: Refusal) -> Failure:
    """A refusal before any layout."""
    return Failure(
        stage=refusal.rule, distance=0.0, reason=refusal.reason, source=refusal.source, change=refusal.change,
        known=refusal.known,
    )  # fmt: skip


def verdict(instance: Instance, failures: Sequence[Failure]) -> Rejected | NotJudged:
    """The failure that got furthest, as a rejection; what we do not know, as not judged."""
    from chipwise.decide.advice import NotJudged, Rejected  # late: a door that refuses one layout needs no Advice

    if not failures:
        return Rejected(
            instance=instance.name, rule="split", reason="no legal split of the model fits a node of it",
            shortfall=None, nearest={}, change="a size with another number of chips", source="parallelism",
        )  # fmt: skip
    best = min(failures, key=lambda failure: failure.rank)
    if not best.known:
        return NotJudged(instance=instance.name, lacks=best.reason)
    return Rejected(
        instance=instance.name,
        rule=best.stage,
        reason=best.reason,
        shortfall=best.shortfall,
        nearest=best.nearest or {},
        change=best.change,
        source=best.source,
    )
