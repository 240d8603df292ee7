"""GGUF headers: metadata says what the model is, tensor shapes and types say how large. No weights are read."""

from __future__ import annotations

import csv
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, BinaryIO

from chipwise.errors import InputError
from chipwise.model.tensors import Tensor

MOST_TENSORS = 200_000
MOST_KEYS = 100_000
MOST_STRING_BYTES = 2**24
MOST_ARRAY = 2**22
_KEPT_ARRAY = 4_096
_MOST_DIMS = 8

_NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Gguf:
    """A header: its metadata (long arrays only by their length) and its tensors."""

    metadata: Mapping[str, Any]
    lengths: Mapping[str, int]
    tensors: tuple[Tensor, ...]


class _Reader:
    """Reads forward through a header and never beyond the end of the file."""

    def __init__(self, handle: BinaryIO, file: Path) -> None:
        self.handle = handle
        self.file = file
        self.size = file.stat().st_size
        self.lengths: dict[str, int] = {}

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        if count < 0 or count > self.size - self.handle.tell():
            raise broken(self.file, "it ends inside its header")
        return self.handle.read(count)

    def number(self, form: str) -> Any:
        """The next number."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def string(self) -> str:
        """The next string."""
        length = self.number("<Q")
        if length > MOST_STRING_BYTES:
            raise broken(self.file, f"a string in it claims {length} bytes")
        return self.take(length).decode("utf-8", errors="replace")

    def value(self, kind: int, key: str) -> Any:
        """The next value of a type."""
        if kind in _NUMBERS:
            return self.number(_NUMBERS[kind])
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            return self.array(key)
        raise broken(self.file, f"{key[:60]!r} has the unknown type {kind}")

    def array(self, key: str) -> list[Any]:
        """The next array; beyond `_KEPT_ARRAY` entries only its length is kept."""
        kind, length = self.number("<I"), self.number("<Q")
        if length > MOST_ARRAY or kind == _ARRAY:
            raise broken(self.file, f"the array {key[:60]!r} has {length} entries of type {kind}")
        self.lengths[key] = length
        if kind in _NUMBERS and length > _KEPT_ARRAY:
            self.take(length * struct.calcsize(_NUMBERS[kind]))
            return []
        kept = [self.value(kind, key) for _ in range(length)]
        return kept if length <= _KEPT_ARRAY else []


def read_gguf(file: Path) -> Gguf:
    """The header of a GGUF file.

    Raises:
        InputError: not GGUF, cut off, or counts and lengths beyond what a file may hold.
    """
    with file.open("rb") as handle:
        reader = _Reader(handle, file)
        if reader.take(4) != b"GGUF":
            raise broken(file, "it does not start with GGUF")
        version, tensors, keys = reader.number("<I"), reader.number("<Q"), reader.number("<Q")
        if version not in (2, 3):
            raise broken(file, f"it is of version {version}; 2 and 3 can be read")
        if tensors > MOST_TENSORS or keys > MOST_KEYS:
            raise broken(file, f"it claims {tensors} tensors and {keys} keys")
        metadata = {}
        for _ in range(keys):
            key = reader.string()
            metadata[key] = reader.value(reader.number("<I"), key)
        found = tuple(_tensor(reader) for _ in range(tensors))
    return Gguf(metadata=metadata, lengths=reader.lengths, tensors=found)


def _tensor(reader: _Reader) -> Tensor:
    name, dims = reader.string(), reader.number("<I")
    if dims > _MOST_DIMS:
        raise broken(reader.file, f"tensor {name[:60]!r} has {dims} dimensions")
    shape = tuple(reader.number("<Q") for _ in range(dims))
    if any(side > 2**40 for side in shape):
        raise broken(reader.file, f"tensor {name[:60]!r} has the shape {shape}")
    kind = reader.number("<I")
    reader.number("<Q")
    return Tensor(name=name, shape=shape[::-1], dtype=type_names().get(kind, f"type-{kind}"))


@cache
def type_names() -> dict[int, str]:
    """The format of each ggml type number."""
    text = (files("chipwise.model") / "data" / "ggml_types.csv").read_text(encoding="utf-8")
    return {int(row["id"]): row["format"] for row in csv.DictReader(text.splitlines())}


def broken(file: Path, why: str) -> InputError:
    """The error for a file that is not a GGUF file we can read."""
    return InputError(f"{file} is no GGUF file", why=why, fix="download it again, or name another")
