"""Which sizes hold all tenants, on how many instances, by which way of sharing; what the others lack."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.decide.found import Found
from chipwise.decide.infrastructure import isolation_of
from chipwise.decide.platforms import platforms_of
from chipwise.decide.sharing.arrange import arrangements
from chipwise.decide.sharing.deployment import Lone, SharedDeployment
from chipwise.decide.sharing.needs import needs_of
from chipwise.decide.sharing.places import places_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from chipwise.catalog import Instance
    from chipwise.cost import Quote
    from chipwise.decide.failures import Failure
    from chipwise.decide.question import Question
    from chipwise.decide.sharing.needs import Need, Needs


def search_shared(question: Question, instances: Sequence[Instance], quotes: Mapping[str, Quote | None]) -> Found:
    """Every way to share every platform, at every width of weights that a tenant may take.

    Args:
        question: its tenants, policy.
        instances: sizes to try.
        quotes: those of them that may be bought here, with their price.
    """
    found = Found()
    platforms = platforms_of(instances, question.catalog.chips)
    places = places_of(platforms, tenants=len(question.tenants), isolation=isolation_of(question))
    needs = [needs_of(tenant, place, places) for place, tenant in enumerate(question.tenants)]
    found.layouts_tried.extend(count for one in needs for count in one.tried)
    alone = tuple(cheapest_alone(one, quotes) for one in needs)
    widths = sorted({need.bits for one in needs for need in one.found}, reverse=True)
    for base, platform in enumerate(platforms):
        members = platform.members
        if all(base in one.held for one in needs):
            found.held.update(member.name for member in members)
        for bits in widths:
            chosen = [_chosen(one, base, bits) for one in needs]
            for arrangement in arrangements(chosen, platform.devices) if all(chosen) else ():
                for member in members:
                    if member.name in quotes:
                        found.add(
                            SharedDeployment(
                                question=question,
                                instance=member,
                                arrangement=arrangement,
                                ha_factor=question.policy.ha_factor,
                                quote=quotes[member.name],
                                alone=alone,
                            )
                        )
        for tenant, one in zip(question.tenants, needs, strict=True):
            if not any(need.place.base == base for need in one.found):
                for failure in (failure for at, failure in one.failures if at == base):
                    found.fail(members, _named(tenant, failure))
    return found


def cheapest_alone(needs: Needs, quotes: Mapping[str, Quote | None]) -> Lone | None:
    """The cheapest size for one tenant by itself, on whole devices; None where no price is known."""
    found = []
    for need in (one for one in needs.found if one.place.kind == "whole"):
        for member in need.place.platform.members:
            quote = quotes.get(member.name)
            if quote is not None:
                each = max(1, (member.devices or 1) // need.place.devices)
                instances = -(-need.replicas // each)
                found.append(Lone(instance=member.name, instances=instances, usd=quote.usd_per_hour.mid * instances))
    return min(found, key=lambda one: (one.usd, one.instance), default=None)


def _named(tenant: Question, failure: Failure) -> Failure:
    return replace(failure, reason=f"{tenant.model.name}: {failure.reason}")


def _chosen(needs: Needs, base: int, bits: float) -> list[Need]:
    """Of every kind of place the widest weights up to a width, then what takes fewest replicas and bytes.

    A tenant that is stored wider than that, and may become no narrower, stays as it is.
    """
    here = [need for need in needs.found if need.place.base == base]
    least = min((need.bits for need in here), default=bits)
    best: dict[tuple[str, int, str | None, int], Need] = {}
    for need in sorted(here, key=lambda one: (-one.bits, one.replicas, one.device_bytes)):
        profile = need.place.platform.profile
        key = need.place.kind, need.layout.devices, profile.name if profile else None, need.place.sharers
        if need.bits <= max(bits, least):
            best.setdefault(key, need)
    return list(best.values())
