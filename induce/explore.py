"""Builds a class many times, with its keys changed one at a time and several at a time, and keeps what came out."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from induce.paths import Config, changed, numbers, tries

Shapes = Mapping[str, tuple[int, ...]]
_VALUES_EACH = 2
_MOST_JOINT_SETS = 96
_MOST_JOINT_KEYS = 6
_PAIRED_KEYS = (3, 4)
_MIXTURES, _MIXED_KEYS = 10, 4


class Subject(Protocol):
    """A class that can be built: its default config, and the shapes of its tensors under a config."""

    @property
    def config(self) -> Config:
        """The class's own defaults, all keys said."""
        ...

    def shapes(self, config: Config) -> Shapes | None:
        """Tensor shapes by name; None where the class refuses the config or takes too long."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One build: the numbers of its config, its shapes, the key that was changed ("" for several, None for none)."""

    env: Mapping[str, float]
    shapes: Shapes
    key: str | None


@dataclass(slots=True, kw_only=True)
class Builder:
    """A subject whose builds are kept, until a moment of processor time at which no more are made."""

    subject: Subject
    until: float = field(default=float("inf"))
    kept: dict[str, Shapes | None] = field(default_factory=dict)

    def build(self, config: Config) -> Shapes | None:
        """The shapes under a config, built once."""
        key = json.dumps(config, sort_keys=True, default=str)
        if key not in self.kept:
            self.kept[key] = self.subject.shapes(config)
        return self.kept[key]

    @property
    def late(self) -> bool:
        """Whether the time is up."""
        return time.process_time() > self.until


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """All builds around one config; `values` are the other values of each key that changes shapes.

    `untried` keys build with no other value; of `unsure` ones it was too late to see how they act together.
    """

    config: Config
    points: tuple[Point, ...]
    values: Mapping[str, tuple[float, ...]]
    untried: tuple[str, ...]
    unsure: frozenset[str] = frozenset()

    @property
    def base(self) -> Shapes:
        """The shapes of the config itself."""
        return self.points[0].shapes


def pattern(name: str) -> str:
    """A tensor's name with its positions left open.

    >>> pattern("encoder.layers.11.fc1.weight"), pattern("0.bias")
    ('encoder.layers.N.fc1.weight', 'N.bias')
    """
    return re.sub(r"(?<=\.)\d+(?=\.|$)|^\d+(?=\.)", "N", name)


def explore(builder: Builder, config: Config, paths: Iterable[str]) -> Explored | None:
    """Builds with each key changed alone, to two values; then together with those that act on the same side."""
    base = builder.build(config)
    if base is None:
        return None
    points = [Point(env=numbers(config), shapes=base, key=None)]
    values: dict[str, tuple[float, ...]] = {}
    untried: list[str] = []
    for path in paths:
        found, built = _alone(builder, config, path, base)
        points += found
        if found:
            values[path] = tuple(point.env[path] for point in found)
        if not built:
            untried.append(path)
    together, unsure = _together(builder, config, points, values)
    points += together
    points += [point for chosen in mixtures(values) if (point := _built(builder, config, chosen))]
    return Explored(
        config=config, points=tuple(points), values=values, untried=tuple(untried), unsure=frozenset(unsure)
    )


def _alone(builder: Builder, config: Config, path: str, base: Shapes) -> tuple[list[Point], bool]:
    found: list[Point] = []
    built = False
    for value in () if builder.late else tries(path, numbers(config)[path]):
        other = changed(config, path, value)
        shapes = builder.build(other)
        built |= shapes is not None
        if shapes == base:
            break
        if shapes is not None:
            found.append(Point(env=numbers(other), shapes=shapes, key=path))
        if len(found) == _VALUES_EACH:
            break
    return found, built


def _together(
    builder: Builder, config: Config, points: Sequence[Point], values: Mapping[str, Sequence[float]]
) -> tuple[list[Point], set[str]]:
    """Builds with the keys of one side changed at once; and the keys that this came too late for."""
    out: list[Point] = []
    unsure: set[str] = set()
    for place, keys in enumerate(_joint_sets(points)):
        if builder.late or place >= _MOST_JOINT_SETS:
            unsure |= set(keys)
            continue
        pairs = itertools.combinations(keys, 2) if len(keys) in _PAIRED_KEYS else ()
        for chosen in (keys, *pairs):
            point = _built(builder, config, {key: values[key][0] for key in chosen})
            out += [point] if point else []
    return out, unsure


def _built(builder: Builder, config: Config, chosen: Mapping[str, float]) -> Point | None:
    """The build with several keys changed; None where it does not build, or time is up."""
    other: dict[str, Any] = dict(config)
    for key, value in chosen.items():
        other = changed(other, key, value)
    shapes = None if builder.late else builder.build(other)
    return None if shapes is None else Point(env=numbers(other), shapes=shapes, key="")


def mixtures(values: Mapping[str, Sequence[float]], *, first: int = 0) -> Iterator[dict[str, float]]:
    """Sets of a few keys from all over the config with another value each; from another `first`, other sets.

    >>> next(mixtures({"a": (2, 3), "b": (4,), "c": (6, 9)}))
    {'a': 2, 'c': 6}
    """
    names = list(values)
    for start in range(first, first + _MIXTURES if names else first):
        chosen = dict.fromkeys(names[(start + step * (step + 1)) % len(names)] for step in range(_MIXED_KEYS))
        yield {name: values[name][start % len(values[name])] for name in chosen}


def _joint_sets(points: Sequence[Point]) -> list[tuple[str, ...]]:
    """Keys that change one and the same side of some tensor."""
    base = points[0].shapes
    sets = {acting(points, name, axis) for name, shape in base.items() for axis in range(len(shape))}
    return sorted((keys for keys in sets if 2 <= len(keys) <= _MOST_JOINT_KEYS), key=lambda keys: (len(keys), keys))


def acting(points: Sequence[Point], name: str, axis: int) -> tuple[str, ...]:
    """The keys that alone change one side of a tensor."""
    shape = points[0].shapes[name]
    found: dict[str, None] = {}
    for point in points:
        other = point.shapes.get(name)
        if point.key and other is not None and (len(other) != len(shape) or other[axis] != shape[axis]):
            found[point.key] = None
    return tuple(found)
