"""Published measurements in, the fitted tables of perf/data out. Read `__main__.py` first, then `robust.py`.

Nothing here is in the wheel. The product's own rooms build every prediction; this folder only turns knobs.
"""
