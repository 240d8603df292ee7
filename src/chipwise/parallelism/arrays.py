"""The number type of the arithmetic rooms: a float or an array, so that one formula serves one and many."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Number = float | NDArray[np.floating[Any]]


def ceil_div(total: Number, parts: Number) -> Number:
    """`ceil(total / parts)` for floats or arrays.

    >>> float(ceil_div(80, 3))
    27.0
    """
    return np.ceil(np.asarray(total) / parts)
