"""Bins: never fewer than the pieces need, never more than first fit takes; what MIG allows is what the sums allow."""

from __future__ import annotations

from itertools import combinations_with_replacement, permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.decide.sharing.packing import EXACT_PIECES, fewest_bins, fewest_possible

SIZES = st.lists(st.integers(1, 8).map(lambda part: (part / 8, part / 8)), min_size=1, max_size=7)
ROOM = (1.0, 1.0)
STARTS = {(1, 1): range(7), (2, 1): (0, 2, 4, 6), (2, 2): (0, 2, 4), (4, 3): (0, 4), (4, 4): (0,)}
"""Slices of an H100 as (eighths of memory, sevenths of compute), and the memory slots at which NVIDIA lets each start.

Source: NVIDIA Multi-Instance GPU User Guide, sections on profile placements of the A100 and H100.
"""


def test_first_fit_would_take_a_bin_too_many() -> None:
    """Twice 0.45, 0.3 and 0.25 make two full bins; the largest first puts both 0.45 together and needs a third."""
    found = fewest_bins([(0.45,), (0.45,), (0.3,), (0.3,), (0.25,), (0.25,)], (1.0,))
    assert found is not None
    assert max(found) + 1 == 2


@given(SIZES)
def test_no_bin_overflows_and_none_is_spared(pieces: list[tuple[float, float]]) -> None:
    found = fewest_bins(pieces, ROOM)
    assert found is not None
    for one in set(found):
        assert sum(piece[0] for piece, at in zip(pieces, found, strict=True) if at == one) <= 1.0 + 1e-9
    assert fewest_possible(pieces, ROOM) <= max(found) + 1 == brute(pieces)


def brute(pieces: list[tuple[float, float]]) -> int:
    """The fewest bins over every order of first fit: one of the orders is the best packing's own."""
    best = len(pieces)
    for order in set(permutations(pieces)):
        left: list[float] = []
        for size, _ in order:
            place = next((at for at, rest in enumerate(left) if size <= rest + 1e-9), len(left))
            left = [*left, 1.0] if place == len(left) else left
            left[place] -= size
        best = min(best, len(left))
    return best


def test_many_pieces_are_packed_too() -> None:
    pieces = [(0.5,)] * (2 * EXACT_PIECES)
    found = fewest_bins(pieces, (1.0,))
    assert found is not None
    assert max(found) + 1 == EXACT_PIECES


def test_a_piece_larger_than_a_bin_has_no_packing() -> None:
    assert fewest_bins([(1.2,)], (1.0,)) is None


@pytest.mark.parametrize("count", range(1, 8))
def test_slices_whose_memory_and_compute_fit_a_gpu_can_be_placed_on_it(count: int) -> None:
    """The two sums are the whole rule: whatever they allow, NVIDIA's start positions allow."""
    for cut in combinations_with_replacement(sorted(STARTS), count):
        fits = sum(memory for memory, _ in cut) <= 8 and sum(compute for _, compute in cut) <= 7
        if fits:
            assert placeable(cut), cut


def placeable(cut: tuple[tuple[int, int], ...]) -> bool:
    for starts in product(*(STARTS[one] for one in cut)):
        slots = [slot for start, (memory, _) in zip(starts, cut, strict=True) for slot in range(start, start + memory)]
        if len(slots) == len(set(slots)):
            return True
    return False
