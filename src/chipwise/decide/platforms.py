"""Sizes that are alike to a model share one platform: same chip, same devices, same links. Work is per platform."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from chipwise.catalog import Chip, Instance


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """A chip as a node of `devices` gives it. `members` are the sizes that share it; none where only a chip is asked.

    `fraction` is the share of one chip that a device is on fractional sizes, 1 elsewhere.
    """

    chip: Chip
    devices: int
    fraction: float
    device_memory_bytes: float
    members: tuple[Instance, ...]

    @property
    def sample(self) -> Instance | None:
        """The size that stands for all; None where only a chip is asked."""
        return self.members[0] if self.members else None

    @property
    def networked(self) -> bool:
        """Whether a replica may span several of its instances: it has EFA."""
        return self.sample is not None and bool(self.sample.efa_bytes_per_s)


def _key(instance: Instance) -> tuple[object, ...]:
    return (instance.chip, instance.chip_fraction, instance.devices, instance.link, instance.efa_bytes_per_s)


def platform_of(members: tuple[Instance, ...], chip: Chip) -> Platform:
    """The platform of sizes that are alike.

    A device of a whole chip has what the driver reports over its cores, a fraction what the API says of the fraction.
    """
    sample = members[0]
    whole = chip.memory_bytes or 0
    memory = whole / chip.cores
    if sample.chip_fraction < 1.0:
        memory = float(sample.accelerator_memory_bytes or whole * sample.chip_fraction)
    return Platform(
        chip=chip,
        devices=sample.devices or 1,
        fraction=sample.chip_fraction,
        device_memory_bytes=memory,
        members=members,
    )


def chip_platform(chip: Chip, devices: int) -> Platform:
    """A chip alone, `devices` of them joined by its own link."""
    memory = (chip.memory_bytes or 0) / chip.cores
    return Platform(chip=chip, devices=devices, fraction=1.0, device_memory_bytes=memory, members=())


def platforms_of(instances: Iterable[Instance], chips: Mapping[str, Chip]) -> list[Platform]:
    """Group sizes that differ in nothing the model sees, in the order of their first member."""
    groups: dict[tuple[object, ...], list[Instance]] = {}
    for instance in instances:
        groups.setdefault(_key(instance), []).append(instance)
    return [platform_of(tuple(members), chips[members[0].chip or ""]) for members in groups.values()]
