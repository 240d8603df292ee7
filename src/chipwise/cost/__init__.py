"""Takes prices, hours and tokens; gives USD as ranges with a date, or typed absence. Read `quote.py` first."""

from chipwise.cost.quote import Quote, best_quote, quote, sold_instances, spot_range
from chipwise.cost.tokens import usd_per_million_tokens

__all__ = ["Quote", "best_quote", "quote", "sold_instances", "spot_range", "usd_per_million_tokens"]
