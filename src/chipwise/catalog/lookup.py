"""The catalog: every chip, size, price and offering; a name is found exactly, by alias, or refused."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from chipwise.catalog.market import by_instance, read_spot
from chipwise.catalog.types import Alias, Chip, Instance, Offering, Price, Region, SpotHistory, Term
from chipwise.errors import KnowledgeError, UnknownNameError, near_names
from chipwise.facts import Fact, FactTable, Source, facts_of


def fold(name: str) -> str:
    """A name as it is compared: lower case, blanks and underscores as hyphens.

    >>> fold(" RTX PRO_6000 ")
    'rtx-pro-6000'
    """
    return re.sub(r"[\s_]+", "-", name.strip().lower())


@functools.cache
def _spot_by_instance(path: Path) -> Mapping[str, tuple[SpotHistory, ...]]:
    return by_instance(read_spot(path))


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """All that is known of the hardware, its market and where each figure comes from.

    >>> from chipwise.catalog import load_catalog
    >>> catalog = load_catalog()
    >>> catalog.instance("p5.48xlarge").chip, catalog.chip("NVIDIA L4").id
    ('h100-sxm', 'l4')
    """

    folder: Path
    chips: Mapping[str, Chip]
    instances: Mapping[str, Instance]
    regions: Mapping[str, Region]
    prices_by_instance: Mapping[str, tuple[Price, ...]]
    offerings_by_instance: Mapping[str, tuple[Offering, ...]]
    aliases: Mapping[str, Alias]
    """By folded alias."""
    chip_facts: FactTable
    instance_facts: FactTable
    sources: Mapping[str, Source]
    facts_as_of: str
    """The newest date on which a source was read or a price was current, ISO."""

    def chip(self, name: str) -> Chip:
        """The chip of this id or alias.

        Raises:
            KnowledgeError: the name does not settle which chip it is, or no source gives the chip's facts.
            UnknownNameError: no such name; the fix proposes near ones.

        >>> from chipwise.catalog import load_catalog
        >>> load_catalog().chip("A100-40GB").id
        'a100-sxm-40'
        """
        folded = fold(name)
        if folded in self.chips:
            return self.chips[folded]
        alias = self.aliases.get(folded)
        if alias is None:
            raise UnknownNameError("chip", name, self.chips, listing="see chipwise catalog list")
        chip = self.chips.get(alias.chip or "")
        if chip is None:
            raise self._no_facts(name, alias)
        return chip

    def _no_facts(self, name: str, alias: Alias) -> KnowledgeError:
        near = [chip for chip in self.chips if chip.startswith(fold(name))]
        near = near or near_names(alias.chip or name, self.chips)
        hint = f"name one of {', '.join(near)}" if near else "name a chip of chipwise catalog list"
        if alias.chip is None:
            return KnowledgeError(f"{name!r} does not say which chip it is", why=alias.note, fix=hint)
        return KnowledgeError(f"no facts about the chip {alias.chip!r}", why=alias.note, fix=hint)

    def instance(self, name: str) -> Instance:
        """The size of this name.

        Raises:
            UnknownNameError: no such size; the fix proposes near ones, or the sizes of the named family.

        >>> from chipwise.catalog import load_catalog
        >>> load_catalog().instance("g6e.48xlarge").chips
        8
        """
        folded = fold(name)
        if folded in self.instances:
            return self.instances[folded]
        family = [size.name for size in self.instances.values() if size.family == folded.partition(".")[0]]
        listing = f"name a size: {', '.join(family)}" if family else "see chipwise catalog list"
        raise UnknownNameError("instance", name, self.instances, listing=listing)

    def prices(
        self,
        instance: str,
        *,
        term: Term | None = None,
        regions: Collection[str] | None = None,
        historical: bool = False,
    ) -> tuple[Price, ...]:
        """The printed prices of a size, also those that state that there is none (`usd_per_hour` None).

        With `regions`, only rows that name one of them: a price without a recorded region is in none.

        >>> from chipwise.catalog import load_catalog
        >>> load_catalog().prices("p5.48xlarge", term="on-demand", regions=["us-east-1"])[0].usd_per_hour
        55.04
        """
        return tuple(
            price
            for price in self.prices_by_instance.get(instance, ())
            if (term is None or price.term == term)
            and (regions is None or price.region in regions)
            and (historical or not price.historical)
        )

    def offerings(self, instance: str) -> tuple[Offering, ...]:
        """Where a size is offered, with zones and the evidence for it."""
        return self.offerings_by_instance.get(instance, ())

    def regions_of(self, instance: str, *, priced: bool = False) -> tuple[str, ...]:
        """The regions where EC2 lists the size; `priced` adds those where only a price list names it.

        >>> from chipwise.catalog import load_catalog
        >>> load_catalog().regions_of("trn2u.48xlarge")
        ('ap-south-2',)
        """
        return tuple(offering.region for offering in self.offerings(instance) if priced or offering.evidence == "api")

    def spot_history(self, instance: str) -> tuple[SpotHistory, ...]:
        """What Spot Advisor printed of a size, by region; empty where it printed nothing."""
        return _spot_by_instance(self.folder / "spot.csv").get(instance, ())

    def facts_of(self, name: str) -> tuple[Fact, ...]:
        """Every fact of a size or a chip with its source and its conflicts.

        Raises:
            UnknownNameError: neither a size nor a chip.
        """
        folded = fold(name)
        if folded in self.instances:
            return facts_of(self.instance_facts, folded)
        return facts_of(self.chip_facts, self.chip(name).id)
