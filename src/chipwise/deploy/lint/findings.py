"""What a check says: where, which rule, how bad, why, and how to mend it. `data/rules.csv` holds the rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from chipwise.deploy.facts import DATA
from chipwise.facts import read_rows

Severity = Literal["error", "warning"]
ERROR: Severity = "error"
WARNING: Severity = "warning"
COLUMNS = ("rule", "severity", "about", "source")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault. error: it is refused or never runs; warning: it runs, but not well or not for long."""

    file: str
    line: int
    rule: str
    severity: Severity
    why: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A fault that is looked for, and where people met it."""

    name: str
    severity: Severity
    about: str
    source: str


@cache
def rules() -> Mapping[str, Rule]:
    """Every rule by name.

    >>> rules()["efa-count"].severity
    'error'
    """
    return {
        name: Rule(name=name, severity=cast("Severity", severity), about=about, source=source)
        for _, (name, severity, about, source) in read_rows(DATA / "rules.csv", COLUMNS)
    }


def found_at(file: str, line: int, rule: str, *, why: str, fix: str) -> Finding:
    """A finding of a rule on a line; the rule says how bad it is."""
    return Finding(file=file, line=line, rule=rule, severity=rules()[rule].severity, why=why, fix=fix)
