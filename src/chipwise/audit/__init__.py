"""Takes published measurements, or the guide's cells; gives how far chipwise is off, or where and why it differs.

Read `validate.py` first, then `guide_check/survey.py`.
"""

from chipwise.audit.validate import KINDS, ValidateRequest, validate

__all__ = ["KINDS", "ValidateRequest", "validate"]
