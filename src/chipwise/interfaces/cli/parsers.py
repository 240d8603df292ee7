"""One text to one value. Every parser refuses what it does not understand by raising `InputError`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TypeVar

from chipwise.errors import InputError, near_names
from chipwise.units import parse_count, parse_seconds, parse_usd

_LARGEST = 10**15
_WEEK = "1w"
Number = TypeVar("Number", int, float)


def choice(*allowed: str) -> Callable[[str], str]:
    """A parser that takes one of `allowed` and nothing else.

    >>> choice("any", "spot")("spot")
    'spot'
    """

    def parse(text: str) -> str:
        if text in allowed:
            return text
        near = near_names(text, allowed)
        fix = f"did you mean {' or '.join(near)}?" if near else f"choose {', '.join(allowed)}"
        raise InputError(f"{text!r} is not a choice", why=f"it takes {', '.join(allowed)}", fix=fix)

    return parse


def positive(parse: Callable[[str], Number]) -> Callable[[str], Number]:
    """The same parser, which refuses zero, negative and absurdly large values.

    >>> positive(parse_count)("64")
    64
    """

    def checked(text: str) -> Number:
        value = parse(text)
        if not 0 < value <= _LARGEST:
            raise InputError(f"{text!r} is out of range", why="it must be above zero", fix="write 1, 64 or 8k")
        return value

    return checked


def whole_or_zero(text: str) -> int:
    """A count that may be zero.

    >>> whole_or_zero("0")
    0
    """
    return 0 if text.strip() == "0" else positive(parse_count)(text)


def tokens(text: str) -> int:
    """A length in tokens, where 8k is 8,192.

    >>> tokens("8k")
    8192
    """
    return parse_count(text, binary=True)


def number(text: str) -> float:
    """A plain number.

    >>> number("1.5")
    1.5
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{text[:64]!r} is not a number", why="it cannot be read as one", fix="write 1 or 1.5")
    return value


def at_least_one(text: str) -> float:
    """A factor that may only add.

    >>> at_least_one("1.25")
    1.25
    """
    value = positive(number)(text)
    if value < 1.0:
        raise InputError(f"{text!r} is below 1", why="headroom adds to what is needed", fix="write 1, 1.25 or 2")
    return value


def fraction(text: str) -> float:
    """A share between 0 and 1: `0.9` or `90%`.

    >>> fraction("90%"), fraction("0.999")
    (0.9, 0.999)
    """
    body, percent, rest = text.strip().partition("%")
    value = number(body) / (100.0 if percent else 1.0)
    if rest or not 0.0 <= value <= 1.0:
        raise InputError(f"{text!r} is not a share", why="it lies between 0 and 1", fix="write 0.9 or 90%")
    return value


def weeks(text: str) -> float:
    """A time in weeks: `6`, `6w`, `45d`.

    >>> weeks("6"), weeks("14d")
    (6.0, 2.0)
    """
    bare = re.fullmatch(r"\s*[\d.]+\s*", text)
    return parse_seconds(f"{text}w" if bare else text) / parse_seconds(_WEEK)


def price(text: str) -> tuple[str, float]:
    """A price of your own for one size: `TYPE=USD`, per hour.

    >>> price("g6e.12xlarge=7.5")
    ('g6e.12xlarge', 7.5)
    """
    name, equals, amount = text.partition("=")
    if not equals or not name.strip():
        raise InputError(f"{text!r} is not a price", why="it lacks TYPE=USD", fix="write --price TYPE=USD, per hour")
    return name.strip(), positive(parse_usd)(amount)


def grid(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A table to fill: contexts, `x`, concurrencies.

    >>> grid("8k,32k x 1,16")
    ((8192, 32768), (1, 16))
    """
    halves = re.split(r"\s*[x\u00d7]\s*", text.strip())
    lists = [[part for part in half.split(",") if part.strip()] for half in halves]
    if len(lists) != 2 or not all(lists):
        fix = "write CONTEXTSxCONCURRENCIES such as 8k,32kx1,16"
        raise InputError(f"{text!r} is not a table", why="it needs one x between two lists", fix=fix)
    contexts, concurrencies = lists
    return tuple(map(positive(tokens), contexts)), tuple(map(positive(parse_count), concurrencies))
