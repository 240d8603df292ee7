"""Takes a `Question` with a serving demand; gives feasible deployments by size, and options in full.

Read `search.py` first, then `seats.py`, `evaluate.py`, `deployment.py` and `option.py`.
"""
