"""Takes typed objects; gives files with their text, and writes them. Read `bundle.py` first."""
