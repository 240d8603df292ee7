"""How much of a device an engine sees: CUDA's total, a little less than `nvidia-smi` or a data sheet say."""

from __future__ import annotations

from functools import cache

from chipwise.facts import FactTable, read_facts, values_of
from chipwise.memory.profile import DATA, sources
from chipwise.parallelism import Number


@cache
def _table() -> FactTable:
    return read_facts(DATA / "capacity.csv", sources())


def visible_bytes(chip: str, memory_bytes: Number) -> Number:
    """The total an engine divides on this chip: as printed in engine logs, else `fraction x memory_bytes`.

    Args:
        chip: catalog id.
        memory_bytes: what the catalog says it has (driver, API or vendor).

    >>> round(visible_bytes("h100-sxm", 80 * 2**30) / 2**30, 2), round(visible_bytes("a slice", 1e9) / 1e9, 3)
    (79.19, 0.989)
    """
    printed = values_of(_table(), chip).get("visible")
    if printed is not None:
        return float(printed)
    return memory_bytes * float(values_of(_table(), "any")["visible_fraction"])
