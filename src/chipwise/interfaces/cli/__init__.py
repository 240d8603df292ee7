"""Takes an argument list; gives text or one JSON document and an exit status. Read `door.py` first.

Nothing is imported before it is needed: `--help` loads click and nothing else.
"""

from chipwise.interfaces.cli.door import cli, main

__all__ = ["cli", "main"]
