"""Takes CSV tables of facts and sources; gives `Fact` objects, proves their provenance. Read `fact.py` first.

It knows no chip, engine or price: the rooms below bring their own tables.
`chipwise.facts.provenance` proves them.
"""

from chipwise.facts.fact import KIND_RANK, Evidence, Fact, Kind, Source, Value
from chipwise.facts.measure import UNITS, base_value
from chipwise.facts.table import FactTable, facts_of, read_facts, read_rows, read_sources, values_of

__all__ = [
    "KIND_RANK",
    "UNITS",
    "Evidence",
    "Fact",
    "FactTable",
    "Kind",
    "Source",
    "Value",
    "base_value",
    "facts_of",
    "read_facts",
    "read_rows",
    "read_sources",
    "values_of",
]
