"""Takes a `Question` of plain data; gives `Advice`: enumerate, reject with reason, predict, score, rank. Pure.

Read `verdict.py` first, then `search.py`, `choose.py` and `rank.py`.
"""

from chipwise.decide.advice import Advice, Option
from chipwise.decide.question import Demand, Policy, Question, TrainingDemand
from chipwise.decide.verdict import decide

__all__ = ["Advice", "Demand", "Option", "Policy", "Question", "TrainingDemand", "decide"]
