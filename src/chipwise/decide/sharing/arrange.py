"""Tenants onto devices: whole ones, slices of GPUs, turns on GPUs; the fewest devices of one platform for each way."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice, product
from typing import TYPE_CHECKING, Literal

from chipwise.decide.sharing.packing import fewest_bins

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from chipwise.decide.sharing.needs import Need

Technique = Literal["separate", "fractional", "mig", "time-slicing"]
MOST_CHOICES = 2000
"""Combinations of profiles looked at; beyond, every tenant takes the smallest that will do."""
WHOLE_GPU = (1.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Devices side by side in one instance, and who lives on them: one replica, slices, or sharers."""

    devices: int
    needs: tuple[Need, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """Every replica of every tenant on blocks, and blocks in instances (numbered from 0)."""

    technique: Technique
    blocks: tuple[Block, ...]
    instance_of: tuple[int, ...]

    @property
    def instances(self) -> int:
        """Instances that it fills."""
        return max(self.instance_of) + 1

    @property
    def devices(self) -> int:
        """Devices that it fills."""
        return sum(block.devices for block in self.blocks)

    @property
    def replicas(self) -> Counter[int]:
        """Replicas by tenant."""
        return Counter(need.tenant for block in self.blocks for need in block.needs)

    def needs(self) -> Iterator[Need]:
        """The need of every tenant, in their order."""
        seen: dict[int, Need] = {need.tenant: need for block in self.blocks for need in block.needs}
        yield from (seen[tenant] for tenant in sorted(seen))


def arrangements(chosen: Sequence[Sequence[Need]], devices: int) -> Iterator[Arrangement]:
    """The best of every way to share one platform, the way that shares least first.

    Args:
        chosen: by tenant, the need of each kind of place at one width of precision.
        devices: of one instance.
    """
    whole = _separate(chosen)
    if whole is not None:
        fraction = whole[0].needs[0].place.platform.fraction < 1.0
        yield from _packed("fractional" if fraction else "separate", whole, devices)
    if any(need.place.kind == "slice" for needs in chosen for need in needs):
        cut = _sliced(chosen, devices)
        yield from _packed("mig", cut, devices) if cut else ()
    if any(need.place.kind == "turn" for needs in chosen for need in needs):
        turns = _turned(chosen)
        yield from _packed("time-slicing", turns, devices) if turns else ()


def _packed(technique: Technique, blocks: Sequence[Block], devices: int) -> Iterator[Arrangement]:
    bins = fewest_bins([(float(block.devices),) for block in blocks], (float(devices),))
    if bins is not None:
        yield Arrangement(technique=technique, blocks=tuple(blocks), instance_of=tuple(bins))


def _alone(needs: Sequence[Need]) -> Need | None:
    """The need on whole devices that takes fewest of them."""
    whole = [need for need in needs if need.place.kind == "whole"]
    return min(whole, key=lambda need: (need.replicas * need.place.devices, need.place.devices), default=None)


def _copies(need: Need) -> list[Block]:
    return [Block(devices=need.place.devices, needs=(need,))] * need.replicas


def _separate(chosen: Sequence[Sequence[Need]]) -> list[Block] | None:
    alone = [_alone(needs) for needs in chosen]
    return None if None in alone else [block for need in alone if need for block in _copies(need)]


def _sliced(chosen: Sequence[Sequence[Need]], devices: int) -> list[Block] | None:
    """Every tenant on slices of one profile, or on whole devices: the combination that fills fewest instances."""
    choices = [_slice_choices(needs) for needs in chosen]
    best: tuple[tuple[int, int, float], list[Block]] | None = None
    for combination in islice(product(*choices), MOST_CHOICES):
        if not any(need.place.kind == "slice" for need in combination):
            continue
        blocks = _on_slices(combination)
        bins = None if blocks is None else fewest_bins([(float(one.devices),) for one in blocks], (float(devices),))
        if blocks is None or bins is None:
            continue
        taken = sum(need.replicas * max(need.size) for need in combination)
        key = max(bins) + 1, sum(block.devices for block in blocks), taken
        if best is None or key < best[0]:
            best = key, blocks
    return None if best is None else best[1]


def _slice_choices(needs: Sequence[Need]) -> list[Need]:
    """Profiles and whole devices on which a tenant can live, the smallest part of a GPU first."""
    alone = _alone(needs)
    held = [*(need for need in needs if need.place.kind == "slice"), *([alone] if alone else [])]
    return sorted(held, key=lambda need: need.replicas * max(need.size))


def _on_slices(combination: Sequence[Need]) -> list[Block] | None:
    """Slices packed on as few GPUs as can be: memory and compute of a GPU are the two sizes of its room."""
    cut = [need for need in combination if need.place.kind == "slice" for _ in range(need.replicas)]
    whole = [block for need in combination if need.place.kind == "whole" for block in _copies(need)]
    bins = fewest_bins([need.size for need in cut], WHOLE_GPU)
    if bins is None:
        return None
    gpus = range(max(bins) + 1)
    cuts = [
        Block(devices=1, needs=tuple(need for need, at in zip(cut, bins, strict=True) if at == gpu)) for gpu in gpus
    ]
    return [*cuts, *whole]


def _turned(chosen: Sequence[Sequence[Need]]) -> list[Block] | None:
    """Groups of tenants that take turns, each group on as many GPUs as its neediest tenant asks: fewest in all.

    Exact, by the fewest devices for every set of tenants.
    """
    by_sharers = [{need.place.sharers: need for need in needs if need.place.kind == "turn"} for needs in chosen]
    alone = [_alone(needs) for needs in chosen]
    fewest: dict[int, tuple[int, list[Block]]] = {0: (0, [])}
    for held in range(1, 1 << len(chosen)):
        lowest = held & -held
        rest, group = held ^ lowest, held ^ lowest
        found: tuple[int, list[Block]] | None = None
        while True:
            members = [place for place in range(len(chosen)) if (lowest | group) >> place & 1]
            blocks = _group(members, by_sharers, alone)
            left = fewest.get(rest ^ group)
            if blocks is not None and left is not None:
                taken = left[0] + sum(block.devices for block in blocks)
                if found is None or taken < found[0]:
                    found = taken, [*left[1], *blocks]
            if not group:
                break
            group = (group - 1) & rest
        if found is not None:
            fewest[held] = found
    whole = fewest.get((1 << len(chosen)) - 1)
    return None if whole is None or not any(len(block.needs) > 1 for block in whole[1]) else whole[1]


def _group(
    members: Sequence[int], by_sharers: Sequence[Mapping[int, Need]], alone: Sequence[Need | None]
) -> list[Block] | None:
    """One group's blocks: alone on whole devices, or together where a GPU's memory holds all of them."""
    if len(members) == 1:
        need = alone[members[0]]
        return None if need is None else _copies(need)
    needs = [by_sharers[place].get(len(members)) for place in members]
    together = tuple(need for need in needs if need is not None)
    if len(together) < len(members):
        return None
    seat = together[0].layout.seat
    room = seat.platform.device_memory_bytes * seat.limits.utilization
    if sum(need.device_bytes for need in together) > room:
        return None
    return [Block(devices=1, needs=together)] * max(need.replicas for need in together)
