"""What a weight takes in the format it is stored in: a table, and a grammar for formats whose sizes vary.

`data/storage.csv` lists the usual formats. Beyond it a name says the sizes itself:

- `int4-g96`: integers of 4 bits; a 16-bit scale and a zero point of 4 bits every 96 of a row. `-channel`: a scale a
  row; `-tensor`: one scale; `-sym` behind a group: no zero point. `mlx-int6-g64` and `hqq-int4-g64` have a zero point
  (bias) of 16 bits.
- `fp8-block64x64`: 8 bits, a 32-bit scale every 64 x 64.
- `codes16-g8-table65536`: 16 bits for every 8 weights, and a table of 65,536 vectors of 8 16-bit numbers a matrix.
- `exl-4p25`: 4.25 bits on average, scales with them.
- `fp8-sparse24`: of every four weights the two that are not zero, and a bit for each of the four.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

_SCALE_BITS = 16
_GROUPS_OF = 8  # packed rows are cut at whole bytes
_SPARSE = "-sparse24"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFormat:
    """Bits of one element, and of what `scale_rows` x `scale_cols` of them share (None: all rows, all columns)."""

    element_bits: float
    scale_bits: float = 0.0
    scale_rows: int | None = None
    scale_cols: int | None = None

    @property
    def bits_per_weight(self) -> float:
        """`element_bits + scale_bits / (scale_rows scale_cols)`; what a row or a matrix shares is not counted.

        >>> StoredFormat(element_bits=4, scale_bits=20, scale_rows=1, scale_cols=128).bits_per_weight
        4.15625
        """
        if self.scale_rows is None or self.scale_cols is None:
            return float(self.element_bits)
        return self.element_bits + self.scale_bits / (self.scale_rows * self.scale_cols)


@cache
def stored_format(name: str) -> StoredFormat | None:
    """The sizes of a format; None for a name that neither the table nor the grammar knows.

    >>> stored_format("int4-g64-sym").bits_per_weight, stored_format("hqq-int4-g64").bits_per_weight
    (4.25, 4.5)
    >>> stored_format("bf16-sparse24").bits_per_weight, stored_format("int4-g7") is None
    (9.0, True)
    """
    if name.endswith(_SPARSE):
        dense = stored_format(name.removesuffix(_SPARSE))
        return replace(dense, element_bits=dense.element_bits / 2 + 1) if dense else None
    return _table().get(name) or _by_grammar(name)


def bits_per_weight(name: str) -> float | None:
    """Bits that a weight takes in a format, its share of the scales and zero points counted; None where unknown.

    >>> bits_per_weight("mxfp4"), bits_per_weight("nvfp4")
    (4.25, 4.5)
    """
    found = stored_format(name)
    return found.bits_per_weight if found else None


def _grouped(wide: str | None, bits: str, group: str, symmetric: str | None) -> StoredFormat | None:
    zero_bits = _SCALE_BITS if wide else 0 if symmetric else int(bits)
    if int(group) % _GROUPS_OF:
        return None
    return StoredFormat(element_bits=int(bits), scale_bits=_SCALE_BITS + zero_bits, scale_rows=1, scale_cols=int(group))


def _scaled(bits: str, shared: str) -> StoredFormat:
    return StoredFormat(element_bits=int(bits), scale_bits=_SCALE_BITS, scale_rows=1 if shared == "channel" else None)


def _block(rows: str, cols: str) -> StoredFormat:
    return StoredFormat(element_bits=8, scale_bits=32, scale_rows=int(rows), scale_cols=int(cols))


def _codes(bits: str, group: str, vectors: str) -> StoredFormat:
    return StoredFormat(element_bits=int(bits) / int(group), scale_bits=int(vectors) * int(group) * _SCALE_BITS)


def _average(whole: str, part: str) -> StoredFormat:
    return StoredFormat(element_bits=float(f"{whole}.{part}"))


_SIZE = r"[1-9]\d{0,5}"
_GRAMMAR: tuple[tuple[re.Pattern[str], Callable[..., StoredFormat | None]], ...] = (
    (re.compile(rf"(mlx-|hqq-)?int([1-8])-g({_SIZE})(-sym)?"), _grouped),
    (re.compile(r"int([1-8])-(channel|tensor)"), _scaled),
    (re.compile(rf"fp8-block({_SIZE})x({_SIZE})"), _block),
    (re.compile(rf"codes([1-9]\d?)-g([1-9]\d?)-table({_SIZE})"), _codes),
    (re.compile(r"exl-([1-8])p(\d{1,4})"), _average),
)


def _by_grammar(name: str) -> StoredFormat | None:
    for pattern, made in _GRAMMAR:
        found = pattern.fullmatch(name)
        if found:
            return made(*found.groups())
    return None


@cache
def _table() -> dict[str, StoredFormat]:
    text = (files("chipwise.model") / "data" / "storage.csv").read_text(encoding="utf-8")
    out = {}
    for row in csv.DictReader(text.splitlines()):
        group = int(row["group"])
        shared = (1, group) if group else (None, None)
        out[row["format"]] = StoredFormat(
            element_bits=float(row["element_bits"]),
            scale_bits=float(row["scale_bits"]),
            scale_rows=shared[0],
            scale_cols=shared[1],
        )
    return out
