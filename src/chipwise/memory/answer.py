"""What sizing a layout for serving says: the budget of one chip, the cache pool and what fits in it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from chipwise.memory.profile import Evidence
from chipwise.parallelism import Number


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBudget:
    """Bytes of the fullest chip of one replica. Terms and `free_bytes` make `capacity_bytes + shortfall`."""

    capacity_bytes: Number
    free_bytes: Number
    reserved_bytes: Number
    weights_bytes: Number
    cache_bytes: Number
    activations_bytes: Number
    graphs_bytes: Number
    overhead_bytes: Number
    adapters_bytes: Number
    draft_bytes: Number
    gradients_bytes: Number = 0.0
    optimizer_bytes: Number = 0.0

    def terms(self) -> dict[str, Number]:
        """The additive terms by name: all but capacity and free."""
        names = [field.name for field in fields(self)]
        return {name: getattr(self, name) for name in names if name not in {"capacity_bytes", "free_bytes"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolAnswer:
    """What `size_pool` says: the part of a `MemoryAnswer` that says whether a layout holds its load. Bytes per chip."""

    budget: MemoryBudget
    shortfall_bytes: Number
    kv_pool_bytes: Number
    usable_pool_bytes: Number
    """What of it requests fill with their tokens and one recurrent state each."""
    state_limit: Number
    """Requests at once that one data-parallel rank has recurrent states for; infinite without such a limit."""
    max_concurrency_at_context: Number
    """Of a replica."""

    @property
    def fits(self) -> Any:
        """As `MemoryAnswer.fits`."""
        return fits(self.shortfall_bytes)


def fits(shortfall_bytes: Number) -> Any:
    """Whether nothing is short: a bool for a number, an array for an array."""
    found = np.asarray(shortfall_bytes) <= 0
    return found if found.shape else bool(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryAnswer:
    """What `size_serving` says. Bytes are per chip, tokens and requests per replica."""

    budget: MemoryBudget
    shortfall_bytes: Number
    kv_pool_bytes: Number
    """What the engine will take for cache; 0 where nothing is left."""
    usable_pool_bytes: Number
    """What of it requests fill with their tokens and one recurrent state each."""
    state_limit: Number
    """As `PoolAnswer.state_limit`."""
    kv_cache_tokens: Number
    """The pool in tokens, as the engine version prints it."""
    max_concurrency_at_context: Number
    longest_context: Number
    """Of which the stated concurrency fits at once."""
    need_bytes: Number
    """Cache that the stated context and concurrency take of a chip."""
    activations_total_bytes: Number
    graphs_total_bytes: Number
    """Working memory and captured graphs, whether or not the engine counts them within the utilization."""
    room_bytes: Number
    """What the rule leaves for the cache on a chip, before it is clipped: below 0 the engine has none."""
    reserve_room_bytes: Number
    """What the reserve has left beside what works outside the utilization: below 0 the engine takes its pool and then
    fails. Activations idle while graphs are captured do not help: what they leave is fragments (1.78 GiB of gpt-oss-20b
    on vLLM 0.19, whose sampler then found no 0.79)."""
    error_bytes: Number
    """By how many bytes the pool of a chip may be off, 8 times in 10."""
    low_fraction: Number
    high_fraction: Number
    """Measured caches lie between these fractions of `kv_pool_bytes` 8 times in 10; both 1 without a pool."""
    evidence: Evidence
    warnings: tuple[str, ...]

    @property
    def fits(self) -> Any:
        """Whether the stated context and concurrency fit; an array for arrays."""
        return fits(self.shortfall_bytes)
