"""Takes an option; gives how its replicas lie on nodes, and what launches those. Read `shape.py`, then `targets.py`."""
