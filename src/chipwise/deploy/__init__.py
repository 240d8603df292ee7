"""Takes a plan's JSON and your parameters; gives the files of a deployment. Read `chosen.py`, then `build.py`.

`kinds/` holds one module a kind of object, `targets/` one a provisioner of nodes, `lint/` the checks that schemas
cannot make. Nothing is ever applied.
"""
