"""Takes a `ModelSpec` and a `Split`; gives `LayerShards`, what one device holds. Read `shard.py` first."""

from chipwise.parallelism.arrays import Number, ceil_div
from chipwise.parallelism.shard import (
    CacheShard,
    ExpertShard,
    GemmShard,
    LayerShard,
    LayerShards,
    shard,
    tp_share,
)
from chipwise.parallelism.split import Split, ep_problem, legal_tp, tp_problem

__all__ = [
    "CacheShard",
    "ExpertShard",
    "GemmShard",
    "LayerShard",
    "LayerShards",
    "Number",
    "Split",
    "ceil_div",
    "ep_problem",
    "legal_tp",
    "shard",
    "tp_problem",
    "tp_share",
]
