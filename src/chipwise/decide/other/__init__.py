"""Takes a `Question` whose answers are no token streams; gives feasible deployments by size, and options in full.

Read `search.py` first, then `stands.py`, `deployment.py` and `option.py`.
"""
