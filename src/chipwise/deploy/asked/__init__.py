"""Takes a plan's JSON and what you say; gives one option and your parameters, checked. Read `chosen.py` first."""
