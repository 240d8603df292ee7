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
    if type(answer) in _AS_THEY_ARE or isinstance(answer, str):
        return answer
    if isinstance(answer, int | float):
        return _number(answer)
    if isinstance(answer, list | tuple):
        return [as_json(item) for item in answer]
    if isinstance(answer, AbstractSet):
        return sorted(as_json(item) for item in answer)
    fields = _fields(answer)
    return _plain(answer) if fields is None else _object(fields)


_AS_THEY_ARE = frozenset({str, bool, int, type(None)})


def _fields(answer: Any) -> Mapping[Any, Any] | None:
    if isinstance(answer, dict):
        return answer
    names = _names(cast("Hashable", type(answer)))
    if names is not None:
        return {name: getattr(answer, name) for name in names}
    return answer if isinstance(answer, Mapping) else None


@functools.cache
def _names(kind: Hashable) -> tuple[str, ...] | None:
    """Fields of a dataclass; None for any other type."""
    if not isinstance(kind, type) or not dataclasses.is_dataclass(kind):
        return None
    return tuple(field.name for field in dataclasses.fields(kind))


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


def _object(fields: Mapping[Any, Any]) -> dict[str, Any]:
    found = {str(name).removesuffix("_"): as_json(value) for name, value in fields.items()}
    return {"schema_version": found.pop("schema_version"), **found} if "schema_version" in found else found
