"""Takes a picked serving deployment; gives two pools, prefill and decode, where these cost less, or why they do not.

Read `search.py` first, then `rows.py`, `deployment.py` and `option.py`.
"""
