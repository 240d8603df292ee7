"""Builds become rows: tensors of one pattern and one size, how many, each side and the count as an expression."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chipwise.model.expressions import evaluate, names_in
from induce.explore import Builder, Explored, Point, Shapes, acting, explore, pattern
from induce.fit import Sample, fit
from induce.paths import changed

Tries = Callable[[str], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A name with `N` for each position, its sides and how many there are, and the keys it takes for it to be there."""

    name: str
    count: str
    sides: tuple[str, ...]
    when: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[str, tuple[str, ...]]:
        """What tells it from rows that only differ in number."""
        return self.name, self.sides


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The rows of a class, and the keys whose effect no expression was found for."""

    rows: tuple[Row, ...]
    fixed: frozenset[str]


def rows_of(explored: Explored) -> Rows:
    """Rows whose expressions are right in every build, but for keys in `fixed`."""
    sided, fixed = _sided(explored.points)
    fixed |= explored.unsure
    rows = []
    for (name, sides), held in sided.items():
        others = [other for pair, other in sided if pair == name and other != sides]
        count, open_keys = _count(explored.points, name, sides, others, fixed)
        fixed |= open_keys
        rows.append(Row(name=name, count=count or str(held), sides=sides))
    return Rows(rows=tuple(rows), fixed=frozenset(fixed))


def _sided(points: Sequence[Point]) -> tuple[dict[tuple[str, tuple[str, ...]], int], set[str]]:
    """Each pattern with the expressions of its sides, and how many such the first build holds."""
    alike: dict[tuple[str, tuple[object, ...]], list[str]] = {}
    for name in points[0].shapes:
        alike.setdefault((pattern(name), tuple(point.shapes.get(name) for point in points)), []).append(name)
    fixed: set[str] = set()
    found: dict[tuple[str, tuple[str, ...]], int] = {}
    for (shown, _), names in alike.items():
        name, sides = names[0], []
        for axis, size in enumerate(points[0].shapes[name]):
            keys = acting(points, name, axis)
            side = fit(keys, _samples(points, name, axis))
            fixed |= set() if side else set(keys)
            sides.append(side or str(size))
        found[shown, tuple(sides)] = found.get((shown, tuple(sides)), 0) + len(names)
    return found, fixed


def _samples(points: Sequence[Point], name: str, axis: int) -> list[Sample]:
    rank = len(points[0].shapes[name])
    shapes = ((point.env, point.shapes.get(name)) for point in points)
    return [(env, shape[axis]) for env, shape in shapes if shape is not None and len(shape) == rank]


def _count(
    points: Sequence[Point], name: str, sides: tuple[str, ...], others: Sequence[tuple[str, ...]], fixed: set[str]
) -> tuple[str | None, set[str]]:
    """How many tensors of a pattern have these sides, in the builds in which its other rows have other sizes.

    None where no expression is found; then with the keys that change the number.
    """
    base = points[0]
    samples: list[Sample] = []
    keys: dict[str, None] = {}
    for point in points:
        if point is not base and _touches(point, base, fixed):
            continue
        size = sizes(sides, point.env)
        if size is None or any(sizes(other, point.env) == size for other in others):
            continue
        found = sum(1 for other, shape in point.shapes.items() if shape == size and pattern(other) == name)
        samples.append((point.env, found))
        if point.key and found != samples[0][1]:
            keys[point.key] = None
    text = fit(tuple(keys), samples) if samples else None
    return (text, set()) if text else (None, set(keys))


def _touches(point: Point, base: Point, fixed: set[str]) -> bool:
    return any(point.env.get(key) != base.env.get(key) for key in fixed)


def sizes(sides: Sequence[str], env: Mapping[str, float]) -> tuple[int, ...] | None:
    """The sides of a row under a config; None where they cannot be computed."""
    try:
        return tuple(evaluate(side, env.__getitem__) for side in sides)
    except (ZeroDivisionError, KeyError):
        return None


def total(rows: Sequence[Row], env: Mapping[str, float]) -> int:
    """Parameters of all rows under a config."""
    out = 0
    for row in rows:
        if all(_met(env, path, wanted) for path, wanted in row.when.items()):
            each = 1
            for side in (row.count, *row.sides):
                each *= evaluate(side, env.__getitem__)
            out += each
    return out


def _met(env: Mapping[str, float], path: str, wanted: object) -> bool:
    value = env.get(path, 0)
    if wanted == ">0":
        return value > 0
    return bool(value) == wanted if isinstance(wanted, bool) else value == wanted


def under_flags(builder: Builder, explored: Explored, rows: Rows, flags: Sequence[str]) -> tuple[Rows, list[str]]:
    """The rows with the conditions that flags (and numbers that are 0) put on them; and the flags that do not build."""
    unbuilt: list[str] = []
    for path in flags:
        before = explored.points[0].env.get(path, 0)
        is_flag = isinstance(before, bool)
        value: object = not before if is_flag else next(iter(explored.values[path]))
        shapes = None if builder.late else builder.build(changed(explored.config, path, value))
        if shapes is None:
            unbuilt.append(path)
        elif shapes != explored.base:
            usual, other = (before, value) if is_flag else (0, ">0")
            rows = _conditioned(builder, explored, rows, _Flip(path=path, value=value, usual=usual, other=other))
    return rows, unbuilt


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flip:
    path: str
    value: object
    usual: object
    other: object


def _conditioned(builder: Builder, explored: Explored, rows: Rows, flip: _Flip) -> Rows:
    config = changed(explored.config, flip.path, flip.value)
    shapes = builder.build(config) or {}
    here, there = _counted(explored.base), _counted(shapes)
    if not there - here and all(there[gone] == 0 for gone in here - there):
        env, gone = explored.points[0].env, here - there
        return replace(
            rows, rows=tuple(_needing(row, flip, needs=(row.name, sizes(row.sides, env)) in gone) for row in rows.rows)
        )
    texts = [text for row in rows.rows for text in (row.count, *row.sides)]
    used = {name for text in texts for pair in names_in(text) for name in pair.split("~")} & set(explored.values)
    own = {flip.path} if flip.other == ">0" else set()
    again = explore(builder, config, sorted(used - {flip.path} | own))
    if again is None or builder.late:
        return replace(rows, fixed=rows.fixed | {flip.path})
    other = rows_of(again)
    points = [point for point in again.points if not _touches(point, again.points[0], set(rows.fixed))]
    env = explored.points[0].env
    seen = [row for row in rows.rows if all(_met(env, path, wanted) for path, wanted in row.when.items())]
    still = [row for row in seen if _true_in(points, row, seen)]
    kept = tuple(_needing(row, flip, needs=row in seen and row not in still) for row in rows.rows)
    new = [row for row in other.rows if not any(_same(points, row, known) for known in still)]
    return Rows(
        rows=(*kept, *(replace(row, when={flip.path: flip.other}) for row in new)), fixed=rows.fixed | other.fixed
    )


def _true_in(points: Sequence[Point], row: Row, rows: Sequence[Row]) -> bool:
    """Whether a row is right in builds that it was not made from, beside those of its pattern and size."""
    for point in points:
        size = sizes((row.count, *row.sides), point.env)
        if size is None:
            return False
        alike = [sizes((other.count, *other.sides), point.env) for other in rows if other.name == row.name]
        told = sum(other[0] for other in alike if other is not None and other[1:] == size[1:])
        if told != sum(1 for name, shape in point.shapes.items() if shape == size[1:] and pattern(name) == row.name):
            return False
    return True


def _same(points: Sequence[Point], one: Row, other: Row) -> bool:
    """Whether two rows are of one pattern and size in every build."""
    return one.name == other.name and all(
        sizes(one.sides, point.env) == sizes(other.sides, point.env) for point in points
    )


def _counted(shapes: Shapes) -> Counter[tuple[str, tuple[int, ...] | None]]:
    return Counter((pattern(name), shape) for name, shape in shapes.items())


def _needing(row: Row, flip: _Flip, *, needs: bool) -> Row:
    return replace(row, when={**row.when, flip.path: flip.usual}) if needs and flip.path not in row.when else row
