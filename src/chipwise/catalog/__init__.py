"""Takes tables of facts; gives `Catalog`: chips, sizes, links, prices, regions. Read `types.py` first.

`load_catalog()` reads the tables of `data/` once; a name is found exactly, by alias, or refused.
`chipwise.catalog.check` proves that the tables are whole and plausible; only the check command pays for it.
"""

from chipwise.catalog.load import load_catalog, read_catalog
from chipwise.catalog.lookup import Catalog
from chipwise.catalog.types import (
    Alias,
    Chip,
    Instance,
    InstanceKind,
    Link,
    LinkKind,
    MigProfile,
    Offering,
    Price,
    Region,
    RegionKind,
    SpotHistory,
    Status,
    Term,
)

__all__ = [
    "Alias",
    "Catalog",
    "Chip",
    "Instance",
    "InstanceKind",
    "Link",
    "LinkKind",
    "MigProfile",
    "Offering",
    "Price",
    "Region",
    "RegionKind",
    "SpotHistory",
    "Status",
    "Term",
    "load_catalog",
    "read_catalog",
]
