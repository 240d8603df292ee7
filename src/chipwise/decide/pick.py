"""At most three options that differ: in chip or precision; the best of each vendor, and of slices, among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.decide.deployment import best_of, standing_of
from chipwise.decide.rank import ranked
from chipwise.precision import format_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
    for wanted in (_vendor_missing, _slices_missing):
        chosen = _with(next(wanted(chosen, order), None), _in_order(chosen, order), order)
    return chosen


def _in_order(chosen: Sequence[Deployment], order: Sequence[Deployment]) -> list[Deployment]:
    return [one for one in order if any(one is other for other in chosen)]


def _other_chip(one: Deployment, other: Deployment) -> bool:
    return one.instance.chip != other.instance.chip


def _other_bits(one: Deployment, other: Deployment) -> bool:
    """Two formats of as many bits on one chip are no choice worth showing."""
    mine, others = format_facts(one.precision).bits, format_facts(other.precision).bits
    return _other_chip(one, other) or mine != others


def _vendor_missing(chosen: Sequence[Deployment], order: Sequence[Deployment]) -> Iterator[Deployment]:
    """The best of GPU and Neuron both stand where both are feasible."""
    kinds = {one.instance.kind for one in chosen}
    return (one for one in order if one.instance.kind not in {*kinds, "cpu"})


def _slices_missing(chosen: Sequence[Deployment], order: Sequence[Deployment]) -> Iterator[Deployment]:
    """Slices are tried only where tenants are to be isolated: then the best of them stands too."""
    return iter(()) if any(one.profile for one in chosen) else (one for one in order if one.profile)


def _with(missing: Deployment | None, chosen: list[Deployment], order: Sequence[Deployment]) -> list[Deployment]:
    """The missing one in the last seat, or in that of the one before where the last is of a kind with no other."""
    if missing is None:
        return chosen
    kept = chosen if len(chosen) < MOST_OPTIONS else [one for one in chosen if one is not _spare(chosen)]
    return _in_order([*kept, missing], order)


def _spare(chosen: Sequence[Deployment]) -> Deployment:
    """The last that is not the only one of its kind; the first never."""
    kinds = [one.instance.kind for one in chosen]
    return next((one for one in reversed(chosen[1:]) if kinds.count(one.instance.kind) > 1), chosen[-1])
