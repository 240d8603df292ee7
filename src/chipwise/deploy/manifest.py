"""What is written: a manifest is plain data with remarks; a file is a manifest and where it goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

from chipwise.deploy.facts import kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A value and why it is so: the comment above it."""

    value: Any
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """What an object is called and marked with. `namespace` None: it belongs to the whole cluster."""

    name: str
    namespace: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    region: str | None = None
    """Only eksctl's."""

    def content(self) -> dict[str, Any]:
        """The metadata of an object."""
        return present(
            {
                "name": self.name,
                "namespace": self.namespace,
                "region": self.region,
                "labels": dict(self.labels) or None,
                "annotations": dict(self.annotations) or None,
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One object as the API server takes it. `body` holds everything beside kind and metadata."""

    kind: str
    meta: Meta
    body: Mapping[str, Any]
    about: str = ""
    """What it is and what to know of it: the comment at the head of its file."""

    @property
    def api_version(self) -> str:
        """The API version that the table of kinds gives."""
        return kinds()[self.kind].api_version

    def content(self) -> dict[str, Any]:
        """The whole object, remarks still in it."""
        head = {"apiVersion": self.api_version, "kind": self.kind, "metadata": self.meta.content()}
        return {**head, **self.body}


@singledispatch
def manifest_of(thing: object) -> Manifest:
    """The manifest of a typed object; every module of `kinds/` registers its own.

    Raises:
        TypeError: no manifest is written for such an object.
    """
    raise TypeError(f"no manifest is written for {type(thing).__name__}")


def present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are set: None means that the field is left out.

    >>> present({"a": 1, "b": None, "c": {}})
    {'a': 1, 'c': {}}
    """
    return {name: value for name, value in fields.items() if value is not None}


def plain(value: Any) -> Any:
    """The same data without remarks, as a reader of the YAML gets it.

    >>> plain({"replicas": Said(value=2, why="as planned")})
    {'replicas': 2}
    """
    if isinstance(value, Said):
        return plain(value.value)
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(one) for one in value]
    return value
