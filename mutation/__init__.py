"""Takes rooms of the package; gives the share of planted faults that their tests notice. Read `faults.py` first."""
