"""Takes a size, the regions asked for and a replica's devices; gives where it can be had and how replicas pack.

Read `offers.py` first.
"""

from chipwise.capacity.offers import buyable_terms, known_regions, offered_regions
from chipwise.capacity.packing import Packing, pack

__all__ = ["Packing", "buyable_terms", "known_regions", "offered_regions", "pack"]
