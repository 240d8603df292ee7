"""Takes a `Request`; gives `Advice`, an estimate or a memory budget: the public verbs. Read `advise.py` first."""

from chipwise.advisor.advise import advise
from chipwise.advisor.compare import compare
from chipwise.advisor.describe import describe_model
from chipwise.advisor.estimate import estimate
from chipwise.advisor.request import EngineRequest, EstimateRequest, Request, SizeRequest, SplitRequest, TrainingRequest
from chipwise.advisor.size import size
from chipwise.advisor.why import why

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
