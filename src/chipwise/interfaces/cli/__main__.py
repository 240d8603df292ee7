"""`python -m chipwise.interfaces.cli` is the command `chipwise`."""

from chipwise.interfaces.cli.door import main

main()
