"""What a fact is: a value with its unit, its kind and where it was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["measured", "vendor", "api", "derived", "assumed"]
"""What a value rests on.

measured: read on a real device; vendor: the maker says so, even when another quotes it; api: the cloud's own
API; derived: arithmetic on other facts, shown in `where`; assumed: no page that was read says so.
"""

Evidence = Literal["measured", "calibrated", "transferred", "physics"]
"""What stands behind a prediction, strongest first."""

Value = str | float | int | bool

KIND_RANK: Mapping[str, int] = {"measured": 0, "vendor": 1, "api": 1, "derived": 2, "assumed": 3}
"""Lower is stronger. Of two sources that disagree the stronger comes first, unless `why` says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One document, package or log that facts cite by its short key."""

    key: str
    title: str
    locator: str
    read_on: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One value of one thing, as its source prints it.

    >>> Fact(subject="h200-sxm", key="memory", value=144384, unit="MiB", kind="api", source="ec2-api",
    ...      where="GpuInfo", read_on="2026-11-30", why=None, conflicts=()).value
    144384
    """

    subject: str
    key: str
    value: Value
    unit: str | None
    """A key of `UNITS`; None for text and for yes or no."""
    kind: Kind
    source: str
    """A key of the table of sources."""
    where: str
    """Where in the source, or the arithmetic of a derived fact."""
    read_on: str
    """ISO date."""
    why: str | None
    """Why this one and not its conflicts, or what to beware of."""
    conflicts: tuple[Fact, ...]
    """What other sources say instead; they are kept, and none is hidden."""
