"""Takes a `Question` of plain data; gives `Advice`: enumerate, reject with reason, predict, score, rank. Pure.

Read `verdict.py` first, then `screen.py`, `serving/`, `training/` and `rank.py`. The public names are imported when
they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chipwise.decide.advice import Advice, Option
    from chipwise.decide.question import Demand, Policy, Question, TrainingDemand
    from chipwise.decide.verdict import decide, unheard

__all__ = ["Advice", "Demand", "Option", "Policy", "Question", "TrainingDemand", "decide", "unheard"]

_HOME = {
    "Advice": "chipwise.decide.advice",
    "Demand": "chipwise.decide.question",
    "Option": "chipwise.decide.advice",
    "Policy": "chipwise.decide.question",
    "Question": "chipwise.decide.question",
    "TrainingDemand": "chipwise.decide.question",
    "decide": "chipwise.decide.verdict",
    "unheard": "chipwise.decide.verdict",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: a door pays for what it asks."""
    if name not in _HOME:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(_HOME[name]), name)
