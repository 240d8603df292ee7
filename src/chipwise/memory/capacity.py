"""How much of a device an engine sees: CUDA's total, a little less than `nvidia-smi` or a data sheet say."""

from __future__ import annotations

from functools import cache

from chipwise.catalog import load_catalog
from chipwise.facts import FactTable, read_facts, values_of
from chipwise.memory.profile import DATA, sources
from chipwise.parallelism import Number


@cache
def _table() -> FactTable:
    return read_facts(DATA / "capacity.csv", sources())


def visible_bytes(chip: str, memory_bytes: Number) -> Number:
    """The total that an engine divides: a chip of the catalog says it itself, of another device it is a fraction.

    Args:
        chip: catalog id, or a name outside it.
        memory_bytes: what the catalog says the chip has, else the figure on the box read in GiB.

    >>> visible_bytes("h100-sxm", 85_029_000_000), round(visible_bytes("a card of nobody", 1e9) / 1e9, 3)
    (85029000000, 0.989)
    """
    if chip in load_catalog().chips:
        return memory_bytes
    return memory_bytes * float(values_of(_table(), "any")["visible_fraction"])
