"""Takes nothing; gives the tree of errors every room raises. Read this file whole: it is short.

An error that reaches a user says *what* is wrong, *why* it matters and how to *fix* it, and belongs to one of
three families: your input, our knowledge, no feasible answer. Anything else is a bug and keeps its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar, Literal

Family = Literal["input", "knowledge", "infeasible"]


class ChipwiseError(Exception):
    """The root: carries `what`, `why` and `fix`; `exit_status` is what the command line returns.

    >>> UnknownNameError("instance", "p5en.48xlarg", ["p5en.48xlarge", "g6.xlarge"]).fix
    'did you mean p5en.48xlarge?'
    """

    family: ClassVar[Family] = "input"
    exit_status: ClassVar[int] = 2

    def __init__(self, what: str, *, why: str, fix: str) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix

    def as_json(self) -> dict[str, dict[str, str]]:
        """The error object that `--json` prints: `{"error": {what, why, fix, family}}`."""
        return {"error": {"what": self.what, "why": self.why, "fix": self.fix, "family": self.family}}


class InputError(ChipwiseError):
    """Your input is wrong: a flag, a file, a name. Exit status 2."""


class KnowledgeError(ChipwiseError):
    """We lack the knowledge: a chip without a bandwidth, a config that does not say enough. Exit status 3."""

    family: ClassVar[Family] = "knowledge"
    exit_status: ClassVar[int] = 3


class InfeasibleError(ChipwiseError):
    """Answered, and the answer is no: nothing fits, nothing meets the bar. Exit status 1."""

    family: ClassVar[Family] = "infeasible"
    exit_status: ClassVar[int] = 1


class UnknownNameError(InputError):
    """A name that no table holds; the fix proposes near names."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, listing: str = "") -> None:
        near = near_names(name, known)
        hint = f"did you mean {' or '.join(near)}?" if near else (listing or f"see the list of known {kind}s")
        super().__init__(f"unknown {kind} {name!r}", why=f"no {kind} of that name is known", fix=hint)


def near_names(name: str, known: Iterable[str], *, most: int = 3) -> list[str]:
    """Up to `most` known names that look like `name`, best first; case does not count.

    >>> near_names("G6E.12XL", ["g6e.12xlarge", "g6.xlarge"], most=1)
    ['g6e.12xlarge']
    """
    by_lower = {other.lower(): other for other in known}
    hits = difflib.get_close_matches(name.lower(), list(by_lower), n=most, cutoff=0.6)
    return [by_lower[hit] for hit in hits]
