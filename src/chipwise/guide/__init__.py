"""Takes plain values; gives what the guide says of them: grades, features needed, its flow, each with its line.

Read `ratings.py` and `checklist.py` first; the guide's content is in `data/`.
"""

from chipwise.guide.checklist import FeatureNeed, checklist_row, feature_needs
from chipwise.guide.features import FEATURES, Feature, feature_of
from chipwise.guide.floors import Floor, precision_floor
from chipwise.guide.flow import FlowEnd, model_scale, walk_flow
from chipwise.guide.ratings import grade

__all__ = [
    "FEATURES",
    "Feature",
    "FeatureNeed",
    "Floor",
    "FlowEnd",
    "checklist_row",
    "feature_needs",
    "feature_of",
    "grade",
    "model_scale",
    "precision_floor",
    "walk_flow",
]
