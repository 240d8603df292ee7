"""Takes what a user types or sends; gives what the rooms below answer. Read `cli/door.py` first.

A door parses, calls `chipwise.advisor` and prints. It holds no arithmetic, no ranking and no default value.
"""
