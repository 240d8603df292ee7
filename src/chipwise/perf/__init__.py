"""Takes `LayerShards`, rates, engine limits and a load; gives seconds an operation, step and request.

Read `serving.py` first, then `compositions.py`, `steady.py` and `steps.py`; `operators.py` and
`collectives.py` hold the formulas, `parameters.py` the fitted numbers, `ranges.py` how far a prediction may
be off.
"""
