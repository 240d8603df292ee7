"""Takes a `Request`; gives `Advice`, an estimate or a memory budget: the public verbs. Read `plans.py` first.

The public names are imported when they are first used, so that a door pays for what it asks.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chipwise.advisor.comparison import compare
    from chipwise.advisor.estimates import estimate
    from chipwise.advisor.models import describe_model
    from chipwise.advisor.plans import advise
    from chipwise.advisor.reasons import why
    from chipwise.advisor.request import (
        EngineRequest,
        EstimateRequest,
        Request,
        SizeRequest,
        SplitRequest,
        TrainingRequest,
    )
    from chipwise.advisor.sizes import size

__all__ = [
    "EngineRequest",
    "EstimateRequest",
    "Request",
    "SizeRequest",
    "SplitRequest",
    "TrainingRequest",
    "advise",
    "compare",
    "describe_model",
    "estimate",
    "size",
    "why",
]

_HOME = {
    "EngineRequest": "chipwise.advisor.request",
    "EstimateRequest": "chipwise.advisor.request",
    "Request": "chipwise.advisor.request",
    "SizeRequest": "chipwise.advisor.request",
    "SplitRequest": "chipwise.advisor.request",
    "TrainingRequest": "chipwise.advisor.request",
    "advise": "chipwise.advisor.plans",
    "compare": "chipwise.advisor.comparison",
    "describe_model": "chipwise.advisor.models",
    "estimate": "chipwise.advisor.estimates",
    "size": "chipwise.advisor.sizes",
    "why": "chipwise.advisor.reasons",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: a door pays for what it asks."""
    if name not in _HOME:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(_HOME[name]), name)
