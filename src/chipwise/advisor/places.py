"""The Regions of a question: how the guide weighs them, and why those named leave no option."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.guide import region_advice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chipwise.catalog import Catalog
    from chipwise.decide import Advice, Option

SHOWN = 4


def weighed(regions: tuple[str, ...], advice: Advice, catalog: Catalog) -> Advice:
    """Every option with the named Regions weighed: offered there, then near the users.

    Naming Regions says two things: data stays in their geographies, and the users are in the first one's.
    """
    if not regions:
        return advice
    places = {name: catalog.regions[name].geography for name in regions}
    return replace(advice, options=tuple(_weighed(places, option, catalog) for option in advice.options))


def _weighed(places: dict[str, str], option: Option, catalog: Catalog) -> Option:
    offered = catalog.regions_of(option.instance, priced=True)
    found = region_advice(places, offered=offered, users=next(iter(places.values())))
    ranked = tuple(one.region for one in found if one.region in option.regions)
    return replace(option, regions=ranked, region_advice=found)


def region_warnings(regions: tuple[str, ...], advice: Advice, catalog: Catalog) -> Iterator[str]:
    """What the named Regions offer, where that is why there is no option; nothing where no Region was named."""
    if advice.options or not regions:
        return
    elsewhere = [row.instance for row in advice.rejected if row.rule == "region"]
    offered = ", ".join(_families(catalog, set(regions))) or "none"
    yield f"{', '.join(regions[:SHOWN])}: accelerated families offered there: {offered}"
    if elsewhere:
        shown = "; ".join(f"{name} in {', '.join(_regions(catalog, name))}" for name in elsewhere[:SHOWN])
        yield f"{len(elsewhere)} sizes hold the model and are offered in other Regions only: {shown}"


def _families(catalog: Catalog, regions: set[str]) -> list[str]:
    sizes = (one for one in catalog.instances.values() if one.chip is not None and one.status == "current")
    return sorted({one.family for one in sizes if regions & set(catalog.regions_of(one.name, priced=True))})


def _regions(catalog: Catalog, name: str) -> list[str]:
    return list(catalog.regions_of(name, priced=True))[:2]
