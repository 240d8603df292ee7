"""What an availability target asks of a deployment: how many times the load's own instances, in how many zones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from chipwise.errors import InputError
from chipwise.facts import read_rows

DATA = Path(__file__).parent / "data"
COLUMNS = ("key", "value", "unit", "kind", "source", "where", "read_on")


@dataclass(frozen=True, slots=True, kw_only=True)
class Redundancy:
    """`ha_factor` times the instances that carry the load, spread over `zones` Availability Zones."""

    ha_factor: float
    zones: int
    source: str


@cache
def _rows() -> dict[str, tuple[float, str]]:
    rows = read_rows(DATA / "redundancy.csv", COLUMNS)
    return {row[0]: (float(row[1]), f"{row[4]} {row[5]}") for _, row in rows}


def redundancy_for(availability: float) -> Redundancy:
    """What the guide rents where availability is asked for: twice what carries the load, a half in each of two zones.

    No source gives the availability of one instance, so no target follows from counting failures: every target
    above 0 takes the same headroom, and one of 1 cannot be promised.

    Args:
        availability: share of the time that the service answers, between 0 and 1.

    Raises:
        InputError: 0, 1 or beyond.

    >>> redundancy_for(0.999).ha_factor
    2.0
    """
    if not 0.0 < availability < 1.0:
        raise InputError(
            f"--availability {availability:g} cannot be asked for",
            why="no deployment answers always, and one that never does needs nothing",
            fix="give a share below 1, such as 99.9%",
        )
    factor, source = _rows()["ha_factor"]
    zones, _ = _rows()["zones"]
    return Redundancy(ha_factor=factor, zones=int(zones), source=source)
