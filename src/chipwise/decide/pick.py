"""At most three options that differ: in chip or precision, and the best of each vendor among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.decide.deployment import best_of, standing_of
from chipwise.decide.rank import ranked
from chipwise.precision import format_facts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from chipwise.decide.deployment import Deployment
    from chipwise.decide.question import Question

MOST_OPTIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """The options in their order; the best deployment of every other feasible size."""

    options: tuple[Deployment, ...]
    others: tuple[Deployment, ...]


def pick(deployments: Mapping[str, Sequence[Deployment]], question: Question) -> Picked:
    """Rank the best deployment of every size and precision; take the first, then the next that differ, then vendors."""
    order = ranked(_best_by_precision(deployments, question), lambda one: standing_of(one, question))
    chosen = _differing(order)
    taken = {one.instance.name for one in chosen}
    others: dict[str, Deployment] = {}
    for one in order:
        if one.instance.name not in taken:
            others.setdefault(one.instance.name, one)
    return Picked(options=tuple(chosen), others=tuple(others.values()))


def _best_by_precision(deployments: Mapping[str, Sequence[Deployment]], question: Question) -> list[Deployment]:
    groups: dict[tuple[str, str], list[Deployment]] = {}
    for of_size in deployments.values():
        for one in of_size:
            groups.setdefault((one.instance.name, one.precision), []).append(one)
    return [best_of(group, question) for group in groups.values()]


def _differing(order: Sequence[Deployment]) -> list[Deployment]:
    """The best of each chip first; seats left over go to other numbers of bits on those chips."""
    chosen: list[Deployment] = []
    for differ in (_other_chip, _other_bits):
        for one in order:
            if len(chosen) < MOST_OPTIONS and all(differ(one, other) for other in chosen):
                chosen.append(one)
    return _with_both_vendors(_in_order(chosen, order), order)


def _in_order(chosen: Sequence[Deployment], order: Sequence[Deployment]) -> list[Deployment]:
    return [one for one in order if any(one is other for other in chosen)]


def _other_chip(one: Deployment, other: Deployment) -> bool:
    return one.instance.chip != other.instance.chip


def _other_bits(one: Deployment, other: Deployment) -> bool:
    """Two formats of as many bits on one chip are no choice worth showing."""
    mine, others = format_facts(one.precision).bits, format_facts(other.precision).bits
    return _other_chip(one, other) or mine != others


def _with_both_vendors(chosen: list[Deployment], order: Sequence[Deployment]) -> list[Deployment]:
    kinds = {one.instance.kind for one in chosen}
    missing = next((one for one in order if one.instance.kind not in {*kinds, "cpu"}), None)
    if missing is None:
        return chosen
    return _in_order([*chosen[: MOST_OPTIONS - 1], missing], order)
