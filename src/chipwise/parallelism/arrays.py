"""The number type of the arithmetic rooms: a float or an array, so that one formula serves one and many."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Number = float | NDArray[np.floating[Any]]


Condition = bool | np.bool_ | NDArray[np.bool_]


def anywhere(condition: Condition) -> bool:
    """Whether a condition holds for any of many; of one number the condition itself, without numpy's detour.

    >>> anywhere(2.0 > 1), anywhere(np.array([0.0, 0.5]) > 1)
    (True, False)
    """
    return bool(condition) if isinstance(condition, bool | np.bool_) else bool(condition.any())


def ceil_div(total: Number, parts: Number) -> Number:
    """`ceil(total / parts)` for floats or arrays.

    >>> float(ceil_div(80, 3))
    27.0
    """
    return np.ceil(np.asarray(total) / parts)
