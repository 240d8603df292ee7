"""What an infrastructure feature does in seconds here: words for the checklist, each figure computed in this answer."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from chipwise.facts import read_rows
from chipwise.units import show_bytes, show_seconds

DATA = Path(__file__).parent / "data"
COLUMNS = ("key", "value", "unit", "kind", "source", "where", "read_on")
FSX = "docs.aws.amazon.com FSx for Lustre, performance, throughput to individual client instances"
OVERSUBSCRIBED = 2.0
"""What a network that is not non-blocking is compared with: half of its bandwidth between distant instances."""


@cache
def storage() -> Mapping[str, float]:
    """Rates of storage by key, bytes a second."""
    return {row[0]: float(row[1]) for _, row in read_rows(DATA / "storage.csv", COLUMNS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a feature does here, in words with their seconds; who says what was not computed in this answer."""

    words: str
    source: str = "this answer's terms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Seconds of one unit of work (a token, a step): in all, in collectives inside a node, and between nodes."""

    unit: str
    total_s: float
    inside_s: float
    between_s: float

    def share(self, seconds: float) -> str:
        """Seconds with their share of the whole."""
        return (
            f"{show_seconds(seconds)} of the {show_seconds(self.total_s)} of {self.unit} ({seconds / self.total_s:.1%})"
        )


def spent(
    terms: Mapping[str, float],
    *,
    unit: str,
    communication: AbstractSet[str],
    inside: AbstractSet[str],
    nodes: int,
) -> Spent:
    """Sum the terms of one unit of work; on one node nothing is between nodes.

    Args:
        terms: seconds by operation.
        unit: what they are the time of, with its article.
        communication: operations that are collectives.
        inside: those of them whose groups stay inside a node.
        nodes: instances that work on one unit.

    >>> terms = {"tp": 0.5, "dp": 0.25, "gemm": 1.25}
    >>> spent(terms, unit="a step", communication={"tp", "dp"}, inside={"tp"}, nodes=2)
    Spent(unit='a step', total_s=2.0, inside_s=0.5, between_s=0.25)
    """
    wires = {name: seconds for name, seconds in terms.items() if name in communication}
    inside_s = sum(seconds for name, seconds in wires.items() if name in inside or nodes == 1)
    return Spent(unit=unit, total_s=sum(terms.values()), inside_s=inside_s, between_s=sum(wires.values()) - inside_s)


def communication_effects(one: Spent, *, nodes: int, large_from: int) -> dict[str, Effect]:
    """What links and networks carry, by feature.

    Args:
        one: what a unit of work spends.
        nodes: instances that work on it.
        large_from: instances from which the guide asks for an UltraCluster.
    """
    found = {}
    if one.inside_s > 0:
        found["nvlink"] = Effect(words=f"its collectives take {one.share(one.inside_s)}")
    if one.between_s > 0:
        crossing = one.share(one.between_s)
        found["efa"] = Effect(words=f"what crosses it takes {crossing}")
        unknown = f"{crossing} cross the network; no source that was read times the copy it spares"
        found["gpudirect-rdma"] = Effect(words=unknown)
    if one.between_s > 0 and nodes >= large_from:
        more = show_seconds(one.between_s * (OVERSUBSCRIBED - 1.0))
        counted = f"{one.unit} counts on a non-blocking network among {nodes} instances"
        found["ultracluster"] = Effect(words=f"{counted}: half of its bandwidth would add {more}")
    return found


def checkpoint_effect(*, size_bytes: float, clients: int, interval_s: float | None, write_s: float) -> Effect:
    """What GPUDirect Storage does for a checkpoint: the least time by each way to the file system, and what is counted.

    Args:
        size_bytes: of one checkpoint.
        clients: instances that write it.
        interval_s: between two; None where none is written.
        write_s: what the answer counts for one.

    >>> checkpoint_effect(size_bytes=1.2e12, clients=8, interval_s=3600.0, write_s=245.0).words.partition(":")[0]
    'a checkpoint of 1.09 TiB from 8 instances takes at least 1.00 s by GDS, 1.71 s by EFA alone, 12.0 s by ENA'
    """
    each = size_bytes / clients
    least = {name: show_seconds(each / storage()[f"client_{name}"]) for name in ("gds", "efa", "ena")}
    ways = f"{least['gds']} by GDS, {least['efa']} by EFA alone, {least['ena']} by ENA"
    often = f", every {show_seconds(interval_s)}" if interval_s else ""
    counted = (
        f"counted here are {show_seconds(write_s)} of writing{often}, at the rate measured of a client of a small "
    )
    counted += "file system; training stands only while its states are copied to host memory, where that holds them"
    words = f"a checkpoint of {show_bytes(size_bytes)} from {clients} instances takes at least {ways}: {counted}"
    return Effect(words=words, source=FSX)


def term_seconds(terms: list[dict[str, Any]], key: str) -> tuple[dict[str, float], frozenset[str]]:
    """Seconds by operation, and which operations are collectives, of an answer's terms."""
    seconds = {str(term["op"]): float(term[key] or 0.0) for term in terms}
    return seconds, frozenset(str(term["op"]) for term in terms if term["bound_by"] == "communication")
