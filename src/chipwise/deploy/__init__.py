"""Takes a plan's JSON and your parameters; gives the files of a deployment. Read `build.py` first: it is the whole way.

`asked/` reads the plan and what you say; `nodes/` lays replicas onto nodes and says what launches them; `setup/`,
`serving/` and `training/` make typed objects, one module a kind of them in `kinds/`; `written/` turns those into files.
`lint/` checks anybody's manifests. Facts stand in `data/`, each with its source. Nothing is ever applied.
"""
