"""What one instance costs by the hour under one purchase term, from dated prices: never a bare number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from chipwise.facts import read_rows
from chipwise.units import Range

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from chipwise.catalog import Price

PriceKind = Literal["api", "assumed", "user"]
DATA = Path(__file__).parent / "data"
COLUMNS = ("key", "value", "unit", "kind", "source", "where", "read_on")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """USD by the hour for one instance; `why` says where the figure comes from."""

    term: str
    usd_per_hour: Range
    kind: PriceKind
    region: str | None
    as_of: str | None
    why: str


@cache
def _assumptions() -> dict[str, float]:
    return {row[0]: float(row[1]) for _, row in read_rows(DATA / "assumptions.csv", COLUMNS)}


def _of_term(prices: Iterable[Price], term: str) -> list[Price]:
    return [
        price
        for price in prices
        if price.term == term and price.usd_per_hour is not None and not price.historical and price.scope == "instance"
    ]


def _age(price: Price) -> str:
    return f"list price of {price.as_of}" if price.as_of else "undated list price"


def quote(prices: Sequence[Price], *, term: str, regions: Sequence[str]) -> Quote | None:
    """The price of `term` in the cheapest of `regions`; else the same term elsewhere, as an assumption.

    The range of a printed price spans the regions asked for. A price that stands in from another region is
    `assumed` and its range is widened by how much GPU prices differ between regions.

    Args:
        prices: all prices of one size.
        term: on-demand, capacity-block or spot.
        regions: where the size is offered among those asked for; at least one.

    Returns:
        None where no region has a price of that term.
    """
    known = _of_term(prices, term)
    here = [price for price in known if price.region in regions]
    unplaced = [price for price in known if price.region is None]
    if here:
        return _printed(here, term)
    if unplaced or known:
        return _stand_in(unplaced or known, term, regions)
    return None


def _printed(here: list[Price], term: str) -> Quote:
    cheapest = min(here, key=lambda price: (price.usd_per_hour or 0.0, price.region or ""))
    rates = [price.usd_per_hour for price in here if price.usd_per_hour is not None]
    return Quote(
        term=term,
        usd_per_hour=Range(low=min(rates), mid=min(rates), high=max(rates)),
        kind="api",
        region=cheapest.region,
        as_of=cheapest.as_of,
        why=f"{term}, {cheapest.region}, {_age(cheapest)} ({cheapest.source})",
    )


def _stand_in(known: list[Price], term: str, regions: Sequence[str]) -> Quote:
    other = max(known, key=lambda price: (price.as_of or "", price.region == "us-east-1", -(price.usd_per_hour or 0.0)))
    rate = other.usd_per_hour or 0.0
    where = other.region or "a region the source does not name"
    return Quote(
        term=term,
        usd_per_hour=Range.around(rate, factor=_assumptions()["region_price_factor"]),
        kind="assumed",
        region=other.region,
        as_of=other.as_of,
        why=f"{term}: no price for {', '.join(regions[:3])}; {where} stands in, {_age(other)} ({other.source})",
    )


def best_quote(
    prices: Sequence[Price], *, terms: Sequence[str], regions: Sequence[str], user_usd_per_hour: float | None = None
) -> Quote | None:
    """The first of `terms` that has a price; a price the user gave comes before all.

    A printed price of a later term beats an assumed one of an earlier term only where no region has the earlier.
    """
    if user_usd_per_hour is not None:
        rate = Range.around(user_usd_per_hour, factor=1.0)
        return Quote(
            term=terms[0], usd_per_hour=rate, kind="user", region=None, as_of=None, why="the price you gave (--price)"
        )
    found = (quote(prices, term=term, regions=regions) for term in terms)
    return next((one for one in found if one is not None), None)
