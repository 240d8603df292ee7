"""Reads what each size costs, where it is offered and what Spot did; also regions and aliases of chips."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar, cast, get_args

from chipwise.catalog.types import Alias, Offering, Price, Region, RegionKind, SpotHistory, Term
from chipwise.errors import KnowledgeError
from chipwise.facts import Source, read_rows

PRICE_COLUMNS = (
    "instance",
    "region",
    "zone",
    "term",
    "usd_per_hour",
    "as_of",
    "scope",
    "instances",
    "historical",
    "source",
    "note",
)
OFFERING_COLUMNS = ("instance", "region", "zones", "evidence", "as_of", "source")
REGION_COLUMNS = ("name", "kind", "geography")
SPOT_COLUMNS = (
    "instance",
    "region",
    "savings_percent",
    "interruption_low",
    "interruption_high",
    "as_of",
    "source",
)
ALIAS_COLUMNS = ("alias", "chip", "note", "source")
_FLAGS = {"true": True, "false": False}


class _OfInstance(Protocol):
    @property
    def instance(self) -> str: ...


_Row = TypeVar("_Row", bound=_OfInstance)


def _bad(path: Path, line: int, why: str) -> KnowledgeError:
    return KnowledgeError(f"{path.name}:{line}: {why}", why="the table cannot be read", fix=f"correct {path}")


def _number(path: Path, line: int, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise _bad(path, line, f"{text[:40]!r} is not a number") from error


def _among(path: Path, line: int, text: str, allowed: Iterable[str]) -> str:
    if text not in allowed:
        raise _bad(path, line, f"{text[:40]!r} is none of {', '.join(allowed)}")
    return text


def by_instance(rows: Iterable[_Row]) -> dict[str, tuple[_Row, ...]]:
    """Rows grouped by their instance, in their order."""
    grouped: dict[str, list[_Row]] = {}
    for row in rows:
        grouped.setdefault(row.instance, []).append(row)
    return {name: tuple(of_name) for name, of_name in grouped.items()}


def read_prices(path: Path, sources: Mapping[str, Source]) -> list[Price]:
    """Every price of the table; an empty price means that the source states there is none.

    Raises:
        KnowledgeError: the table cannot be read; names file and line.
    """
    return [_price(path, line, row, sources) for line, row in read_rows(path, PRICE_COLUMNS)]


def _price(path: Path, line: int, row: Sequence[str], sources: Mapping[str, Source]) -> Price:
    instance, region, zone, term, usd, as_of, scope, instances, historical, source, note = row
    _among(path, line, term, get_args(Term))
    _among(path, line, scope, ("instance", "ultraserver"))
    _among(path, line, historical, _FLAGS)
    _among(path, line, source, sources)
    return Price(
        instance=instance,
        region=region or None,
        zone=zone or None,
        term=cast("Term", term),
        usd_per_hour=_number(path, line, usd) if usd else None,
        as_of=as_of or None,
        scope="instance" if scope == "instance" else "ultraserver",
        instances=int(_number(path, line, instances)),
        historical=_FLAGS[historical],
        source=source,
        note=note,
    )


def read_offerings(path: Path) -> list[Offering]:
    """Which size is offered in which region and zones.

    Raises:
        KnowledgeError: the table cannot be read; names file and line.
    """
    offerings = []
    for line, (instance, region, zones, evidence, as_of, _) in read_rows(path, OFFERING_COLUMNS):
        _among(path, line, evidence, ("api", "price-list"))
        offerings.append(
            Offering(
                instance=instance,
                region=region,
                zones=tuple(zones.split()),
                evidence="api" if evidence == "api" else "price-list",
                as_of=as_of,
            )
        )
    return offerings


def read_regions(path: Path) -> dict[str, Region]:
    """Regions and Local Zones by name.

    Raises:
        KnowledgeError: the table cannot be read; names file and line.
    """
    regions = {}
    for line, (name, kind, geography) in read_rows(path, REGION_COLUMNS):
        _among(path, line, kind, get_args(RegionKind))
        regions[name] = Region(name=name, kind=cast("RegionKind", kind), geography=geography)
    return regions


def read_spot(path: Path) -> list[SpotHistory]:
    """What Spot Advisor printed, by size and region.

    Raises:
        KnowledgeError: the table cannot be read; names file and line.
    """
    return [
        SpotHistory(
            instance=row[0],
            region=row[1],
            savings_fraction=_number(path, line, row[2]) / 100,
            interruption_low_fraction=_number(path, line, row[3]),
            interruption_high_fraction=_number(path, line, row[4]),
            as_of=row[5],
        )
        for line, row in read_rows(path, SPOT_COLUMNS)
    ]


def read_aliases(path: Path) -> list[Alias]:
    """Other names of chips.

    Raises:
        KnowledgeError: the table cannot be read; names file and line.
    """
    return [
        Alias(alias=alias, chip=chip or None, note=note, source=source)
        for _, (alias, chip, note, source) in read_rows(path, ALIAS_COLUMNS)
    ]
