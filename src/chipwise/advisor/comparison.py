"""`compare(A, B)`: two sizes or chips, by their facts and, with a model, by what they would do for a question."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chipwise.advisor.plans import advise
from chipwise.advisor.reasons import best_place
from chipwise.catalog import Instance, load_catalog
from chipwise.catalog.lookup import fold
from chipwise.errors import UnknownNameError

if TYPE_CHECKING:
    from chipwise.advisor.request import Request
    from chipwise.catalog import Catalog, Chip, Link

OF_SIZE = frozenset(
    {
        "efa_bytes_per_s",
        "gpudirect_rdma",
        "vcpu",
        "ram_bytes",
        "nvme_bytes",
        "on_demand_us_east_1_usd_per_hour",
    }
)
"""Facts that a size has and a chip alone has not."""


def compare(first: str, second: str, request: Request | None = None) -> dict[str, Any]:
    """Two sizes or chips of the catalog, fact by fact; with a question also how each answers it.

    A chip stands for all its sizes: facts of a size alone are None, and it answers a question as the best of them.

    Args:
        first: one size or chip.
        second: the other.
        request: the question; its `only` is replaced by the two.

    Raises:
        UnknownNameError: no such size and no such chip.
        KnowledgeError: a name that does not say which chip it is.
        As `advise` for the question.
    """
    catalog = load_catalog()
    compared = [_compared(catalog, name) for name in (first, second)]
    facts = [_facts(catalog, one) if isinstance(one, Instance) else _chip_facts(catalog, one) for one in compared]
    names = [one.name if isinstance(one, Instance) else one.id for one in compared]
    left_out = frozenset() if any(isinstance(one, Instance) for one in compared) else OF_SIZE
    rows = [{"fact": key, "first": facts[0][key], "second": facts[1][key]} for key in facts[0] if key not in left_out]
    return {
        "schema_version": 1,
        "first": names[0],
        "second": names[1],
        "facts": rows,
        "answers": None if request is None else _answers(catalog, names, request),
        "facts_as_of": catalog.facts_as_of,
    }


def _compared(catalog: Catalog, name: str) -> Instance | Chip:
    """The size of that name, else the chip.

    Raises:
        UnknownNameError: neither; proposes near names of both kinds.
    """
    folded = fold(name)
    if folded in catalog.instances:
        return catalog.instances[folded]
    if folded in catalog.chips or folded in catalog.aliases:
        return catalog.chip(name)
    known = [*catalog.instances, *catalog.chips]
    raise UnknownNameError("size or chip", name, known, listing="see chipwise catalog list")


def _answers(catalog: Catalog, names: list[str], request: Request) -> list[dict[str, Any]]:
    """Where each stands for the question: a chip where the best of its sizes does."""
    advice = advise(replace(request, only=tuple(names), exclude=(), vendor="any"))
    places = [best_place(_sizes(catalog, name), advice) for name in names]
    return [{"stands_in": place, "detail": row} for place, row in places]


def _sizes(catalog: Catalog, name: str) -> list[str]:
    return [size.name for size in catalog.instances.values() if name in {size.name, size.chip}]


def _facts(catalog: Catalog, size: Instance) -> dict[str, Any]:
    chip = catalog.chips.get(size.chip or "")
    prices = [one.usd_per_hour for one in catalog.prices(size.name, term="on-demand", regions=["us-east-1"])]
    return {
        **_of_chip(chip, size.link),
        "chip": size.chip,
        "chips": size.chips,
        "efa_bytes_per_s": size.efa_bytes_per_s,
        "gpudirect_rdma": size.gpudirect_rdma,
        "vcpu": size.vcpu,
        "ram_bytes": size.ram_bytes,
        "nvme_bytes": size.nvme_bytes,
        "usage_classes": sorted(size.usage_classes),
        "regions": list(catalog.regions_of(size.name, priced=True)),
        "on_demand_us_east_1_usd_per_hour": prices[0] if prices else None,
    }


def _chip_facts(catalog: Catalog, chip: Chip) -> dict[str, Any]:
    """What is known of the chip alone; its terms and Regions are those of all its sizes together."""
    sizes = [catalog.instances[name] for name in _sizes(catalog, chip.id)]
    regions = {region for one in sizes for region in catalog.regions_of(one.name, priced=True)}
    return {
        **_of_chip(chip, chip.link),
        "chip": chip.id,
        "chips": 1,
        **dict.fromkeys(sorted(OF_SIZE)),
        "usage_classes": sorted({term for one in sizes for term in one.usage_classes}),
        "regions": sorted(regions),
    }


def _of_chip(chip: Chip | None, link: Link | None) -> dict[str, Any]:
    rates = chip.dense_flops_per_s if chip else {}
    return {
        "chip": None,
        "chips": None,
        "architecture": chip.architecture if chip else None,
        "memory_bytes_per_chip": chip.memory_bytes if chip else None,
        "memory_bandwidth_bytes_per_s_per_chip": chip.memory_bandwidth_bytes_per_s if chip else None,
        "bf16_dense_flops_per_s_per_chip": rates.get("bf16"),
        "fp8_dense_flops_per_s_per_chip": rates.get("fp8"),
        "fp4_dense_flops_per_s_per_chip": rates.get("fp4"),
        "link": link.name if link else None,
        "link_bytes_per_s_one_way_per_chip": link.bytes_per_s_one_way if link else None,
    }
