"""Takes a `Question` with a training demand; gives feasible runs by size, and options in full.

Read `search.py` first, then `trials.py`, `deployment.py` and `option.py`.
"""
