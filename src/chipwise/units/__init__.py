"""Takes text such as `8k`, `500ms`, `40GiB`; gives base units, and back. Read `parse.py` first.

Inside chipwise there is one unit a quantity: bytes, seconds, FLOP, USD, tokens, watts.
"""

from chipwise.units.parse import parse_bytes, parse_count, parse_rate, parse_seconds, parse_usd
from chipwise.units.ranges import Percentiles, Range, finite
from chipwise.units.show import CENT, SMALL, show_bytes, show_count, show_seconds, show_usd

__all__ = [
    "CENT",
    "SMALL",
    "Percentiles",
    "Range",
    "finite",
    "parse_bytes",
    "parse_count",
    "parse_rate",
    "parse_seconds",
    "parse_usd",
    "show_bytes",
    "show_count",
    "show_seconds",
    "show_usd",
]
