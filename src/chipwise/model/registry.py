"""The built-in models: config keys of well-known checkpoints, facts with their source in `data/registry.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from chipwise.errors import near_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A built-in model: its short name, other names and Hugging Face ids, its config keys, where they were read."""

    name: str
    aliases: tuple[str, ...]
    config: Mapping[str, Any]
    source: str
    read_on: str


@cache
def all_known() -> tuple[Known, ...]:
    """Every built-in model, in the order of the table."""
    text = (files("chipwise.model") / "data" / "registry.json").read_text(encoding="utf-8")
    return tuple(
        Known(
            name=row["name"],
            aliases=tuple(row["aliases"]),
            config=row["config"],
            source=row["source"],
            read_on=row["read_on"],
        )
        for row in json.loads(text)["models"]
    )


@cache
def _by_name() -> Mapping[str, Known]:
    return {_key(name): known for known in all_known() for name in (known.name, *known.aliases)}


def _key(name: str) -> str:
    return name.strip().lower().replace("_", "-")


def find(name: str) -> Known | None:
    """The built-in model of this name, alias or id (case does not count); None where it is not built in.

    >>> find("meta-llama/Llama-3.3-70B-Instruct").name
    'llama-3.3-70b'
    """
    return _by_name().get(_key(name))


def hub_id(name: str) -> str:
    """The Hugging Face id by which an engine loads a built-in model; any other name is its own.

    >>> hub_id("llama-3.3-70b"), hub_id("my-org/my-model")
    ('meta-llama/Llama-3.3-70B-Instruct', 'my-org/my-model')
    """
    known = find(name)
    ids = [alias for alias in known.aliases if "/" in alias] if known else []
    return name if not ids or "/" in name else ids[0]


def near(name: str) -> list[str]:
    """Built-in names that look like `name`."""
    return near_names(name, [known.name for known in all_known()])
