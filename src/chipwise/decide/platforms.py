"""Sizes that are alike to a model share one platform: same chip, same devices, same links. Work is per platform.

A platform whose GPUs are cut into MIG slices is another one of the same sizes: its devices are the slices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from chipwise.catalog import Chip, Instance, MigProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """A chip as a node of `devices` gives it. `members` are the sizes that share it; none where only a chip is asked.

    `fraction` is the share of one chip's compute that a device is on fractional sizes and in slices, 1 elsewhere;
    `bandwidth_fraction` that of its memory bandwidth. `profile` is the MIG profile that every chip is cut by.
    """

    chip: Chip
    devices: int
    fraction: float
    bandwidth_fraction: float
    device_memory_bytes: float
    members: tuple[Instance, ...]
    profile: MigProfile | None = None

    def __hash__(self) -> int:
        """By a few names: quick, as platforms are keys of what is remembered of them."""
        return hash((self.chip.id, self.devices, self.fraction, self.members and self.members[0].name, self.profile))

    @property
    def sample(self) -> Instance | None:
        """The size that stands for all; None where only a chip is asked."""
        return self.members[0] if self.members else None

    @property
    def networked(self) -> bool:
        """Whether a replica may span several of its instances: it has EFA, and its devices are no slices."""
        return self.profile is None and self.sample is not None and bool(self.sample.efa_bytes_per_s)

    @property
    def devices_per_chip(self) -> int:
        """Devices that one chip is: its logical cores, or its slices."""
        return self.chip.cores if self.profile is None else self.profile.count or 1

    @property
    def most_tp(self) -> int:
        """The widest tensor parallelism inside a node; a slice has no link to another slice."""
        return self.devices if self.profile is None else 1

    def chips_of(self, devices: float) -> int:
        """Chips that so many devices stand on, the last one perhaps in part."""
        return math.ceil(devices / self.devices_per_chip)


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
        bandwidth_fraction=sample.chip_fraction,
        device_memory_bytes=memory,
        members=members,
    )


def chip_platform(chip: Chip, devices: int) -> Platform:
    """A chip alone, `devices` of them joined by its own link."""
    memory = (chip.memory_bytes or 0) / chip.cores
    return Platform(
        chip=chip, devices=devices, fraction=1.0, bandwidth_fraction=1.0, device_memory_bytes=memory, members=()
    )


def platforms_of(instances: Iterable[Instance], chips: Mapping[str, Chip]) -> list[Platform]:
    """Group sizes that differ in nothing the model sees, in the order of their first member."""
    groups: dict[tuple[object, ...], list[Instance]] = {}
    for instance in instances:
        groups.setdefault(_key(instance), []).append(instance)
    return [platform_of(tuple(members), chips[members[0].chip or ""]) for members in groups.values()]


def sliced(platform: Platform, profile: MigProfile) -> Platform:
    """The platform with every chip cut into slices of one profile, each with its share of compute and memory.

    >>> from chipwise.catalog import load_catalog
    >>> catalog = load_catalog()
    >>> whole = platform_of((catalog.instance("p4d.24xlarge"),), catalog.chip("a100-sxm-40"))
    >>> smallest = slices_of(whole)[0]
    >>> smallest.profile.name, smallest.devices, smallest.devices_per_chip, smallest.chips_of(8)
    ('1g.5gb', 56, 7, 2)
    """
    memory = profile.memory_bytes or platform.device_memory_bytes * profile.memory_fraction
    return replace(
        platform,
        devices=platform.devices * (profile.count or 1),
        fraction=profile.compute_fraction,
        bandwidth_fraction=profile.bandwidth_fraction,
        device_memory_bytes=float(memory),
        profile=profile,
    )


def slices_of(platform: Platform) -> list[Platform]:
    """The platform cut by each MIG profile of its chip that is worth renting slices of, smallest first.

    Left out are the whole GPU, a profile whose count no source gives, and one of which another gives at least as
    much memory and compute more often.
    """
    if platform.fraction < 1.0 or platform.chip.memory_bytes is None:
        return []
    known = [one for one in platform.chip.mig_profiles if one.count and one.memory_fraction < 1.0]
    worth = [one for one in known if not any(_serves_better(other, one) for other in known)]
    worth.sort(key=lambda one: (one.memory_fraction, one.compute_fraction))
    return [sliced(platform, one) for one in worth]


def _serves_better(first: MigProfile, second: MigProfile) -> bool:
    holds = first.memory_fraction >= second.memory_fraction and first.compute_fraction >= second.compute_fraction
    return holds and (first.count or 0) > (second.count or 0)


def with_slices(platforms: Iterable[Platform]) -> list[Platform]:
    """Every platform after its cuts into MIG slices."""
    return [part for one in platforms for part in (*slices_of(one), one)]
