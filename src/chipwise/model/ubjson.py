"""Universal Binary JSON, as XGBoost writes its models (`.ubj`); of typed arrays only the length is kept."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chipwise.errors import InputError

_NUMBERS = {b"i": ">b", b"U": ">B", b"I": ">h", b"l": ">i", b"L": ">q", b"d": ">f", b"D": ">d"}
_WORDS = {b"Z": None, b"T": True, b"F": False}
_MOST_DEPTH = 32
_MOST_ENTRIES = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """A typed array, of which only the length is kept."""

    length: int


class _Reader:
    """Reads forward through the bytes and never beyond their end."""

    def __init__(self, body: bytes, file: Path) -> None:
        self.body = body
        self.file = file
        self.at = 0

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        if count < 0 or count > len(self.body) - self.at:
            raise broken(self.file, "it ends inside a value")
        self.at += count
        return self.body[self.at - count : self.at]

    def number(self, mark: bytes) -> Any:
        """The next number of a type."""
        form = _NUMBERS.get(mark)
        if form is None:
            raise broken(self.file, f"a length or number has the unknown type {mark!r}")
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def length(self) -> int:
        """The next length."""
        value = self.number(self.take(1))
        if not isinstance(value, int) or not 0 <= value <= max(len(self.body), _MOST_ENTRIES):
            raise broken(self.file, f"a length in it is {value}")
        return value

    def text(self) -> str:
        """The next string."""
        return self.take(self.length()).decode("utf-8", errors="replace")

    def value(self, mark: bytes, depth: int = 0) -> Any:
        """The next value of a type."""
        if depth > _MOST_DEPTH:
            raise broken(self.file, "it is nested too deeply")
        if mark in _WORDS:
            return _WORDS[mark]
        if mark == b"S":
            return self.text()
        if mark == b"{":
            return self.entries(depth)
        if mark == b"[":
            return self.array(depth)
        return self.number(mark)

    def entries(self, depth: int) -> dict[str, Any]:
        """An object up to its closing brace, or of a stated length."""
        count = self.stated()
        held: dict[str, Any] = {}
        while count is None or len(held) < count:
            if count is None and self.body[self.at : self.at + 1] == b"}":
                self.take(1)
                break
            key = self.text()
            held[key] = self.value(self.take(1), depth + 1)
        return held

    def stated(self) -> int | None:
        """The length after a `#`; None where there is no `#`."""
        if self.body[self.at : self.at + 1] != b"#":
            return None
        self.take(1)
        return self.length()

    def array(self, depth: int) -> Any:
        """An array; a typed one is skipped and only its length kept."""
        if self.body[self.at : self.at + 1] == b"$":
            mark = self.take(2)[1:]
            typed = self.stated() or 0
            self.take(typed * struct.calcsize(_NUMBERS.get(mark, "B")))
            return Numbers(length=typed)
        count = self.stated()
        held: list[Any] = []
        while count is None or len(held) < count:
            mark = self.take(1)
            if count is None and mark == b"]":
                break
            held.append(self.value(mark, depth + 1))
        return held


def read_ubjson(file: Path, most_bytes: int) -> dict[str, Any]:
    """The object in a UBJSON file.

    Raises:
        InputError: larger than `most_bytes`, cut off, or not an object.
    """
    if file.stat().st_size > most_bytes:
        raise broken(file, f"it is larger than {most_bytes} bytes")
    reader = _Reader(file.read_bytes(), file)
    value = reader.value(reader.take(1))
    if not isinstance(value, dict):
        raise broken(file, "it does not hold an object")
    return value


def broken(file: Path, why: str) -> InputError:
    """The error for a file that is not what it claims."""
    return InputError(f"{file} is no model in UBJSON", why=why, fix="save the model again, or name another")
