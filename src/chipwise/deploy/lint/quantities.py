"""Quantities as Kubernetes writes them: `500m`, `1900Gi`, `8`."""

from __future__ import annotations

import re

_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))([a-zA-Z]*|[eE][+-]?\d+)")
_FACTORS = {
    "": 1.0,
    "m": 1e-3,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "Ki": 2.0**10,
    "Mi": 2.0**20,
    "Gi": 2.0**30,
    "Ti": 2.0**40,
    "Pi": 2.0**50,
}


def quantity(value: object) -> float | None:
    """The number a quantity stands for, in base units; None where it is none.

    >>> quantity("1.5Gi"), quantity("500m"), quantity(8), quantity("lots")
    (1610612736.0, 0.5, 8.0, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    found = _FORM.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return None
    digits, suffix = found.groups()
    if suffix in _FACTORS:
        return float(digits) * _FACTORS[suffix]
    return float(digits + suffix) if re.fullmatch(r"[eE][+-]?\d+", suffix) else None
