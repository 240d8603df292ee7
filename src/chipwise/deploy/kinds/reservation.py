"""Which Capacity Reservations a node class may use: by id, or by tags and owner. Node classes embed it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chipwise.deploy.manifest import present


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """By id where one is given, else by tags; `owner` is the account that shares it."""

    id: str | None
    tags: Mapping[str, str]
    owner: str | None


def selector_terms(reservation: Reservation, *, owner_key: str) -> list[dict[str, Any]]:
    """The one term. Karpenter calls the owner `ownerID`, EKS Auto Mode `owner`."""
    if reservation.id:
        return [{"id": reservation.id}]
    return [present({"tags": dict(reservation.tags), owner_key: reservation.owner})]
