"""`compare(A, B)`: two sizes side by side, by their facts and, with a model, by what they would do for a question."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chipwise.advisor.plans import advise
from chipwise.advisor.reasons import where
from chipwise.catalog import load_catalog

if TYPE_CHECKING:
    from chipwise.advisor.request import Request
    from chipwise.catalog import Catalog, Instance


def compare(first: str, second: str, request: Request | None = None) -> dict[str, Any]:
    """Two sizes of the catalog, fact by fact; with a question also how each answers it.

    Args:
        first: one size.
        second: the other.
        request: the question; its `only` is replaced by the two sizes.

    Raises:
        UnknownNameError: no such size.
        As `advise` for the question.
    """
    catalog = load_catalog()
    sizes = [catalog.instance(name) for name in (first, second)]
    facts = [_facts(catalog, size) for size in sizes]
    rows = [{"fact": key, "first": facts[0][key], "second": facts[1][key]} for key in facts[0]]
    answers: list[dict[str, Any]] | None = None
    if request is not None:
        advice = advise(replace(request, only=tuple(size.name for size in sizes), exclude=(), vendor="any"))
        placed = [where(size.name, advice) for size in sizes]
        answers = [{"stands_in": place, "detail": row} for place, row in placed]
    return {
        "schema_version": 1,
        "first": sizes[0].name,
        "second": sizes[1].name,
        "facts": rows,
        "answers": answers,
        "facts_as_of": catalog.facts_as_of,
    }


def _facts(catalog: Catalog, size: Instance) -> dict[str, Any]:
    chip = catalog.chips.get(size.chip or "")
    link = size.link
    prices = [one.usd_per_hour for one in catalog.prices(size.name, term="on-demand", regions=["us-east-1"])]
    rates = chip.dense_flops_per_s if chip else {}
    return {
        "chip": size.chip,
        "chips": size.chips,
        "memory_bytes_per_chip": chip.memory_bytes if chip else None,
        "memory_bandwidth_bytes_per_s_per_chip": chip.memory_bandwidth_bytes_per_s if chip else None,
        "bf16_dense_flops_per_s_per_chip": rates.get("bf16"),
        "fp8_dense_flops_per_s_per_chip": rates.get("fp8"),
        "fp4_dense_flops_per_s_per_chip": rates.get("fp4"),
        "link": link.name if link else None,
        "link_bytes_per_s_one_way_per_chip": link.bytes_per_s_one_way if link else None,
        "efa_bytes_per_s": size.efa_bytes_per_s,
        "gpudirect_rdma": size.gpudirect_rdma,
        "vcpu": size.vcpu,
        "ram_bytes": size.ram_bytes,
        "nvme_bytes": size.nvme_bytes,
        "usage_classes": sorted(size.usage_classes),
        "regions": list(catalog.regions_of(size.name, priced=True)),
        "on_demand_us_east_1_usd_per_hour": prices[0] if prices else None,
    }
