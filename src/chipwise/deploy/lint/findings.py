"""What a check says: where, which rule, how bad, why, and how to mend it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]
ERROR: Severity = "error"
WARNING: Severity = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault. error: it is refused or never runs; warning: it runs, but not well or not for long."""

    file: str
    line: int
    rule: str
    severity: Severity
    why: str
    fix: str
