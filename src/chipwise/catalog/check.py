"""Proves that the catalog is whole, plausible and free of the known errors of its sources.

The bounds and the expected ratios between formats are data (`plausible.csv`, `ratios.csv`). A figure that
breaks a ratio passes when its fact says why: an exception is a documented fact, never a name in this file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from chipwise.catalog.fields import real, whole
from chipwise.catalog.lookup import Catalog
from chipwise.catalog.types import Chip, Instance, Price
from chipwise.errors import KnowledgeError
from chipwise.facts import Fact, FactTable, base_value, facts_of, read_rows, values_of
from chipwise.facts.measure import to_base
from chipwise.facts.provenance import find_defects

BOUND_COLUMNS = ("quantity", "low", "high", "unit", "why")
RATIO_COLUMNS = ("format", "of", "ratio", "tolerance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong, or that deserves a look."""

    severity: Literal["error", "warning"]
    subject: str
    rule: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """`format` runs at `ratio` times the dense rate of `of`, within `tolerance` (a fraction)."""

    format: str
    of: str
    ratio: float
    tolerance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The bounds and ratios that the tables must keep."""

    bounds: Mapping[str, tuple[float, float]]
    """Lowest and highest plausible value by quantity, in base units."""
    ratios: tuple[Ratio, ...]

    def outside(self, quantity: str, value: float | None) -> bool:
        """Whether a known value lies outside the plausible range of its quantity."""
        low, high = self.bounds[quantity]
        return value is not None and not low <= value <= high


def read_rules(folder: Path) -> Rules:
    """The rules of a folder of tables.

    Raises:
        KnowledgeError: a table is missing or broken.
    """
    bounds = {}
    try:
        for _, (quantity, low, high, unit, _) in read_rows(folder / "plausible.csv", BOUND_COLUMNS):
            bounds[quantity] = (_based(low, unit), _based(high, unit))
        ratios = tuple(
            Ratio(format=row[0], of=row[1], ratio=float(row[2]), tolerance=float(row[3]))
            for _, row in read_rows(folder / "ratios.csv", RATIO_COLUMNS)
        )
    except (ValueError, KeyError) as error:
        raise KnowledgeError(
            "the rules of the catalog check cannot be read", why=str(error), fix=f"correct {folder}"
        ) from error
    return Rules(bounds=bounds, ratios=ratios)


def _based(number: str, unit: str) -> float:
    return float(to_base(float(number), unit))


def check_catalog(catalog: Catalog) -> list[Finding]:
    """Everything wrong with a catalog; no finding of severity `error` is the proof.

    Checked are the provenance of every fact; the range of every quantity; memory against the box figure and
    the instance's total; dense rates against each other; links one way against both ways; EFA against the
    network; prices, terms and dates; offerings, aliases and Spot history against the sizes and regions known.

    >>> from chipwise.catalog import load_catalog
    >>> check_catalog(load_catalog())
    []
    """
    rules = read_rules(catalog.folder)
    return [
        *_provenance(catalog),
        *(finding for chip in catalog.chips.values() for finding in _chip_findings(catalog, chip, rules)),
        *(finding for size in catalog.instances.values() for finding in _size_findings(catalog, size, rules)),
        *_price_findings(catalog, rules),
        *_market_findings(catalog, rules),
    ]


def _error(subject: str, rule: str, what: str) -> Finding:
    return Finding(severity="error", subject=subject, rule=rule, what=what)


def _provenance(catalog: Catalog) -> Iterator[Finding]:
    for table in (catalog.chip_facts, catalog.instance_facts):
        for subject in table.rows:
            for defect in find_defects(facts_of(table, subject), catalog.sources):
                yield _error(subject, "provenance", f"{defect.key}: {defect.what}")


def _by_key(table: FactTable, subject: str) -> dict[str, Fact]:
    return {fact.key: fact for fact in facts_of(table, subject)}


def _chip_findings(catalog: Catalog, chip: Chip, rules: Rules) -> Iterator[Finding]:
    values = values_of(catalog.chip_facts, chip.id)
    for quantity in rules.bounds:
        number = real(values, quantity)
        if rules.outside(quantity, number):
            yield _error(chip.id, "range", f"{quantity} is {number:g}")
    yield from _memory_findings(catalog, chip, rules)
    yield from _rate_findings(chip, _by_key(catalog.chip_facts, chip.id), rules)
    yield from _link_findings(chip.id, real(values, "link_one_way"), real(values, "link_both_ways"))
    for profile in chip.mig_profiles:
        if (profile.count or 1) * profile.memory_fraction > 1 or profile.compute_fraction > 1:
            yield _error(chip.id, "mig", f"{profile.count} x {profile.name} is more than the whole GPU")


def _memory_findings(catalog: Catalog, chip: Chip, rules: Rules) -> Iterator[Finding]:
    if chip.memory_bytes is None or chip.memory_marketing_bytes is None:
        return
    if rules.outside("memory_per_box", chip.memory_bytes / chip.memory_marketing_bytes):
        yield _error(chip.id, "memory-box", f"{chip.memory_bytes} bytes, box {chip.memory_marketing_bytes}")
    rented = any(size.chip == chip.id and size.status == "current" for size in catalog.instances.values())
    if rented and chip.memory_bytes == chip.memory_marketing_bytes:
        yield _error(chip.id, "memory-box", "it is the box figure read as 10^9, no driver or API total")


def _rate_findings(chip: Chip, facts: Mapping[str, Fact], rules: Rules) -> Iterator[Finding]:
    for name in chip.dense_flops_per_s:
        if name not in chip.native and name in facts and not facts[name].why and name != "fp64":
            yield _error(chip.id, "native", f"a rate of {name}, which it does not multiply natively")
    for ratio in rules.ratios:
        found, base = (chip.dense_flops_per_s.get(name) for name in (ratio.format, ratio.of))
        if found is None or base is None or facts[ratio.format].why:
            continue
        if abs(found / base / ratio.ratio - 1) > ratio.tolerance:
            what = f"{ratio.format} is {found / base:.3g} x {ratio.of}, not {ratio.ratio:g} x: sparse?"
            yield _error(chip.id, "rates", what)


def _link_findings(subject: str, one_way: float | None, both_ways: float | None) -> Iterator[Finding]:
    if both_ways is not None and (one_way is None or abs(2 * one_way / both_ways - 1) > 1e-6):
        yield _error(subject, "link", f"one way is {one_way}, not half of {both_ways:g}")


def _size_findings(catalog: Catalog, size: Instance, rules: Rules) -> Iterator[Finding]:
    values = values_of(catalog.instance_facts, size.name)
    for quantity in ("vcpu", "ram", "network", "link_one_way"):
        number = real(values, quantity)
        if rules.outside(quantity, number):
            yield _error(size.name, "range", f"{quantity} is {number:g}")
    yield from _link_findings(size.name, real(values, "link_one_way"), real(values, "link_both_ways"))
    yield from _total_memory_findings(catalog, size, whole(values, "accelerator_memory_total"), rules)
    yield from _network_findings(size, _by_key(catalog.instance_facts, size.name), rules)
    if size.kind != "cpu" and size.status == "current" and not (size.chip and size.chips):
        yield _error(size.name, "accelerator", "no chip, or not how many")
    if size.link is not None and (size.chips or 0) <= 1 and not size.ultraserver:
        yield _error(size.name, "link", "a link on a size of one chip")


def _total_memory_findings(
    catalog: Catalog, size: Instance, total_bytes: int | None, rules: Rules
) -> Iterator[Finding]:
    if total_bytes is None or size.chip is None or size.chips is None or size.status != "current":
        return
    if size.accelerator_memory_bytes is None:
        yield _error(size.name, "memory-total", "a total, but no memory of one chip")
        return
    if rules.outside("memory_total_slack", total_bytes / (size.chips * size.accelerator_memory_bytes)):
        yield _error(size.name, "memory-total", f"{total_bytes} bytes is not chips x memory of a chip")
    memory = _by_key(catalog.chip_facts, size.chip)["memory"]
    known = [float(base_value(fact)) * size.chip_fraction for fact in (memory, *memory.conflicts)]
    if not any(abs(total_bytes / (size.chips * each) - 1) < 1e-3 for each in known):
        yield _error(size.name, "memory-total", f"{total_bytes} bytes is chips x none of its known sizes")


def _network_findings(size: Instance, facts: Mapping[str, Fact], rules: Rules) -> Iterator[Finding]:
    efa, network = size.efa_bytes_per_s, size.network_bytes_per_s
    if not efa:
        if size.efa_interfaces:
            yield _error(size.name, "efa", "EFA interfaces without a bandwidth")
        return
    if network is None or efa > network:
        yield _error(size.name, "efa", f"EFA of {efa:g} bytes/s is more than the network's {network}")
    elif efa < network and not facts["efa"].why:
        yield _error(size.name, "efa", f"EFA is {efa:g} bytes/s of a network of {network:g}, and no why")
    if size.efa_interfaces is not None and rules.outside("efa_interface", efa / max(size.efa_interfaces, 1)):
        yield _error(size.name, "efa", f"{efa:g} bytes/s over {size.efa_interfaces} interfaces")
    if size.status == "current" and (size.efa_generation is None or size.rdma_read is None):
        yield _error(size.name, "efa", "EFA without its generation or RDMA")


def _price_findings(catalog: Catalog, rules: Rules) -> Iterator[Finding]:
    for name, prices in catalog.prices_by_instance.items():
        size = catalog.instances.get(name)
        if size is None:
            yield _error(name, "price", "a price of a size that the catalog does not hold")
            continue
        for price in prices:
            yield from _one_price(catalog, size, price, rules)
        for term in ("on-demand", "capacity-block"):
            usd = [
                price.usd_per_hour / price.instances
                for price in prices
                if price.term == term and price.usd_per_hour and not price.historical
            ]
            if usd and rules.outside("region_spread", max(usd) / min(usd)):
                yield _error(name, "price", f"{term}: {min(usd):g} to {max(usd):g} USD/h by region")


def _one_price(catalog: Catalog, size: Instance, price: Price, rules: Rules) -> Iterator[Finding]:
    where = f"{price.term} in {price.region or 'no recorded region'}"
    if price.region is not None and price.region not in catalog.regions:
        yield _error(size.name, "price", f"{where}: the region is not in the table")
    if price.instances < 1 or (price.scope == "instance" and price.instances != 1):
        yield _error(size.name, "price", f"{where}: a {price.scope} of {price.instances} instances")
    if price.as_of is None and "undated" not in catalog.sources[price.source].title:
        yield _error(size.name, "price", f"{where}: no date, and its source is not known to be undated")
    if price.usd_per_hour is None:
        if not price.note:
            yield _error(size.name, "price", f"{where}: no price and no word why")
        return
    if rules.outside("usd_per_hour", price.usd_per_hour):
        yield _error(size.name, "price", f"{where}: {price.usd_per_hour:g} USD/h")
    if price.term not in size.usage_classes and size.status == "current" and not price.historical:
        yield _error(size.name, "price", f"{where}: the size is not sold that way")


def _offering_findings(catalog: Catalog) -> Iterator[Finding]:
    for name, offerings in catalog.offerings_by_instance.items():
        size = catalog.instances.get(name)
        if size is None:
            yield _error(name, "offering", "an offering of a size that the catalog does not hold")
        elif size.status == "retired":
            yield _error(name, "offering", "a retired size is offered")
        for offering in offerings:
            if offering.region not in catalog.regions:
                yield _error(name, "offering", f"the region {offering.region} is not in the table")
            if offering.evidence == "api" and not offering.zones:
                yield _error(name, "offering", f"no zone in {offering.region}")
    for size in catalog.instances.values():
        if size.status == "current" and size.name not in catalog.offerings_by_instance:
            yield _error(size.name, "offering", "a current size that is offered nowhere")


def _market_findings(catalog: Catalog, rules: Rules) -> Iterator[Finding]:
    yield from _offering_findings(catalog)
    for size in catalog.instances.values():
        for spot in catalog.spot_history(size.name):
            if spot.region not in catalog.regions or rules.outside("savings", spot.savings_fraction):
                yield _error(size.name, "spot", f"{spot.savings_fraction:g} in {spot.region}")
    for alias in catalog.aliases.values():
        if alias.chip not in catalog.chips and not alias.note:
            yield _error(alias.alias, "alias", "it leads to no chip and does not say why")
