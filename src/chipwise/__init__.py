"""chipwise: which AWS accelerator instances for this model and this workload, how many, split how, and why not others.

The public names are imported when they are first used, so that `import chipwise` stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chipwise.advisor import (
        EngineRequest,
        EstimateRequest,
        Request,
        SizeRequest,
        SplitRequest,
        TrainingRequest,
        advise,
        estimate,
        size,
    )
    from chipwise.catalog import load_catalog
    from chipwise.model import load_model

__all__ = [
    "EngineRequest",
    "EstimateRequest",
    "Request",
    "SizeRequest",
    "SplitRequest",
    "TrainingRequest",
    "advise",
    "estimate",
    "load_catalog",
    "load_model",
    "size",
]

_HOME = {
    "EngineRequest": "chipwise.advisor",
    "EstimateRequest": "chipwise.advisor",
    "Request": "chipwise.advisor",
    "SizeRequest": "chipwise.advisor",
    "SplitRequest": "chipwise.advisor",
    "TrainingRequest": "chipwise.advisor",
    "advise": "chipwise.advisor",
    "estimate": "chipwise.advisor",
    "load_catalog": "chipwise.catalog",
    "load_model": "chipwise.model",
    "size": "chipwise.advisor",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        msg = f"module 'chipwise' has no attribute {name!r}"
        raise AttributeError(msg)
    import importlib

    return getattr(importlib.import_module(_HOME[name]), name)
