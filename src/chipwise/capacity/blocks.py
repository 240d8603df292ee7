"""What Capacity Blocks can be had: how many instances a block, how many at once, for how long."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

from chipwise.facts import read_rows

DATA = Path(__file__).parent / "data"
COLUMNS = ("key", "value", "unit", "kind", "source", "where", "read_on")
SECONDS_PER_DAY = 86400.0
SOURCE = "docs.aws.amazon.com EC2 Capacity Blocks for ML"


@cache
def _limits() -> dict[str, float]:
    return {row[0]: float(row[1]) for _, row in read_rows(DATA / "blocks.csv", COLUMNS)}


def blocks_for(instances: int) -> int:
    """Capacity Blocks that so many instances are.

    >>> blocks_for(64), blocks_for(128), blocks_for(129)
    (1, 2, 3)
    """
    return math.ceil(instances / _limits()["instances_a_block"])


def block_problem(*, instances: int, duration_s: float) -> str | None:
    """Why Capacity Blocks do not hold so many instances for so long; None where they do.

    >>> block_problem(instances=256, duration_s=30 * 86400.0) is None
    True
    >>> block_problem(instances=512, duration_s=30 * 86400.0)
    'Capacity Blocks hold at most 256 instances at once, not 512'
    >>> block_problem(instances=8, duration_s=200 * 86400.0)
    'a Capacity Block lasts at most 182 days, not 200'
    """
    limits = _limits()
    if instances > limits["instances_at_once"]:
        return f"Capacity Blocks hold at most {limits['instances_at_once']:.0f} instances at once, not {instances}"
    days = duration_s / SECONDS_PER_DAY
    if days > limits["longest"]:
        return f"a Capacity Block lasts at most {limits['longest']:.0f} days, not {math.ceil(days)}"
    return None
