"""The simplest expression over config keys that gives a size in every build of a class that was made."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from chipwise.model.expressions import evaluate

Sample = tuple[Mapping[str, float], int]
_IMAGE = re.compile(r"(image_size|img_size|input_size|sample_size|sample_height|sample_width)(\.\d+)?$")
_PATCH = re.compile(r"patch_size(\.\d+)?$")
_MOST_KEYS = 4
_LARGEST_FACTOR, _LARGEST_SUM_FACTOR = 100_000, 64
# Sizes are sums and products; a large number taken off only says that two keys were never seen changed at once.
_LEAST_CONSTANT = -4


def fit(keys: Sequence[str], samples: Sequence[Sample]) -> str | None:
    """An expression of `expressions.py` over `keys` that is right in every sample; None where none is found.

    Sums of keys first, then products and quotients with a constant, then sums of two of those; `image_size~patch_size`
    stands for the whole patches of a side.

    >>> fit(["hidden"], [({"hidden": 8}, 25), ({"hidden": 16}, 49)])
    '3*hidden+1'
    """
    if not keys:
        return str(samples[0][1])
    samples = _distinct(keys, samples)
    if not samples:
        return None
    for image, patch in itertools.permutations(keys, 2):
        if _IMAGE.search(image) and _PATCH.search(patch):
            side = f"{image}~{patch}"
            rest = [key for key in keys if key not in (image, patch)]
            told = [({**env, side: env[image] // env[patch]}, value) for env, value in samples]
            found = _plain([side, *rest], told)
            if found:
                return found
    return _plain(list(keys), samples)


def _distinct(keys: Sequence[str], samples: Sequence[Sample]) -> list[Sample]:
    """One sample for each set of values under the keys; none where the size differs at equal values."""
    found: dict[tuple[float, ...], Sample] = {}
    for env, value in samples:
        known = found.setdefault(tuple(env[key] for key in keys), (env, value))
        if known[1] != value:
            return []
    return list(found.values())


def holds(text: str, samples: Sequence[Sample]) -> bool:
    """Whether an expression is right in every sample."""
    try:
        return all(evaluate(text, env.__getitem__) == value for env, value in samples)
    except ZeroDivisionError:
        return False


def _plain(keys: Sequence[str], samples: Sequence[Sample]) -> str | None:
    candidates = itertools.chain(_sums(keys, samples), _products(keys, samples), _two_products(keys, samples))
    return next((text for text in candidates if holds(text, samples)), None)


def _sums(keys: Sequence[str], samples: Sequence[Sample]) -> Iterator[str]:
    """A whole multiple of each key and a constant: from samples that change one key each."""
    if len(keys) < 2:
        return
    base, value = samples[0]
    factors: dict[str, Fraction] = {}
    for env, other in samples[1:]:
        moved = [key for key in keys if env[key] != base[key]]
        if len(moved) == 1 and moved[0] not in factors:
            factors[moved[0]] = Fraction(other - value) / Fraction(env[moved[0]] - base[moved[0]])
    if set(factors) != set(keys) or any(factor.denominator != 1 for factor in factors.values()):
        return
    constant = value - sum(int(factors[key]) * base[key] for key in keys)
    if constant == int(constant) and constant >= _LEAST_CONSTANT:
        terms = [_scaled(int(factors[key]), key) for key in keys if factors[key]]
        yield "+".join([*terms, *([str(int(constant))] if constant or not terms else [])])


def _scaled(factor: int, key: str) -> str:
    return key if factor == 1 else f"{factor}*{key}"


def _powers(keys: Sequence[str]) -> list[tuple[int, ...]]:
    span = {1: (-2, -1, 0, 1, 2), 2: (-2, -1, 0, 1, 2), 3: (-1, 0, 1, 2)}.get(len(keys), (-1, 0, 1))
    found = [powers for powers in itertools.product(span, repeat=len(keys)) if any(powers)]
    return sorted(found, key=lambda powers: sum(map(abs, powers)) + sum(power < 0 for power in powers))


def _product(factor: Fraction, powers: Sequence[int], keys: Sequence[str]) -> str:
    """`factor * product of keys ** powers` as text.

    >>> _product(Fraction(3, 2), (2, -1), ("a", "b"))
    '3*a*a/b/2'
    """
    above = [key for key, power in zip(keys, powers, strict=True) for _ in range(power)]
    below = [key for key, power in zip(keys, powers, strict=True) for _ in range(-power)]
    head = [str(factor.numerator)] if factor.numerator != 1 or not above else []
    tail = [*below, *([str(factor.denominator)] if factor.denominator != 1 else [])]
    return "*".join([*head, *above]) + "".join(f"/{name}" for name in tail)


def _value(powers: Sequence[int], keys: Sequence[str], env: Mapping[str, float]) -> Fraction | None:
    out = Fraction(1)
    for key, power in zip(keys, powers, strict=True):
        number = Fraction(env[key]).limit_denominator(1000)
        if power < 0 and not number:
            return None
        out *= number**power
    return out


def _monomials(keys: Sequence[str], samples: Sequence[Sample]) -> Iterator[tuple[tuple[int, ...], list[Fraction]]]:
    if len(keys) > _MOST_KEYS:
        return
    for powers in _powers(keys):
        values = [_value(powers, keys, env) for env, _ in samples]
        if None not in values:
            yield powers, [value for value in values if value is not None]


def _products(keys: Sequence[str], samples: Sequence[Sample]) -> Iterator[str]:
    sizes = [value for _, value in samples]
    full = [(powers, values) for powers, values in _monomials(keys, samples) if all(powers)]
    for powers, values in full:
        if values[0]:
            factor = Fraction(sizes[0]) / values[0]
            if factor.denominator <= _LARGEST_SUM_FACTOR:
                yield _product(factor, powers, keys)
    for powers, values in full:
        other = next((index for index, value in enumerate(values) if value != values[0]), None)
        if other is None:
            continue
        factor = Fraction(sizes[other] - sizes[0]) / (values[other] - values[0])
        constant = sizes[0] - factor * values[0]
        small = factor.denominator <= _LARGEST_SUM_FACTOR and abs(factor) <= _LARGEST_FACTOR
        if small and constant.denominator == 1 and constant >= _LEAST_CONSTANT:
            yield _product(factor, powers, keys) + (f"+{constant}" if constant else "")


def _two_products(keys: Sequence[str], samples: Sequence[Sample]) -> Iterator[str]:
    """`x * one + y * other + z`, solved from three samples that tell them apart."""
    sizes = [Fraction(value) for _, value in samples]
    for (one, ones), (other, others) in itertools.combinations(list(_monomials(keys, samples)), 2):
        if not all(a or b for a, b in zip(one, other, strict=True)):
            continue
        solved = _solved(ones, others, sizes)
        if solved is None or any(part.denominator != 1 for part in solved) or not (solved[0] and solved[1]):
            continue
        if max(abs(solved[0]), abs(solved[1])) > _LARGEST_SUM_FACTOR or solved[2] < _LEAST_CONSTANT:
            continue
        terms = [_product(solved[0], one, keys), _product(solved[1], other, keys)]
        yield "+".join([*terms, *([str(solved[2])] if solved[2] else [])])


def _solved(
    ones: Sequence[Fraction], others: Sequence[Fraction], sizes: Sequence[Fraction]
) -> tuple[Fraction, Fraction, Fraction] | None:
    """The factors of two columns and a constant, by Cramer's rule on differences from the first sample."""
    rows = [
        (a - ones[0], b - others[0], size - sizes[0])
        for a, b, size in zip(ones[1:], others[1:], sizes[1:], strict=True)
        if a != ones[0] or b != others[0]
    ]
    for (a, b, e), (c, d, f) in itertools.combinations(rows[:12], 2):
        below = a * d - b * c
        if below:
            x, y = (e * d - b * f) / below, (a * f - e * c) / below
            return x, y, sizes[0] - x * ones[0] - y * others[0]
    return None
