"""Takes `LayerShards`, an engine and a chip's bytes; gives a `MemoryBudget` per chip and what fits in it.

Read `serving.py` first.
"""

from chipwise.memory.answer import MemoryAnswer, MemoryBudget, PoolAnswer
from chipwise.memory.cache import (
    CacheKind,
    CacheLayout,
    cache_kinds,
    cache_layout,
    longest_context,
    request_bytes,
)
from chipwise.memory.capacity import visible_bytes
from chipwise.memory.fitting import (
    Change,
    FitOptions,
    SizedChange,
    changes_of,
    min_chips,
    min_split,
    to_make_it_fit,
    ways_of,
)
from chipwise.memory.profile import MemoryProfile, memory_profile
from chipwise.memory.serving import (
    ServingMemoryInput,
    Sized,
    answer_of,
    pool_of,
    settled,
    size_pool,
    size_serving,
    sized,
)
from chipwise.memory.terms import (
    adapters_bytes,
    cache_bytes_per_sequence,
    cache_bytes_per_token,
    layer_peak_bytes,
    sampler_peak_bytes,
    weights_bytes,
)

__all__ = [
    "CacheKind",
    "CacheLayout",
    "Change",
    "FitOptions",
    "MemoryAnswer",
    "MemoryBudget",
    "MemoryProfile",
    "PoolAnswer",
    "ServingMemoryInput",
    "Sized",
    "SizedChange",
    "adapters_bytes",
    "answer_of",
    "cache_bytes_per_sequence",
    "cache_bytes_per_token",
    "cache_kinds",
    "cache_layout",
    "changes_of",
    "layer_peak_bytes",
    "longest_context",
    "memory_profile",
    "min_chips",
    "min_split",
    "pool_of",
    "request_bytes",
    "sampler_peak_bytes",
    "settled",
    "size_pool",
    "size_serving",
    "sized",
    "to_make_it_fit",
    "visible_bytes",
    "ways_of",
    "weights_bytes",
]
