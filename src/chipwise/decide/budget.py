"""Terms of a memory budget as whole bytes that add up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def whole_bytes(capacity_bytes: float, terms: Mapping[str, Any]) -> tuple[dict[str, int], int]:
    """Each term rounded; what is free, or what is short, takes the rounding, so that the sum holds to the byte.

    Returns:
        `capacity_bytes`, `free_bytes` and the terms; and the shortfall: terms + free = capacity + shortfall.

    >>> whole_bytes(10.0, {"weights_bytes": 3.6, "cache_bytes": 3.6})
    ({'capacity_bytes': 10, 'free_bytes': 2, 'weights_bytes': 4, 'cache_bytes': 4}, 0)
    >>> whole_bytes(10.0, {"weights_bytes": 13.6})
    ({'capacity_bytes': 10, 'free_bytes': 0, 'weights_bytes': 14}, 4)
    """
    whole = {name: round(float(size)) for name, size in terms.items()}
    left = round(float(capacity_bytes)) - sum(whole.values())
    return {"capacity_bytes": round(float(capacity_bytes)), "free_bytes": max(left, 0)} | whole, max(-left, 0)
