"""Takes a `ModelSpec` and a `Split`; gives `LayerShards`: what one device holds and multiplies. Read `shards.py` first.

The public names are imported when they are first used: what is legal needs no numpy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chipwise.parallelism.arrays import Number, anywhere, ceil_div
    from chipwise.parallelism.shards import CacheShard, ExpertShard, GemmShard, LayerShard, LayerShards, shard, tp_share
    from chipwise.parallelism.split import Split, ep_problem, legal_tp, tp_problem

__all__ = [
    "CacheShard",
    "ExpertShard",
    "GemmShard",
    "LayerShard",
    "LayerShards",
    "Number",
    "Split",
    "anywhere",
    "ceil_div",
    "ep_problem",
    "legal_tp",
    "shard",
    "tp_problem",
    "tp_share",
]

_HOME = {
    "CacheShard": "chipwise.parallelism.shards",
    "ExpertShard": "chipwise.parallelism.shards",
    "GemmShard": "chipwise.parallelism.shards",
    "LayerShard": "chipwise.parallelism.shards",
    "LayerShards": "chipwise.parallelism.shards",
    "Number": "chipwise.parallelism.arrays",
    "Split": "chipwise.parallelism.split",
    "anywhere": "chipwise.parallelism.arrays",
    "ceil_div": "chipwise.parallelism.arrays",
    "ep_problem": "chipwise.parallelism.split",
    "legal_tp": "chipwise.parallelism.split",
    "shard": "chipwise.parallelism.shards",
    "tp_problem": "chipwise.parallelism.split",
    "tp_share": "chipwise.parallelism.shards",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: a door pays for what it asks."""
    if name not in _HOME:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(_HOME[name]), name)
