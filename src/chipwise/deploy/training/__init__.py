"""Takes an option that trains; gives its run and its settings. Read `run.py` first."""
