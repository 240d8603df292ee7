"""Why a question about Regions has no option: what they offer, and where the sizes that hold the model are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chipwise.catalog import Catalog
    from chipwise.decide import Advice

SHOWN = 4


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
