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
    """The options in their order, each with its tie group; the best deployment of every other feasible size."""

    options: tuple[tuple[Deployment, int], ...]
    others: tuple[tuple[Deployment, int], ...]


def pick(deployments: Mapping[str, Sequence[Deployment]], question: Question) -> Picked:
    """Rank every deployment of every size; take the first, then the next that differ, then the best other vendor."""
    everything = [one for of_size in deployments.values() for one in of_size]
    groups = ranked(everything, lambda one: standing_of(one, question))
    order = [(one, place) for place, group in enumerate(groups) for one in group]
    chosen = _differing(order)
    names = {one.instance.name for one, _ in chosen}
    best = {name: best_of(of_size, question) for name, of_size in deployments.items() if name not in names}
    places = {id(one): place for one, place in order}
    others = sorted(((one, places[id(one)]) for one in best.values()), key=lambda item: item[1])
    return Picked(options=tuple(chosen), others=tuple(others))


def _differing(order: Sequence[tuple[Deployment, int]]) -> list[tuple[Deployment, int]]:
    """The best of each chip first; seats left over go to other numbers of bits on those chips."""
    chosen: list[tuple[Deployment, int]] = []
    for differ in (_other_chip, _other_bits):
        for one, place in order:
            if len(chosen) < MOST_OPTIONS and all(differ(one, other) for other, _ in chosen):
                chosen.append((one, place))
    return _with_both_vendors(sorted(chosen, key=lambda item: item[1]), order)


def _other_chip(one: Deployment, other: Deployment) -> bool:
    return one.instance.chip != other.instance.chip


def _other_bits(one: Deployment, other: Deployment) -> bool:
    """Two formats of as many bits on one chip are no choice worth showing."""
    mine, others = format_facts(one.precision).bits, format_facts(other.precision).bits
    return _other_chip(one, other) or mine != others


def _with_both_vendors(
    chosen: list[tuple[Deployment, int]], order: Sequence[tuple[Deployment, int]]
) -> list[tuple[Deployment, int]]:
    kinds = {one.instance.kind for one, _ in chosen}
    missing = next(((one, place) for one, place in order if one.instance.kind not in kinds), None)
    if missing is None:
        return chosen
    return sorted([*chosen[: MOST_OPTIONS - 1], missing], key=lambda item: item[1])
