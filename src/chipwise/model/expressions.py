"""Sizes written as text: sums of products of config keys, such as `2*hidden_size/num_heads+1`, evaluated exactly.

A term is numbers and keys joined by `*` and `/`, multiplied first and divided (rounding down) at its end; terms are
joined by `+`. A key may be nested (`vision_config.depths.0`); `a~b` is a divided by b, rounded down, as one factor.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

Value = int | float
_FACTOR = re.compile(r"([*/]?)([^*/]+)")
_NUMBER = re.compile(r"-?\d+$")


def evaluate(text: str, value: Callable[[str], Value]) -> int:
    """The size that `text` says, with `value` giving the number under each key.

    Raises:
        ZeroDivisionError: a key that divides is 0.

    >>> evaluate("2*image~patch*image~patch/3+1", {"image": 225, "patch": 16}.__getitem__)
    131
    """
    total = 0
    for factors in _terms(text):
        above: Value = 1
        below: Value = 1
        for divides, name in factors:
            number = _number(name, value)
            above, below = (above, below * number) if divides else (above * number, below)
        total += int(above // below)
    return total


@cache
def _terms(text: str) -> tuple[tuple[tuple[bool, str], ...], ...]:
    return tuple(tuple((sign == "/", name) for sign, name in _FACTOR.findall(term)) for term in text.split("+"))


def _number(name: str, value: Callable[[str], Value]) -> Value:
    if _NUMBER.match(name):
        return int(name)
    first, mark, second = name.partition("~")
    return value(first) // value(second) if mark else value(name)


def names_in(text: str) -> set[str]:
    """The keys that an expression reads.

    >>> sorted(names_in("2*width+image~patch"))
    ['image', 'patch', 'width']
    """
    return {name for name in re.split(r"[*/+~]", text) if not _NUMBER.match(name)}
