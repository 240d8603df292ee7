"""The header of a safetensors file: eight bytes of length, then JSON of names, types, shapes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chipwise.errors import InputError
from chipwise.model.tensors import Tensor

MOST_HEADER_BYTES = 100_000_000
MOST_TENSORS = 1_000_000
_LENGTH = 8
_MOST_DIMS = 8


def read_header(file: Path) -> list[Tensor]:
    """Every tensor that a safetensors file holds.

    Raises:
        InputError: the header is longer than the file or than `MOST_HEADER_BYTES`, or is not what it should be.
    """
    size = file.stat().st_size
    with file.open("rb") as handle:
        length = int.from_bytes(handle.read(_LENGTH), "little")
        if not 0 < length <= min(size - _LENGTH, MOST_HEADER_BYTES):
            raise _broken(file, f"its header claims {length} bytes of a file of {size}")
        text = handle.read(length)
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _broken(file, "its header is not JSON") from error
    if not isinstance(header, dict) or len(header) > MOST_TENSORS:
        raise _broken(file, f"its header is not an object of at most {MOST_TENSORS} tensors")
    return [_tensor(file, name, entry) for name, entry in header.items() if name != "__metadata__"]


def _tensor(file: Path, name: str, entry: Any) -> Tensor:
    known: Mapping[str, Any] = entry if isinstance(entry, Mapping) else {}
    shape, dtype = known.get("shape"), known.get("dtype")
    if not isinstance(shape, list) or not isinstance(dtype, str) or len(shape) > _MOST_DIMS:
        raise _broken(file, f"tensor {name[:60]!r} has no shape and dtype")
    if not all(isinstance(side, int) and not isinstance(side, bool) and 0 <= side <= 2**40 for side in shape):
        raise _broken(file, f"tensor {name[:60]!r} has the shape {str(shape)[:60]}")
    return Tensor(name=name, shape=tuple(shape), dtype=dtype)


def _broken(file: Path, why: str) -> InputError:
    return InputError(f"{file} is no safetensors file", why=why, fix="download it again, or name another")
