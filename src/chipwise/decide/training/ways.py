"""Ways to lay a run: a platform, a number of nodes, tp, pp and cp, a micro-batch; many as one array a degree."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from chipwise.parallelism import tp_problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from chipwise.decide.platforms import Platform
    from chipwise.decide.question import Question
    from chipwise.decide.training.trainers import Scheme, Trainers
    from chipwise.model import ModelSpec

    Floats = NDArray[np.float64]

NODES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 2048)
MICRO_BATCHES = (1, 2, 4, 8, 16)
SAMPLE_BATCHES = tuple(2**power for power in range(18))
"""Samples are smaller than sequences, down to the row of a table."""
DEGREES = (1, 2, 4, 8, 16, 32)
STAGES = (1, 2, 4, 8, 16)
KEPT = 30
"""Sets of rows that are remembered: about ten questions' worth."""
COLUMNS = ("nodes", "tp", "pp", "vp", "ep", "dp", "cp", "micro_batch")
"""What a row says beside its platform."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One row: scalars. `vp` chunks of layers make a pipeline stage (interleaving)."""

    platform: Platform
    nodes: int
    tp: int
    pp: int
    vp: int = 1
    ep: int
    dp: int
    cp: int = 1
    micro_batch: int

    @property
    def devices(self) -> int:
        """Devices of the whole run."""
        return self.platform.devices * self.nodes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ways:
    """Many rows: the platform of each by its place among `platforms`, and its `COLUMNS`."""

    platforms: tuple[Platform, ...]
    place: NDArray[np.intp]
    degrees: Floats
    """Rows by `COLUMNS`."""

    def __len__(self) -> int:
        """Rows."""
        return len(self.place)

    def __getitem__(self, row: int) -> Way:
        """One row."""
        values = dict(zip(COLUMNS, map(int, self.degrees[row].tolist()), strict=True))
        return Way(platform=self.platforms[self.place[row]], **values)

    def column(self, name: str) -> Floats:
        """One of `COLUMNS` of every row."""
        found: Floats = self.degrees[:, COLUMNS.index(name)]
        return found

    def at(self, rows: NDArray[np.intp]) -> Ways:
        """Some of the rows, in that order."""
        return replace(self, place=self.place[rows], degrees=self.degrees[rows])

    def of_platforms(self, values: Sequence[float]) -> Floats:
        """What holds of each platform, for every row."""
        found: Floats = np.array(values, dtype=float)[self.place]
        return found

    def fleets(self) -> list[tuple[int, int]]:
        """Where the rows of one platform on one number of nodes begin and end: they stand together."""
        nodes = self.column("nodes")
        changes = (np.diff(self.place) != 0) | (np.diff(nodes) != 0)
        edges = [0, *(int(one) + 1 for one in np.flatnonzero(changes)), len(self)]
        return list(pairwise(edges))


def one_way(way: Way) -> Ways:
    """A single row."""
    return _of_one_platform([way])


def sample_ways(way: Way, global_batch: float) -> Ways:
    """One way with every micro-batch of samples that the batch holds."""
    sizes = [size for size in SAMPLE_BATCHES if size * way.dp <= global_batch]
    return _of_one_platform([replace(way, micro_batch=size) for size in sizes])


def _of_one_platform(rows: Sequence[Way]) -> Ways:
    degrees = np.array([[float(getattr(way, name)) for name in COLUMNS] for way in rows])
    return Ways(platforms=(rows[0].platform,), place=np.zeros(len(rows), dtype=np.intp), degrees=degrees)


def ways_of(question: Question, seats: Sequence[tuple[Platform, Trainers]], scheme: Scheme) -> Ways | None:
    """Every row of every platform under a scheme; None where there is none."""
    return _laid(tuple((platform, _asked(question, platform, trainers, scheme)) for platform, trainers in seats))


@lru_cache(maxsize=KEPT)
def _laid(seats: tuple[tuple[Platform, _Asked], ...]) -> Ways | None:
    laid = [(platform, rows) for platform, asked in seats if len(rows := _rows(asked))]
    if not laid:
        return None
    return Ways(
        platforms=tuple(platform for platform, _ in laid),
        place=np.repeat(np.arange(len(laid)), [len(rows) for _, rows in laid]),
        degrees=np.concatenate([rows for _, rows in laid]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What the rows of a platform follow from."""

    model: ModelSpec
    devices: int
    networked: bool
    split: bool
    rings: bool
    documented_tp: frozenset[int]
    micro_batches: tuple[int, ...]
    global_batch: float


def _asked(question: Question, platform: Platform, trainers: Trainers, scheme: Scheme) -> _Asked:
    demand = question.training
    usual = MICRO_BATCHES if demand.sample is None else SAMPLE_BATCHES
    return _Asked(
        model=question.model,
        devices=platform.devices,
        networked=platform.networked,
        split=scheme.split and demand.sample is None,
        rings=scheme.rings and demand.sample is None and _attends(question.model),
        documented_tp=trainers.tp,
        micro_batches=usual if demand.micro_batch is None else (demand.micro_batch,),
        global_batch=demand.global_batch,
    )


def _attends(model: ModelSpec) -> bool:
    """Whether every layer looks back at all tokens, whose keys and values a ring hands on."""
    return all(layer.attention.kind == "full" and layer.attention.causal for layer in model.layers)


@lru_cache(maxsize=64)
def _rows(asked: _Asked) -> Floats:
    """Whole nodes, legal tp, pp and cp, a micro-batch that the batch holds; rows by `COLUMNS`."""
    rows = [row for count in (NODES if asked.networked else NODES[:1]) for row in _on_nodes(asked, count)]
    return np.array(rows, dtype=float).reshape(len(rows), len(COLUMNS))


def _on_nodes(asked: _Asked, count: int) -> Iterator[tuple[int, ...]]:
    devices, batch = asked.devices * count, asked.global_batch
    layers = asked.model.layer_count
    for tp, pp, cp in _splits(asked):
        if devices % (tp * pp * cp):
            continue
        dp = devices // (tp * pp * cp)
        sizes = [size for size in asked.micro_batches if dp * size <= batch]
        for ep in _expert_degrees(asked.model, tp * cp * dp, asked.devices):
            for size in sizes:
                for vp in _interleavings(layers, pp, batch / (dp * size * pp)):
                    yield count, tp, pp, vp, ep, dp, cp, size


def _interleavings(layers: int, pp: int, rounds: float) -> tuple[int, ...]:
    """Stages whole and, where micro-batches come in whole rounds of stages, dealt layer by layer."""
    return (1, layers // pp) if pp > 1 and layers % pp == 0 and rounds == int(rounds) else (1,)


def _splits(asked: _Asked) -> list[tuple[int, int, int]]:
    """Degrees of tp, pp and cp; a ring stays in a node."""
    if not asked.split:
        return [(1, 1, cp) for cp in DEGREES if cp == 1 or (asked.rings and asked.devices % cp == 0)]
    model, documented = asked.model, asked.documented_tp
    degrees = [
        tp
        for tp in DEGREES
        if tp <= asked.devices and tp_problem(model, tp) is None and (not documented or tp in documented)
    ]
    return [(tp, pp, 1) for tp in degrees for pp in STAGES if pp <= model.layer_count]


def _expert_degrees(model: ModelSpec, ranks: int, node: int) -> list[int]:
    routed = [layer.experts.routed for layer in model.layers if layer.experts]
    if not routed:
        return [1]
    legal = [ep for ep in (1, node, 64) if ranks % ep == 0 and all(count % ep == 0 for count in routed)]
    return sorted(set(legal)) or [1]
