"""Takes a size, the regions asked for and a replica's devices; gives where it can be had and how replicas pack.

Read `offers.py` first.
"""

from chipwise.capacity.blocks import block_problem, blocks_for
from chipwise.capacity.offers import COMMITMENTS, buyable_terms, known_regions, offered_regions
from chipwise.capacity.packing import Packing, pack
from chipwise.capacity.redundancy import Redundancy, redundancy_for

__all__ = [
    "COMMITMENTS",
    "Packing",
    "Redundancy",
    "block_problem",
    "blocks_for",
    "buyable_terms",
    "known_regions",
    "offered_regions",
    "pack",
    "redundancy_for",
]
