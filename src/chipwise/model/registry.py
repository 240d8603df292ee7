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

    @property
    def ids(self) -> tuple[str, ...]:
        """The Hugging Face ids of the checkpoints that these facts describe; the short name means the first."""
        return tuple(name for name in self.aliases if "/" in name)


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
    """The Hugging Face id by which an engine loads a model.

    An id stands for itself, spelled as the table has it; a short name for the first id of its entry; any other name is
    its own.

    >>> hub_id("llama-3.3-70b"), hub_id("qwen/qwq-32b"), hub_id("my-org/my-model")
    ('meta-llama/Llama-3.3-70B-Instruct', 'Qwen/QwQ-32B', 'my-org/my-model')
    """
    known = find(name)
    ids = known.ids if known else ()
    asked = [one for one in ids if _key(one) == _key(name)]
    return next(iter([*asked, *ids]), name)


def near(name: str) -> list[str]:
    """Built-in names that look like `name`."""
    return near_names(name, [known.name for known in all_known()])
