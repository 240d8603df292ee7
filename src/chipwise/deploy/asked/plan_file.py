"""Reads the JSON that `chipwise plan --json` printed; a file that is cut off, foreign or hostile is refused."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chipwise.errors import InfeasibleError, InputError

_FIX = "write it anew: chipwise plan MODEL … --json > plan.json"
_MOST_BYTES = 64 * 2**20
"""A plan of every size of the catalog is well below one MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A value of the plan and where it stands, so that a refusal names the place."""

    value: Any
    where: str

    def at(self, name: str) -> Part:
        """The field of that name.

        Raises:
            InputError: it is missing, or this is no object.
        """
        if not isinstance(self.value, Mapping) or name not in self.value:
            raise broken(f"{self.where}.{name}" if self.where else name, "is missing")
        return Part(value=self.value[name], where=f"{self.where}.{name}" if self.where else name)

    def maybe(self, name: str) -> Part | None:
        """The field of that name; None where it is missing or null."""
        if not isinstance(self.value, Mapping) or self.value.get(name) is None:
            return None
        return self.at(name)

    def each(self) -> Iterator[Part]:
        """The items of a list.

        Raises:
            InputError: it is no list.
        """
        if not isinstance(self.value, list):
            raise broken(self.where, "is no list")
        for place, item in enumerate(self.value):
            yield Part(value=item, where=f"{self.where}[{place}]")

    def text(self) -> str:
        """A text.

        Raises:
            InputError: it is none, or is not one line.
        """
        if not isinstance(self.value, str) or not self.value or not self.value.isprintable():
            raise broken(self.where, "is no text of one line")
        return self.value

    def count(self, *, least: int = 1) -> int:
        """A whole number of `least` or more.

        Raises:
            InputError: it is none.
        """
        if isinstance(self.value, bool) or not isinstance(self.value, int) or not least <= self.value < 2**53:
            raise broken(self.where, f"is no whole number of {least} or more")
        return self.value

    def number(self) -> float:
        """A finite number of 0 or more.

        Raises:
            InputError: it is none.
        """
        plain = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        if not plain or not math.isfinite(self.value) or self.value < 0:
            raise broken(self.where, "is no number of 0 or more")
        return float(self.value)

    def word(self) -> str:
        """A word: letters, digits, dots, hyphens, underscores and plus signs, such as `fp8-block` or `1g.10gb+me`.

        Raises:
            InputError: it is none.
        """
        said = self.text()
        if not re.fullmatch(r"[A-Za-z0-9][\w.+-]{0,99}", said, re.ASCII):
            raise broken(self.where, "is no plain word")
        return said

    def scalar(self) -> str | int | float | bool | None:
        """A number, truth value, null or a text of one line.

        Raises:
            InputError: it is a list or an object, or a text of several lines.
        """
        if isinstance(self.value, str):
            return self.text() if self.value else ""
        if self.value is None or isinstance(self.value, bool | int):
            return self.value
        return self.number()


def read_plan(path: str) -> Part:
    """The plan of a file, or of stdin for `-`.

    Raises:
        InputError: it cannot be read, or is no plan.
        InfeasibleError: it is a plan without an option.
    """
    plan = Part(value=_document(path), where="")
    if not isinstance(plan.value, Mapping):
        raise broken("the file", "holds no JSON object")
    if "error" in plan.value:
        raise InputError(f"{path} holds an error, not a plan", why="the command that wrote it failed", fix=_FIX)
    if plan.at("schema_version").count() != 1:
        raise broken("schema_version", "is not 1")
    if not list(plan.at("options").each()):
        raise InfeasibleError(
            f"{path} has no option to deploy",
            why="nothing feasible was found for its question",
            fix="ask again with a wider question (chipwise plan), then deploy that answer",
        )
    return plan


def broken(where: str, what: str) -> InputError:
    """The refusal of a plan that is not whole."""
    return InputError(f"the plan is broken: {where} {what}", why="deploy reads what plan --json printed", fix=_FIX)


def _document(path: str) -> Any:
    try:
        raw = sys.stdin.buffer.read(_MOST_BYTES + 1) if path == "-" else _bytes_of(Path(path))
    except OSError as error:
        raise InputError(f"{path} cannot be read", why=error.strerror or str(error), fix=_FIX) from error
    if len(raw) > _MOST_BYTES:
        raise InputError(f"{path} is larger than {_MOST_BYTES // 2**20} MiB", why="no plan is", fix=_FIX)
    try:
        document = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        why = "it is cut off or was never JSON" if isinstance(error, ValueError) else "it is nested without end"
        raise InputError(f"{path} is not JSON", why=f"{why}: {error}", fix=_FIX) from error
    return document


def _bytes_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MOST_BYTES + 1)
