"""Where a size can be had, and under which terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.errors import UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from chipwise.catalog import Instance, Region

COMMITMENTS = ("savings-plan", "reserved")
"""Ways to buy that commit to on-demand use."""


def known_regions(regions: Mapping[str, Region], asked: Sequence[str]) -> tuple[str, ...]:
    """The regions a question is about: names, or a geography such as `us` for all its commercial regions.

    Nothing asked means every commercial region. Local Zones, GovCloud and China are asked for by name only.

    Raises:
        UnknownNameError: a name that is neither a region nor a geography.
    """
    commercial = [region for region in regions.values() if region.kind == "commercial"]
    if not asked:
        return tuple(sorted(region.name for region in commercial))
    geographies = {region.geography for region in commercial}
    found: list[str] = []
    for name in asked:
        if name in regions:
            found.append(name)
        elif name in geographies:
            found += sorted(region.name for region in commercial if region.geography == name)
        else:
            raise UnknownNameError("region", name, [*regions, *geographies], listing="chipwise catalog list regions")
    return tuple(dict.fromkeys(found))


def offered_regions(offered: Iterable[str], asked: Sequence[str]) -> tuple[str, ...]:
    """The regions asked for that offer the size, in the order asked.

    >>> offered_regions(["us-east-1", "eu-west-1"], ["us-west-2", "us-east-1"])
    ('us-east-1',)
    """
    here = set(offered)
    return tuple(region for region in asked if region in here)


def buyable_terms(instance: Instance, purchase: str, *, interruptible: bool) -> tuple[str, ...]:
    """The purchase terms to price, the preferred first; empty where the size is not sold that way.

    `any` takes on-demand, then Capacity Block; Spot comes last where the work may be interrupted, and not at all
    where it may not. A Savings Plan or a reservation is a commitment to on-demand use: whatever is sold on-demand is
    sold so, at rates that no public table lists.
    """
    if purchase in COMMITMENTS:
        return (purchase,) if "on-demand" in instance.usage_classes else ()
    order = ["on-demand", "capacity-block", *(["spot"] if interruptible else [])]
    wanted = order if purchase == "any" else [purchase]
    return tuple(term for term in wanted if term in instance.usage_classes)
