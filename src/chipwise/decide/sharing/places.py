"""Kinds of places for one replica of one tenant: whole devices, a MIG slice, a turn on a device that others share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from chipwise.decide.infrastructure import BY_MIG
from chipwise.decide.platforms import slices_of
from chipwise.decide.serving.splits import powers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from chipwise.decide.platforms import Platform

Kind = Literal["whole", "slice", "turn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One kind of place on a platform. `platform` is cut down to the devices of one replica, and to its share.

    `sharers` tenants take turns on the device: while all are busy each has that share of its time.
    """

    base: int
    """Which of the platforms tried."""
    kind: Kind
    platform: Platform
    devices: int
    """Devices of an instance that one replica takes: a slice or a turn is on one, isolated cores take whole chips."""
    sharers: int = 1


def places_of(platforms: Sequence[Platform], *, tenants: int, isolation: str) -> list[Place]:
    """Every kind of place of every platform that gives the isolation asked for.

    Turns isolate nothing; slices, fractions rented as sizes and whole chips isolate memory and compute. No page that
    was read says that cores of one chip isolate their memory.

    Args:
        platforms: whole ones.
        tenants: how many models there are.
        isolation: none, memory or hardware.
    """
    return [
        place
        for base, platform in enumerate(platforms)
        for place in _of_platform(base, platform, tenants, isolated=isolation in BY_MIG)
    ]


def _of_platform(base: int, platform: Platform, tenants: int, *, isolated: bool) -> Iterator[Place]:
    together = platform.chip.cores if isolated else 1
    for devices in powers(platform.devices):
        taken = -(-devices // together) * together
        yield Place(base=base, kind="whole", platform=replace(platform, devices=devices), devices=taken)
    for cut in slices_of(platform):
        yield Place(base=base, kind="slice", platform=replace(cut, devices=1), devices=1)
    if isolated or platform.fraction < 1.0 or platform.chip.vendor != "nvidia":
        return
    for turns in range(2, tenants + 1):
        part = replace(platform, devices=1, fraction=1.0 / turns, bandwidth_fraction=1.0 / turns)
        yield Place(base=base, kind="turn", platform=part, devices=1, sharers=turns)
