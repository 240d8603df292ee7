"""Pieces into bins, as few as can be: exact by branch and bound for few pieces, first fit decreasing beyond.

A piece has a size in each of one or two dimensions (devices; shares of a GPU's memory and compute), and so has
what a bin holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

EXACT_PIECES = 12
"""Pieces up to which the fewest bins are found for certain."""
TINY = 1e-9

Size = tuple[float, ...]


def fewest_bins(pieces: Sequence[Size], room: Size) -> list[int] | None:
    """The bin of each piece, numbered from 0, using as few bins as possible.

    Args:
        pieces: their sizes.
        room: of every bin.

    Returns:
        None where a piece is larger than a bin.

    >>> fewest_bins([(0.5,), (0.5,), (0.5,)], (1.0,))
    [0, 0, 1]
    >>> fewest_bins([(4 / 8, 3 / 7), (4 / 8, 4 / 7)], (1.0, 1.0))
    [0, 0]
    >>> fewest_bins([(5.0,), (5.0,), (4.0,), (3.0,), (3.0,)], (10.0,))
    [0, 0, 1, 1, 1]
    >>> fewest_bins([(2.0,)], (1.0,)) is None
    True
    """
    if any(not _fits(piece, room) for piece in pieces):
        return None
    order = sorted(range(len(pieces)), key=lambda place: (-max(_shares(pieces[place], room)), place))
    sizes = [pieces[place] for place in order]
    found = _first_fit(sizes, room)
    least = fewest_possible(pieces, room)
    if max(found, default=-1) + 1 > least and len(pieces) <= EXACT_PIECES:
        found = _branch(sizes, room, found, least)
    return _renumbered([found[order.index(place)] for place in range(len(pieces))])


def fewest_possible(pieces: Sequence[Size], room: Size) -> int:
    """No packing uses fewer bins: the total of the dimension that is fullest, over a bin's.

    >>> fewest_possible([(0.25, 0.5), (0.25, 0.6)], (1.0, 1.0))
    2
    """
    totals = [sum(piece[axis] for piece in pieces) / room[axis] for axis in range(len(room))]
    return math.ceil(max(totals) - TINY)


def _shares(piece: Size, room: Size) -> list[float]:
    return [part / whole for part, whole in zip(piece, room, strict=True)]


def _fits(piece: Size, left: Size) -> bool:
    return all(part <= rest + TINY for part, rest in zip(piece, left, strict=True))


def _without(left: Size, piece: Size) -> Size:
    return tuple(rest - part for rest, part in zip(left, piece, strict=True))


def _first_fit(pieces: Sequence[Size], room: Size) -> list[int]:
    left: list[Size] = []
    found = []
    for piece in pieces:
        place = next((at for at, rest in enumerate(left) if _fits(piece, rest)), len(left))
        if place == len(left):
            left.append(room)
        left[place] = _without(left[place], piece)
        found.append(place)
    return found


def _branch(pieces: Sequence[Size], room: Size, best: list[int], least: int) -> list[int]:
    """Every piece in every bin that differs, skipping what cannot beat the best; stops at the fewest possible."""
    stack: list[tuple[list[int], list[Size]]] = [([], [])]
    most = max(best) + 1
    while stack and most > least:
        placed, left = stack.pop()
        if len(left) >= most:
            continue
        if len(placed) == len(pieces):
            best, most = placed, len(left)
            continue
        piece = pieces[len(placed)]
        tried: set[Size] = set()
        nexts = []
        for at, rest in enumerate([*left, room]):
            if rest not in tried and _fits(piece, rest):
                tried.add(rest)
                nexts.append(([*placed, at], [*left[:at], _without(rest, piece), *left[at + 1 :]]))
        stack += reversed(nexts)
    return best


def _renumbered(bins: Sequence[int]) -> list[int]:
    """Bins numbered in the order in which they first appear."""
    names: dict[int, int] = {}
    return [names.setdefault(one, len(names)) for one in bins]
