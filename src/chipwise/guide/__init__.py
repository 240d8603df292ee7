"""Takes plain values; gives what the guide says of them: grades, needs, signals, flows, claims, each with its line.

Read `claims.py` and `flow.py` first; the guide's content is in `data/`, one table a subject.
"""

from chipwise.guide.ask import Asked, answer_from, check_names, next_question, plan_flags, way, without_last
from chipwise.guide.cells import Cell, cells
from chipwise.guide.checklist import FeatureNeed, FeatureRole, checklist_row, feature_needs, feature_role
from chipwise.guide.claims import Claim, Served, claim, claims, source_text, topics
from chipwise.guide.features import FEATURES, Feature, feature_of
from chipwise.guide.floors import Floor, precision_floor
from chipwise.guide.flow import Box, Checks, Edge, FlowEnd, box, boxes, model_scale, walk, walk_flow
from chipwise.guide.goals import GoalCard, GoalSizes, Setting, goal_card, goal_settings, goal_sizes
from chipwise.guide.purchase import PurchaseAdvice, RegionAdvice, purchase_advice, purchase_pattern, region_advice
from chipwise.guide.ratings import Band, bands, grade
from chipwise.guide.scaling import ScaleRow, scale_signal
from chipwise.guide.sections import claim_object, flow_of, section, section_at, section_list
from chipwise.guide.sharing import SharingAdvice, Technique, fraction_advice, sharing_advice, slice_advice, techniques
from chipwise.guide.signals import NeuronQuestion, Signal, neuron_signals
from chipwise.guide.strict import Letter, StrictQuestion, StrictRejection, letter_of, strict_rejections
from chipwise.guide.terms import Diagnosis, Term, explain_term

__all__ = [
    "FEATURES",
    "Asked",
    "Band",
    "Box",
    "Cell",
    "Checks",
    "Claim",
    "Diagnosis",
    "Edge",
    "Feature",
    "FeatureNeed",
    "FeatureRole",
    "Floor",
    "FlowEnd",
    "GoalCard",
    "GoalSizes",
    "Letter",
    "NeuronQuestion",
    "PurchaseAdvice",
    "RegionAdvice",
    "ScaleRow",
    "Served",
    "Setting",
    "SharingAdvice",
    "Signal",
    "StrictQuestion",
    "StrictRejection",
    "Technique",
    "Term",
    "answer_from",
    "bands",
    "box",
    "boxes",
    "cells",
    "check_names",
    "checklist_row",
    "claim",
    "claim_object",
    "claims",
    "explain_term",
    "feature_needs",
    "feature_of",
    "feature_role",
    "flow_of",
    "fraction_advice",
    "goal_card",
    "goal_settings",
    "goal_sizes",
    "grade",
    "letter_of",
    "model_scale",
    "neuron_signals",
    "next_question",
    "plan_flags",
    "precision_floor",
    "purchase_advice",
    "purchase_pattern",
    "region_advice",
    "scale_signal",
    "section",
    "section_at",
    "section_list",
    "sharing_advice",
    "slice_advice",
    "source_text",
    "strict_rejections",
    "techniques",
    "topics",
    "walk",
    "walk_flow",
    "way",
    "without_last",
]
