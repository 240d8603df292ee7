"""JSON Schema (2020-12) of what the commands print: written in `schemas/`, or read off the dataclasses."""

from __future__ import annotations

import dataclasses
import importlib
import json
import re
import types
import typing
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from importlib.resources import files
from typing import Any

from chipwise.errors import UnknownNameError

PUBLISHED = (
    *("plan", "model", "model_list", "memory", "estimate", "why", "compare", "validate"),
    *("deploy", "deploy_lint", "catalog", "guide_errata", "guide_check", "error"),
)
"""The names that `chipwise schema` knows."""

Schema = dict[str, Any]

_HOMES = (
    "chipwise.decide.advice",
    "chipwise.units",
    "chipwise.catalog",
    "chipwise.catalog.check",
    "chipwise.facts",
)
"""Where the dataclasses that answers are made of are found."""

_WRITTEN = {
    ("Advice", "model"): "model",
    ("Advice", "workload"): "workload",
    ("Advice", "considered"): "considered",
    ("Advice", "guide"): "guide",
    ("Advice", "gpu_or_neuron"): "gpu_or_neuron",
    ("Advice", "gpu_needed"): "gpu_needed",
    ("Advice", "benchmark"): "benchmark",
    ("Option", "memory"): "memory",
    ("Option", "performance"): "estimate",
    ("PrecisionChoice", "quality"): "quality",
    ("Rejected", "shortfall"): "shortfall",
}
"""Fields that hold a plain object: which schema describes it."""

_PLAIN = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


def schema(name: str) -> Schema:
    """The schema of the JSON that the command `name` prints, with every definition it uses in `$defs`.

    Raises:
        UnknownNameError: no such schema.

    >>> schema("error")["required"]
    ['error']
    """
    if name not in PUBLISHED:
        raise UnknownNameError("schema", name, PUBLISHED, listing=f"the schemas are {', '.join(PUBLISHED)}")
    body = dict(_definition("Advice" if name == "plan" else name))
    definitions: dict[str, Schema] = {}
    waiting = list(_references(body))
    while waiting:
        one = waiting.pop()
        if one not in definitions:
            definitions[one] = _definition(one)
            waiting += _references(definitions[one])
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:chipwise:{name}"}
    return {**head, **body, **({"$defs": dict(sorted(definitions.items()))} if definitions else {})}


def _references(body: Schema) -> Iterator[str]:
    """Names of the definitions that a schema points to."""
    yield from re.findall(r'"\$ref": "#/\$defs/(\w+)"', json.dumps(body))


@cache
def _definition(name: str) -> Schema:
    written = files("chipwise.report").joinpath(f"schemas/{name}.json")
    if written.is_file():
        body: Schema = json.loads(written.read_text(encoding="utf-8"))
        return body
    return _of_dataclass(_dataclass(name))


def _dataclass(name: str) -> type[Any]:
    modules = (importlib.import_module(home) for home in _HOMES)
    found: type[Any] = next(getattr(module, name) for module in modules if hasattr(module, name))
    return found


def _of_dataclass(kind: type[Any]) -> Schema:
    """An object with every field required; more keys may come with a later version."""
    hints = typing.get_type_hints(kind)
    properties = {}
    for field in dataclasses.fields(kind):
        written = _WRITTEN.get((kind.__name__, field.name))
        name = field.name.removesuffix("_")
        properties[name] = {"$ref": f"#/$defs/{written}"} if written else _of_type(hints[field.name])
    summary = (kind.__doc__ or "").strip().partition("\n")[0]
    return {"description": summary, "type": "object", "required": list(properties), "properties": properties}


def _of_type(hint: Any) -> Schema:
    """The schema of a type hint.

    >>> _of_type(tuple[int, ...]), _of_type(float | None)
    ({'type': 'array', 'items': {'type': 'integer'}}, {'type': ['number', 'null']})
    """
    if hint is Any:
        return {}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if dataclasses.is_dataclass(hint):
        return {"$ref": f"#/$defs/{typing.cast('type[Any]', hint).__name__}"}
    return _of_generic(typing.get_origin(hint), typing.get_args(hint))


def _of_generic(origin: Any, inner: tuple[Any, ...]) -> Schema:
    if origin is typing.Literal:
        return {"enum": list(inner)}
    if origin in (typing.Union, types.UnionType):
        return _of_union([_of_type(one) for one in inner])
    if issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _of_type(inner[1])}
    if issubclass(origin, AbstractSet | tuple | list):
        return {"type": "array", "items": _of_type(inner[0])}
    raise TypeError(f"{origin} has no schema")


def _of_union(parts: list[Schema]) -> Schema:
    if all(set(part) == {"type"} for part in parts):
        return {"type": [part["type"] for part in parts]}
    return {"anyOf": parts}
