"""Takes a `Question` with several tenants; gives the sizes that hold all their models, and options in full.

A tenant is one model with its own load and bars. Read `search.py` first, then `places.py`, `needs.py`,
`packing.py`, `deployment.py` and `option.py`.
"""
