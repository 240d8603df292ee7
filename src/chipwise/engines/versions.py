"""Versions of engines and SDKs as tuples that compare: `0.8.5.post1` is (0, 8, 5)."""

from __future__ import annotations

import re
from functools import lru_cache

Version = tuple[int, ...]
_NUMBERS = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)+|\d+)")


@lru_cache(maxsize=4096)
def parse_version(text: str) -> Version | None:
    """The first dotted number in a text; None where there is none. Suffixes such as `.post1` are dropped.

    >>> parse_version("0.8.5.post1"), parse_version("v0.11.0 (image of the how-to)"), parse_version("main")
    ((0, 8, 5), (0, 11, 0), None)
    """
    match = _NUMBERS.search(text)
    return tuple(int(part) for part in match.group(1).split(".")) if match else None


def at_least(version: Version, floor: Version) -> bool:
    """Whether `version` is `floor` or newer; missing parts count as 0.

    >>> at_least((0, 11), (0, 11, 0)), at_least((0, 9, 2), (0, 10))
    (True, False)
    """
    return _padded(version) >= _padded(floor)


def _padded(version: Version) -> Version:
    """Without trailing zeros, so that 0.11 equals 0.11.0.

    >>> _padded((0, 11, 0))
    (0, 11)
    """
    end = len(version)
    while end and version[end - 1] == 0:
        end -= 1
    return version[:end]
