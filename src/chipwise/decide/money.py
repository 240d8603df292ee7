"""How a deployment can be bought and what its price does not say."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from chipwise.capacity import COMMITMENTS, buyable_terms
from chipwise.cost import quote
from chipwise.decide.advice import PurchaseLine
from chipwise.guide import purchase_advice, purchase_pattern

if TYPE_CHECKING:
    from chipwise.catalog import Instance
    from chipwise.cost import Quote
    from chipwise.decide.question import Question
    from chipwise.guide import PurchaseAdvice


class Lot(Protocol):
    """So many instances of one size."""

    @property
    def instance(self) -> Instance:
        """The size."""

    @property
    def instances(self) -> int:
        """Instances rented."""


TERMS = ("on-demand", "savings-plan", "capacity-block", "reserved", "spot")


def offered_here(question: Question, lot: Lot) -> tuple[str, ...]:
    """The regions asked for that offer the size."""
    offered = question.catalog.regions_of(lot.instance.name, priced=True)
    return tuple(region for region in question.policy.regions if region in offered)


def purchase_lines(question: Question, lot: Lot) -> tuple[PurchaseLine, ...]:
    """Every way to buy, with its price by the hour where one is known and why not where not.

    The way that the guide advises for this pattern of use says so.
    """
    policy = question.policy
    pattern = purchase_pattern(
        training=question.kind != "inference", interruptible=policy.interruptible, steady=policy.stability == "steady"
    )
    advised = purchase_advice(pattern)
    return tuple(_advised(_line(question, lot, term), advised) for term in TERMS)


def _advised(line: PurchaseLine, advice: PurchaseAdvice) -> PurchaseLine:
    if line.option not in advice.option.split():
        return line
    return replace(line, why=f"{line.why}; advised for {advice.pattern} use: {advice.why} ({advice.source})")


def _line(question: Question, lot: Lot, term: str) -> PurchaseLine:
    catalog, name = question.catalog, lot.instance.name
    if not buyable_terms(lot.instance, term, interruptible=True):
        return PurchaseLine(option=term, usd_per_hour=None, why=f"{name} is not sold so")
    if term in COMMITMENTS:
        return PurchaseLine(option=term, usd_per_hour=None, why="no public table of rates by size: ask for a quote")
    here, savings = offered_here(question, lot), catalog.spot_history(name)
    found = quote(catalog.prices(name), term=term, regions=here, savings=savings)
    if found is None:
        return PurchaseLine(option=term, usd_per_hour=None, why="sold so, but no price was found")
    return PurchaseLine(option=term, usd_per_hour=found.usd_per_hour.scaled(lot.instances), why=found.why)


def caveats_of(found: Quote | None) -> tuple[str, ...]:
    """What a reader must know of a price."""
    caveats = ["list price of the instances alone: no storage, traffic, support or discounts"]
    if found is None:
        return (*caveats, "no price was found: ask AWS for a quote")
    if found.kind == "assumed":
        caveats.append(f"assumed price: {found.why}")
    if found.kind == "api" and found.as_of is None:
        caveats.append("the price list is undated (early 2026 or later)")
    if found.term == "capacity-block":
        caveats.append("a Capacity Block is paid up front, has a fixed end, and lasts 182 days at most")
    if found.sold_together > 1:
        caveats.append(
            f"sold as a whole UltraServer of {found.sold_together} instances, not one by one: "
            "this is the share of those used"
        )
    if found.term == "spot":
        caveats.append("Spot capacity can be taken back at two minutes' notice, and its price moves")
    return tuple(caveats)
