"""Takes the guide's cells and boxes; gives each as a question to `plan`, the answer, and why the two differ.

Read `survey.py` first.
"""

from chipwise.audit.guide_check.survey import GuideCheckRequest, check_guide

__all__ = ["GuideCheckRequest", "check_guide"]
