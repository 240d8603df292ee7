"""How and where to buy: advice by pattern, and regions weighed by stated rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from chipwise.guide.tables import cite, row_named, table


@dataclass(frozen=True, slots=True, kw_only=True)
class PurchaseAdvice:
    """The way to buy for a pattern of use, what comes next to it, why, and what to take care of."""

    pattern: str
    option: str
    next: str
    why: str
    caution: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionAdvice:
    """One region: whether it stays, its rank (1 is first; None where it is out), and by which rule."""

    region: str
    stays: bool
    rank: int | None
    why: str
    source: str


def purchase_pattern(*, training: bool, interruptible: bool, steady: bool) -> str:
    """The pattern of use behind a question.

    >>> purchase_pattern(training=False, interruptible=True, steady=False)
    'interruptible'
    """
    if interruptible:
        return "interruptible"
    if training:
        return "long-training"
    return "steady" if steady else "bursty"


def purchase_advice(pattern: str) -> PurchaseAdvice:
    """What to buy for a pattern: steady, bursty, interruptible, window, assured, long-training.

    Raises:
        UnknownNameError: no such pattern.

    >>> purchase_advice("window").option
    'capacity-block'
    """
    row = row_named("purchase", "pattern", pattern)
    return PurchaseAdvice(
        pattern=pattern,
        option=row["option"],
        next=row["next"],
        why=row["why"],
        caution=row["caution"],
        source=cite(row["where"]),
    )


def region_advice(
    geographies: Mapping[str, str],
    *,
    offered: Iterable[str],
    allowed: Iterable[str] = (),
    users: str | None = None,
) -> tuple[RegionAdvice, ...]:
    """Regions weighed: offered there, allowed by sovereignty, then near the users by geography alone.

    Args:
        geographies: region to its geography (`us`, `eu`, …): the regions in question.
        offered: regions that offer the size.
        allowed: geographies that data may be in; empty allows all.
        users: geography of the users; None leaves the order as it is.

    >>> found = region_advice({"us-east-1": "us", "eu-west-1": "eu"}, offered=["us-east-1", "eu-west-1"], users="eu")
    >>> [(one.region, one.rank) for one in found]
    [('eu-west-1', 1), ('us-east-1', 2)]
    """
    here, lawful = set(offered), set(allowed)
    out = {name: _out(place, offered=name in here, lawful=lawful) for name, place in geographies.items()}
    left = [name for name, why in out.items() if why is None]
    ranked = sorted(left, key=lambda name: users is not None and geographies[name] != users)
    stays = [_stays(name, rank, geographies[name], users) for rank, name in enumerate(ranked, start=1)]
    return (*stays, *(_leaves(name, *why) for name, why in out.items() if why is not None))


def _out(place: str, *, offered: bool, lawful: set[str]) -> tuple[str, str] | None:
    if not offered:
        return "offered", "the size is not offered there"
    if lawful and place not in lawful:
        return "sovereignty", f"data may not be in {place}"
    return None


def _leaves(name: str, rule: str, why: str) -> RegionAdvice:
    return RegionAdvice(region=name, stays=False, rank=None, why=why, source=_source(rule))


def _stays(name: str, rank: int, place: str, users: str | None) -> RegionAdvice:
    why = "offered" if users is None else "in the users' geography" if place == users else f"users are in {users}"
    rule = "offered" if users is None else "distance"
    return RegionAdvice(region=name, stays=True, rank=rank, why=f"{why}; latency is not measured", source=_source(rule))


def _source(rule: str) -> str:
    row = next(row for row in table("region") if row["consideration"] == rule)
    return f"{cite(row['where'])}: {row['rule']}"
