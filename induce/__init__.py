"""Takes classes of transformers and diffusers; gives `model/data/tensors`. Read `table.py` first, then `explore.py`.

A development tool, no part of the package: it needs `transformers`, `diffusers` and `torch`, the package does not.
"""
