"""Which format an engine keeps its cache in when nobody says: the checkpoint's own, else the engine's habit."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from chipwise.engines.profile import DATA
from chipwise.facts import read_rows

COLUMNS = ("engine", "weight_family", "kv_format", "source", "where", "read_on")
PLAIN = "bf16"
"""The element of a cache that nothing narrows: 16 bits."""


def default_kv_format(engine: str, *, weight_family: str, stored: str | None = None) -> str:
    """The cache format of an engine that was told none.

    What the checkpoint states beats what the engine does for weights of such a family; neither: 16 bits.

    Args:
        engine: canonical name.
        weight_family: family of the weights' format (`fp8`, `nvfp4`, `bf16`, ...).
        stored: the cache format that the checkpoint states; None where it states none.

    >>> default_kv_format("tensorrt-llm", weight_family="fp8"), default_kv_format("vllm", weight_family="fp8")
    ('fp8', 'bf16')
    """
    return stored or _habits().get((engine, weight_family), PLAIN)


@cache
def _habits() -> Mapping[tuple[str, str], str]:
    rows = (row for _, row in read_rows(DATA / "kv_defaults.csv", COLUMNS))
    return MappingProxyType({(engine, family): kv_format for engine, family, kv_format, *_ in rows})
