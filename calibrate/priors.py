"""What is fitted: every variable is the logarithm of a factor on a starting value, with a prior of its own width."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where a parameter starts in a scope, and who says so."""

    value: float
    kind: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A factor on the parameter `name` in a scope; `deviation` is that of its logarithm."""

    name: str
    scope: str
    deviation: float


def starts() -> dict[tuple[str, str], Start]:
    """Starting values by parameter and scope, from `data/starts.csv`."""
    return {
        (row["name"], row["scope"]): Start(value=float(row["value"]), kind=row["kind"], source=row["source"])
        for row in _rows("starts.csv")
    }


def variables(scopes: Iterable[str]) -> list[Variable]:
    """The variables of `data/priors.csv` for scopes that some measurement touches, in the order of the table.

    A scope that ends in `*` stands for every scope that begins so; the longest row that matches a scope counts.
    """
    known = sorted({"all", *scopes})
    rows = _rows("priors.csv")
    names = list(dict.fromkeys(row["name"] for row in rows))
    found = []
    for name in names:
        patterns = {row["scope"]: float(row["deviation"]) for row in rows if row["name"] == name}
        for scope in known:
            fitting = [one for one in patterns if _stands_for(one, scope)]
            if fitting:
                found.append(Variable(name=name, scope=scope, deviation=patterns[max(fitting, key=len)]))
    return found


def _stands_for(pattern: str, scope: str) -> bool:
    return scope.startswith(pattern[:-1]) if pattern.endswith("*") else scope == pattern


def _rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))
