"""Takes tables of published measurements; gives how far chipwise is off, item by item. Read `validate.py` first."""

from chipwise.audit.validate import KINDS, ValidateRequest, validate

__all__ = ["KINDS", "ValidateRequest", "validate"]
