"""`python -m chipwise` is the command `chipwise`."""

from chipwise.interfaces.cli import main

main()
