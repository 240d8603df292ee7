"""Replicas onto instances: nobody rents two eighths of a p5, so idle chips are paid for and shown."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """How one unit of purchase is filled: `instances_per_unit` instances hold `replicas_per_unit` replicas."""

    replicas_per_unit: int
    instances_per_unit: int
    idle_devices_per_unit: int


@lru_cache(maxsize=4096)
def pack(*, devices_per_replica: int, devices_per_instance: int, most_replicas: int | None = None) -> Packing:
    """The smallest set of whole instances that holds whole replicas.

    A replica that fits one instance shares it with as many others as fit, or as `most_replicas` allows; one that
    does not takes whole instances.

    >>> pack(devices_per_replica=4, devices_per_instance=8)
    Packing(replicas_per_unit=2, instances_per_unit=1, idle_devices_per_unit=0)
    >>> pack(devices_per_replica=16, devices_per_instance=8)
    Packing(replicas_per_unit=1, instances_per_unit=2, idle_devices_per_unit=0)
    >>> pack(devices_per_replica=8, devices_per_instance=12)
    Packing(replicas_per_unit=1, instances_per_unit=1, idle_devices_per_unit=4)
    >>> pack(devices_per_replica=1, devices_per_instance=56, most_replicas=7)
    Packing(replicas_per_unit=7, instances_per_unit=1, idle_devices_per_unit=49)
    """
    if devices_per_replica <= devices_per_instance:
        replicas = devices_per_instance // devices_per_replica
        replicas = replicas if most_replicas is None else min(replicas, most_replicas)
        idle = devices_per_instance - replicas * devices_per_replica
        return Packing(replicas_per_unit=replicas, instances_per_unit=1, idle_devices_per_unit=idle)
    instances = -(-devices_per_replica // devices_per_instance)
    idle = instances * devices_per_instance - devices_per_replica
    return Packing(replicas_per_unit=1, instances_per_unit=instances, idle_devices_per_unit=idle)
