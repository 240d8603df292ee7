"""Answers as JSON-ready data: dictionaries, lists, text, numbers, booleans and null."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Hashable, Mapping
from collections.abc import Set as AbstractSet
from datetime import date
from typing import Any, cast


def as_json(answer: Any) -> Any:
    """`answer` with dataclasses as objects by field name (`from_` as `from`), tuples and sets as lists.

    `schema_version` comes first where there is one. numpy's scalars and arrays become numbers and lists.

    Raises:
        ValueError: a number is not finite; unknown is None, never NaN.
        TypeError: a value of a type that JSON cannot hold.

    >>> from chipwise.units import Range
    >>> as_json({"ttft_s": Range(low=1.0, mid=2.0, high=3.0), "tied_with": (2,)})
    {'ttft_s': {'low': 1.0, 'mid': 2.0, 'high': 3.0}, 'tied_with': [2]}
    """
    kind = type(answer)
    if kind in _AS_THEY_ARE or isinstance(answer, str):
        return answer
    if kind is float or isinstance(answer, int | float):
        return _number(answer)
    if isinstance(answer, list | tuple):
        return [as_json(item) for item in answer]
    keys = _keys(cast("Hashable", kind))
    if keys is not None:
        return _first({key: as_json(getattr(answer, name)) for name, key in keys})
    if isinstance(answer, Mapping):
        return _first({str(name).removesuffix("_"): as_json(value) for name, value in answer.items()})
    return sorted(as_json(item) for item in answer) if isinstance(answer, AbstractSet) else _plain(answer)


_AS_THEY_ARE = frozenset({str, bool, int, type(None)})


@functools.cache
def _keys(kind: Hashable) -> tuple[tuple[str, str], ...] | None:
    """Fields of a dataclass with their names in JSON; None for any other type."""
    if not isinstance(kind, type) or not dataclasses.is_dataclass(kind):
        return None
    return tuple((field.name, field.name.removesuffix("_")) for field in dataclasses.fields(kind))


def _plain(answer: Any) -> Any:
    """What a date or a value of numpy (known by its `tolist`, so that numpy is not imported) holds."""
    if isinstance(answer, date):
        return answer.isoformat()
    if hasattr(answer, "tolist"):
        return as_json(answer.tolist())
    raise TypeError(f"{type(answer).__name__} has no place in JSON")


def _number(value: float) -> int | float:
    if isinstance(value, int):
        return int(value)
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number: an unknown is None")
    return float(value)


def _first(found: dict[str, Any]) -> dict[str, Any]:
    """With its schema's version before all else."""
    return {"schema_version": found.pop("schema_version"), **found} if "schema_version" in found else found
