"""Sharing one GPU: the technique that gives the isolation asked for, and the slice that holds the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.guide.tables import cite, table

if TYPE_CHECKING:
    from chipwise.catalog import MigProfile

_BY_MIG = frozenset({"memory", "hardware"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Technique:
    """One way to share a GPU."""

    technique: str
    isolation: str
    memory_isolated: str
    karpenter: str
    auto_mode: str
    kubernetes: str
    config: str
    best_for: str
    caution: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingAdvice:
    """How to share: `technique` None where this GPU cannot be shared so; `tenants` is how many fit."""

    technique: str | None
    profile: str | None
    tenants: int | None
    isolation: str
    why: str
    config: str
    source: str


def techniques() -> tuple[Technique, ...]:
    """Every technique of the guide, with what is right about it today.

    >>> [one.technique for one in techniques()]
    ['mig', 'fractional', 'time-slicing', 'mps', 'dra']
    """
    names = Technique.__dataclass_fields__.keys() - {"source"}
    return tuple(
        Technique(**{name: row[name] for name in names}, source=cite(row["where"])) for row in table("sharing")
    )


def sharing_advice(*, isolation: str, memory_bytes: float, profiles: Sequence[MigProfile]) -> SharingAdvice:
    """How tenants that need `memory_bytes` each share one GPU.

    Without isolation they take turns (time-slicing). Isolation of memory or hardware is MIG: the smallest profile
    that holds the memory, and where several hold the same, the one that fits most often.

    Args:
        isolation: none, memory or hardware.
        memory_bytes: what one tenant needs, weights and cache and all.
        profiles: the GPU's MIG profiles; empty where it has no MIG.

    >>> sharing_advice(isolation="none", memory_bytes=8e9, profiles=()).technique
    'time-slicing'
    >>> sharing_advice(isolation="hardware", memory_bytes=8e9, profiles=()).technique is None
    True
    """
    if isolation not in _BY_MIG:
        return _advice("time-slicing", isolation, why="no isolation is asked for: pods may take turns")
    fitting = [one for one in profiles if one.memory_bytes is not None and one.memory_bytes >= memory_bytes]
    if not fitting:
        why = "no MIG profile holds it" if profiles else "this GPU has no MIG: rent a smaller size for each tenant"
        return _advice(None, isolation, why=why)
    best = min(fitting, key=lambda one: (one.memory_bytes or 0, -(one.count or 0), one.name))
    why = f"{best.name} is the smallest slice that holds {memory_bytes / 1e9:.1f} GB"
    return _advice("mig", isolation, why=why, profile=best)


def slice_advice(*, isolation: str, profile: MigProfile | None, why: str) -> SharingAdvice:
    """What is said of tenants on slices of a profile that was chosen already; None: of a whole GPU each."""
    return _advice("mig" if profile else None, isolation, why=why, profile=profile)


def fraction_advice(*, isolation: str) -> SharingAdvice:
    """What is said of a size that is a fraction of a GPU: AWS rents the other fractions to others.

    >>> fraction_advice(isolation="hardware").technique
    'fractional'
    """
    return _advice("fractional", isolation, why="the size is a fraction of a GPU of its own")


def _advice(technique: str | None, isolation: str, *, why: str, profile: MigProfile | None = None) -> SharingAdvice:
    row = next((one for one in techniques() if one.technique == (technique or "mig")), techniques()[0])
    return SharingAdvice(
        technique=technique,
        profile=profile.name if profile else None,
        tenants=profile.count if profile else None,
        isolation=row.isolation if technique else isolation,
        why=f"{why}; {row.caution}" if technique else why,
        config=row.config if technique else "",
        source=row.source,
    )
