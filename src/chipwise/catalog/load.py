"""Reads the tables of a folder into one `Catalog`."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from pathlib import Path

from chipwise.catalog.hardware import build_chip, build_instance, read_mig
from chipwise.catalog.lookup import Catalog, fold
from chipwise.catalog.market import by_instance, read_aliases, read_offerings, read_prices, read_regions
from chipwise.catalog.types import Chip, Price
from chipwise.facts import FactTable, Source, Value, read_facts, read_sources, values_of

DATA = Path(__file__).parent / "data"


@functools.cache
def load_catalog() -> Catalog:
    """The catalog that chipwise ships, read once.

    >>> load_catalog().chip("trainium2").cores
    4
    """
    return read_catalog(DATA)


def read_catalog(folder: Path) -> Catalog:
    """The catalog of the tables in a folder.

    Raises:
        KnowledgeError: a table is missing or broken; names file and line.
    """
    sources = read_sources(folder / "sources.csv")
    chip_facts = read_facts(folder / "chips.csv", sources)
    instance_facts = read_facts(folder / "instances.csv", sources)
    sizes = {name: values_of(instance_facts, name) for name in instance_facts.rows}
    chips = _chips(chip_facts, sizes, folder)
    prices = read_prices(folder / "prices.csv", sources)
    return Catalog(
        folder=folder,
        chips=chips,
        instances={name: build_instance(name, values, chips) for name, values in sizes.items()},
        regions=read_regions(folder / "regions.csv"),
        prices_by_instance=by_instance(prices),
        offerings_by_instance=by_instance(read_offerings(folder / "offerings.csv")),
        aliases={fold(alias.alias): alias for alias in read_aliases(folder / "aliases.csv")},
        chip_facts=chip_facts,
        instance_facts=instance_facts,
        sources=sources,
        facts_as_of=_newest(sources.values(), prices),
    )


def _chips(table: FactTable, sizes: Mapping[str, Mapping[str, Value]], folder: Path) -> dict[str, Chip]:
    mig = read_mig(folder / "mig.csv")
    families: dict[str, dict[str, None]] = {}
    for values in sizes.values():
        families.setdefault(str(values.get("chip")), {})[str(values.get("family"))] = None
    return {
        chip_id: build_chip(
            chip_id,
            values_of(table, chip_id),
            families=tuple(families.get(chip_id, ())),
            mig_rows=mig.get(chip_id, ()),
        )
        for chip_id in table.rows
    }


def _newest(sources: Iterable[Source], prices: Iterable[Price]) -> str:
    read = [source.read_on for source in sources]
    return max(read + [price.as_of for price in prices if price.as_of])
