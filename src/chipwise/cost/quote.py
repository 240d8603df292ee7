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

    from chipwise.catalog import Price, SpotHistory

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
    sold_together: int = 1
    """Instances that are only sold together: those of an UltraServer."""


@cache
def _assumptions() -> dict[str, float]:
    return {row[0]: float(row[1]) for _, row in read_rows(DATA / "assumptions.csv", COLUMNS)}


def _of_term(prices: Iterable[Price], term: str) -> list[Price]:
    return [price for price in prices if price.term == term and price.usd_per_hour is not None and not price.historical]


def _rate(price: Price) -> float:
    """USD by the hour of one instance: a price of a whole UltraServer is shared by its instances."""
    return (price.usd_per_hour or 0.0) / (price.instances if price.scope == "ultraserver" else 1)


def _together(price: Price) -> int:
    return price.instances if price.scope == "ultraserver" else 1


def _of_whole(price: Price) -> str:
    if _together(price) == 1:
        return ""
    return f", an UltraServer of {price.instances} instances at {price.usd_per_hour:,.2f} USD an hour"


def _age(price: Price) -> str:
    return f"list price of {price.as_of}" if price.as_of else "undated list price"


def quote(
    prices: Sequence[Price], *, term: str, regions: Sequence[str], savings: Sequence[SpotHistory] = ()
) -> Quote | None:
    """The price of `term` in the cheapest of `regions`; else the same term elsewhere, as an assumption.

    The range of a printed price spans the regions asked for. A price that stands in from another region is
    `assumed` and its range is widened by how much GPU prices differ between regions. Spot without a printed price
    is estimated from what Spot Advisor saved on the on-demand price (`spot_range`), and is `assumed` too.

    Args:
        prices: all prices of one size.
        term: on-demand, capacity-block, spot, savings-plan or reserved; the last two have no public rates.
        regions: where the size is offered among those asked for; at least one.
        savings: what Spot Advisor printed of the size.

    Returns:
        None where no region has a price of that term.
    """
    known = _of_term(prices, term)
    here = [price for price in known if price.region in regions]
    unplaced = [price for price in known if price.region is None]
    if here:
        return _printed(here, term)
    if term == "spot" and savings:
        estimated = _estimated(_of_term(prices, "on-demand"), regions, savings)
        if estimated is not None:
            return estimated
    if unplaced or known:
        return _stand_in(unplaced or known, term, regions)
    return None


def _by_rate(price: Price) -> tuple[float, bool, int, str]:
    """Cheapest to the cent first; of equals a dated price, then what is sold singly."""
    return round(_rate(price), 2), not price.as_of, _together(price), price.region or ""


def _printed(here: list[Price], term: str) -> Quote:
    cheapest = min(
        here, key=lambda price: (round(_rate(price), 2), not price.as_of, _together(price), price.region or "")
    )
    rates = [_rate(price) for price in here]
    return Quote(
        term=term,
        usd_per_hour=Range(low=min(rates), mid=min(rates), high=max(rates)),
        kind="api",
        region=cheapest.region,
        as_of=cheapest.as_of,
        why=f"{term}, {cheapest.region}, {_age(cheapest)}{_of_whole(cheapest)} ({cheapest.source})",
        sold_together=_together(cheapest),
    )


def _stand_in(known: list[Price], term: str, regions: Sequence[str]) -> Quote:
    other = max(known, key=lambda price: (price.as_of or "", price.region == "us-east-1", -_rate(price)))
    rate = _rate(other)
    where = other.region or "a region the source does not name"
    return Quote(
        term=term,
        usd_per_hour=Range.around(rate, factor=_assumptions()["region_price_factor"]),
        kind="assumed",
        region=other.region,
        as_of=other.as_of,
        why=f"{term}: no price for {', '.join(regions[:3])}; {where} stands in, {_age(other)}{_of_whole(other)} "
        f"({other.source})",
        sold_together=_together(other),
    )


def _estimated(on_demand: list[Price], regions: Sequence[str], savings: Sequence[SpotHistory]) -> Quote | None:
    """Spot as the on-demand price less what Spot Advisor saved, in the cheapest of `regions` that has both."""
    rates = {price.region: _rate(price) for price in on_demand if price.region in regions}
    found = [(rates[one.region] * (1.0 - one.savings_fraction), one) for one in savings if one.region in rates]
    if not found:
        return None
    _, row = min(found, key=lambda pair: (pair[0], pair[1].region))
    band = f"{row.interruption_low_fraction:.0%} to {row.interruption_high_fraction:.0%} interrupted a month"
    return Quote(
        term="spot",
        usd_per_hour=spot_range(
            on_demand_usd_per_hour=rates[row.region],
            savings_fraction=row.savings_fraction,
            factor=_assumptions()["spot_estimate_factor"],
        ),
        kind="assumed",
        region=row.region,
        as_of=row.as_of,
        why=f"spot, estimated: on-demand {rates[row.region]:,.4g} USD less the {row.savings_fraction:.0%} that "
        f"Spot Advisor printed for {row.region} on {row.as_of} ({band})",
    )


def spot_range(*, on_demand_usd_per_hour: float, savings_fraction: float, factor: float) -> Range:
    """Spot from on-demand: `on-demand x (1 - savings)`, `factor` to either side, not above on-demand where it saved.

    >>> spot_range(on_demand_usd_per_hour=10.0, savings_fraction=0.6, factor=2.0)
    Range(low=2.0, mid=4.0, high=8.0)
    >>> spot_range(on_demand_usd_per_hour=10.0, savings_fraction=0.2, factor=2.0).high
    10.0
    """
    mid = on_demand_usd_per_hour * (1.0 - savings_fraction)
    highest = max(mid, min(mid * factor, on_demand_usd_per_hour)) if savings_fraction > 0 else mid * factor
    return Range(low=mid / factor, mid=mid, high=highest)


def sold_instances(instances: int, found: Quote | None) -> int:
    """Instances that must be bought to have `instances`: whole UltraServers where the size is sold so.

    >>> one = Quote(term="on-demand", usd_per_hour=Range(low=1.0, mid=1.0, high=1.0), kind="api", region=None,
    ...     as_of=None, why="", sold_together=9)
    >>> sold_instances(10, one), sold_instances(10, None)
    (18, 10)
    """
    together = found.sold_together if found else 1
    return -(-instances // together) * together


def best_quote(
    prices: Sequence[Price],
    *,
    terms: Sequence[str],
    regions: Sequence[str],
    user_usd_per_hour: float | None = None,
    savings: Sequence[SpotHistory] = (),
) -> Quote | None:
    """The first of `terms` that has a price; a price the user gave comes before all.

    A printed price of a later term beats an assumed one of an earlier term only where no region has the earlier.
    """
    if user_usd_per_hour is not None:
        rate = Range.around(user_usd_per_hour, factor=1.0)
        return Quote(
            term=terms[0], usd_per_hour=rate, kind="user", region=None, as_of=None, why="the price you gave (--price)"
        )
    found = (quote(prices, term=term, regions=regions, savings=savings) for term in terms)
    return next((one for one in found if one is not None), None)
