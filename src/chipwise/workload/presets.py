"""Presets and goals, read from `data/`: every value of a preset carries its reason and its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal, cast

from chipwise.errors import InputError, UnknownNameError
from chipwise.facts import read_rows

DATA = Path(__file__).parent / "data"
PRESET_COLUMNS = ("preset", "key", "value", "unit", "kind", "why", "source", "where", "read_on")
SAMPLE_COLUMNS = (
    "architecture", "presets", "key", "value", "unit", "kind", "why", "source", "where", "read_on",
)  # fmt: skip
GOAL_COLUMNS = ("name", "aliases", "kinds", "metric", "direction", "bar", "title", "source", "where")
Kind = Literal["serving", "training", "other"]
Number = int | float


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetValue:
    """One value of a preset.

    `kind` is policy (a choice), derived (from a source) or assumed (nobody says).
    """

    value: str | Number
    unit: str | None
    kind: str
    why: str
    source: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A named kind of workload."""

    name: str
    kind: Kind
    title: str
    architectures: frozenset[str]
    """Model classes it makes sense for; empty: any."""
    values: Mapping[str, PresetValue]

    def number(self, key: str) -> float | None:
        """The value of a numeric key; None where the preset has none."""
        found = self.values.get(key)
        return None if found is None else float(found.value)

    def text(self, key: str) -> str | None:
        """The value of a text key; None where the preset has none."""
        found = self.values.get(key)
        return None if found is None else str(found.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What a plan optimises: a metric, its direction, and the bar it filters at when it comes first."""

    name: str
    kinds: frozenset[str]
    metric: str
    direction: Literal["min", "max"]
    bar: Literal["slo", "precision", "budget", "deadline"]
    title: str
    source: str


def presets() -> tuple[Preset, ...]:
    """All presets, in the order of the table."""
    return tuple(_presets().values())


def load_preset(name: str) -> Preset:
    """The preset of that name.

    Raises:
        UnknownNameError: no such preset; proposes near ones.

    >>> load_preset("chat").number("ttft_p99_s"), load_preset("chat").number("tpot_p99_s")
    (1.0, 0.06)
    """
    found = _presets().get(name.strip().lower())
    if found is None:
        raise UnknownNameError("preset", name, _presets(), listing="known: " + ", ".join(_presets()))
    return found


def sampled_preset(preset: Preset, architecture: str | None) -> Preset | None:
    """A training preset for a class of models that reads no tokens: its own samples, batch and optimizer.

    None where the class is trained on tokens.

    Raises:
        InputError: nobody trains that class so.

    >>> run = sampled_preset(load_preset("pretrain"), "cnn")
    >>> run.number("samples"), run.number("epochs"), run.text("optimizer")
    (1281167.0, 90.0, 'sgd-momentum')
    """
    rows = [row for row in _samples() if row["architecture"] == architecture]
    if not rows:
        return None
    own = {row["key"]: _value(row) for row in rows if preset.name in row["presets"].split()}
    if "samples" not in own:
        known = sorted({name for row in rows for name in row["presets"].split()})
        raise InputError(
            f"--for {preset.name} does not go with a model of class {architecture}",
            why="it adapts attention, or prefers one text to another",
            fix="--for " + " or ".join(known),
        )
    return replace(preset, values=MappingProxyType({**preset.values, **own}))


@cache
def _samples() -> tuple[Mapping[str, str], ...]:
    return tuple(
        dict(zip(SAMPLE_COLUMNS, row, strict=True)) for _, row in read_rows(DATA / "samples.csv", SAMPLE_COLUMNS)
    )


def goals() -> tuple[Goal, ...]:
    """All goals, in the guide's order."""
    return tuple(_goals().values())


def parse_goals(text: str, kind: Kind) -> tuple[Goal, ...]:
    """`A` or `A,B`: the first filters at its bar where a second follows, the last orders.

    Raises:
        UnknownNameError: no such goal.
        InputError: more than two, one twice, or a goal that does not go with that kind of workload.

    >>> [goal.name for goal in parse_goals("latency,cost", "serving")]
    ['latency', 'cost']
    """
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    found = tuple(_goal(name) for name in names)
    if not 1 <= len(found) <= 2 or len({goal.name for goal in found}) != len(found):
        raise InputError(
            f"{text!r} is not one goal or two different ones",
            why="the first goal filters and the second orders: more would contradict each other",
            fix="write --goal latency or --goal latency,cost",
        )
    wrong = [goal for goal in found if kind not in goal.kinds]
    if wrong:
        fitting = ", ".join(goal.name for goal in goals() if kind in goal.kinds)
        noun = "training" if kind == "training" else "inference"
        raise InputError(
            f"goal {wrong[0].name!r} does not go with {noun}",
            why=f"its metric is {wrong[0].metric}",
            fix=f"choose one of {fitting}",
        )
    return found


def _goal(name: str) -> Goal:
    known = _goals()
    for goal, aliases in zip(known.values(), _goal_aliases(), strict=True):
        if name in {goal.name, *aliases}:
            return goal
    raise UnknownNameError("goal", name, known, listing="known: " + ", ".join(known))


@cache
def _goals() -> Mapping[str, Goal]:
    rows = [dict(zip(GOAL_COLUMNS, row, strict=True)) for _, row in read_rows(DATA / "goals.csv", GOAL_COLUMNS)]
    return MappingProxyType({row["name"]: _read_goal(row) for row in rows})


@cache
def _goal_aliases() -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(row[1].split()) for _, row in read_rows(DATA / "goals.csv", GOAL_COLUMNS))


def _read_goal(row: Mapping[str, str]) -> Goal:
    return Goal(
        name=row["name"],
        kinds=frozenset(row["kinds"].split()),
        metric=row["metric"],
        direction=cast("Literal['min', 'max']", row["direction"]),
        bar=cast("Literal['slo', 'precision', 'budget', 'deadline']", row["bar"]),
        title=row["title"],
        source=f"{row['source']}: {row['where']}",
    )


@cache
def _presets() -> Mapping[str, Preset]:
    grouped: dict[str, dict[str, PresetValue]] = {}
    for _, row in read_rows(DATA / "presets.csv", PRESET_COLUMNS):
        cells = dict(zip(PRESET_COLUMNS, row, strict=True))
        grouped.setdefault(cells["preset"], {})[cells["key"]] = _value(cells)
    return MappingProxyType({name: _preset(name, values) for name, values in grouped.items()})


def _preset(name: str, values: Mapping[str, PresetValue]) -> Preset:
    architectures = values.get("architectures")
    return Preset(
        name=name,
        kind=cast("Kind", values["kind"].value),
        title=str(values["title"].value),
        architectures=frozenset(str(architectures.value).split()) if architectures else frozenset(),
        values=MappingProxyType(dict(values)),
    )


def _value(cells: Mapping[str, str]) -> PresetValue:
    unit = cells["unit"] or None
    return PresetValue(
        value=cells["value"] if unit is None else _number(cells["value"]),
        unit=unit,
        kind=cells["kind"],
        why=cells["why"],
        source=cells["source"],
        where=cells["where"],
    )


def _number(text: str) -> Number:
    value = float(text)
    return int(value) if value == int(value) else value
