"""Number formats as data: how many bits a weight takes with its scales, and what it is multiplied in.

`data/formats.csv` holds one format a row. `bits` is the element alone, `scale_bits` what one scale (with its
zero point) takes, `scale_per` what shares it: a whole `tensor`, a `row`, a `128x128` block or so many
weights. A format that no row lists may say its sizes in its name (`model/stored.py`): it plans like the row next to it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal, cast

from chipwise.errors import UnknownNameError
from chipwise.facts import read_rows
from chipwise.model import stored_format

DATA = Path(__file__).parent / "data"
Kind = Literal["float", "integer", "codebook", "block-float", "block-integer", "mixture"]
Covers = Literal["all", "linear"]
COLUMNS = (
    "name", "family", "kind", "bits", "scale_bits", "scale_per", "compute", "activation", "covers", "use",
    "aliases", "source", "where", "read_on",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One number format of weights or of cache elements."""

    name: str
    family: str
    """What the rules of chips speak of: fp8, fp8-block and fp8-channel are all `fp8`."""
    kind: Kind
    bits: int
    """Of one element, without scales: what `--min-precision` compares."""
    stored_bits: float
    """What an element takes without scales: `bits`, unless half of them are left out or a code stands for several."""
    scale_bits: float
    """Of one scale, its zero point with it."""
    scale_rows: int | None
    """Rows of weights that share a scale; None: all."""
    scale_cols: int | None
    """Columns of weights that share a scale; None: all."""
    compute_format: str | None
    """What matrix units multiply it in where they know it; None: always widened to 16 bits first."""
    activation_format: str | None
    """What activations are quantised to with it; None: they stay at 16 bits."""
    covers: Covers
    """`linear`: embedding, head, norms and router stay at 16 bits; `all`: every matrix takes it."""
    use: frozenset[str]
    """`weights`, `kv`."""
    aliases: tuple[str, ...]
    source: str
    where: str
    read_on: str

    @property
    def bits_per_weight(self) -> float:
        """`stored_bits + scale_bits / weights that share a scale`; scales of a row or a tensor are too few to count.

        >>> format_facts("int4-g128").bits_per_weight, format_facts("nvfp4").bits_per_weight
        (4.15625, 4.5)
        """
        if self.scale_rows is None or self.scale_cols is None:
            return self.stored_bits
        return self.stored_bits + self.scale_bits / (self.scale_rows * self.scale_cols)

    @property
    def weight_only(self) -> bool:
        """Whether every known kernel widens it to 16 bits before it multiplies."""
        return self.compute_format is None


def matrix_bytes(fmt: Format, *, rows: int, cols: int) -> int:
    """Bytes that a `rows` x `cols` matrix takes, with every scale it has.

    `ceil(rows cols stored_bits / 8) + scales x scale_bits / 8`, scales = ceil(rows / scale_rows) ceil(cols /
    scale_cols).

    >>> matrix_bytes(format_facts("fp8-block"), rows=256, cols=256)
    65552
    >>> matrix_bytes(format_facts("mxfp4"), rows=1, cols=64)
    34
    """
    scales = 0
    if fmt.scale_bits:
        per_column = math.ceil(rows / fmt.scale_rows) if fmt.scale_rows else 1
        scales = per_column * (math.ceil(cols / fmt.scale_cols) if fmt.scale_cols else 1)
    return math.ceil(rows * cols * fmt.stored_bits / 8 + scales * fmt.scale_bits / 8)


@cache
def format_facts(name: str) -> Format:
    """The format of that name or alias; case, underscores and spaces do not count.

    Raises:
        UnknownNameError: no format of that name; proposes near ones.

    >>> format_facts("FP8_E4M3").name, format_facts("awq").name, format_facts("w8a8").name
    ('fp8', 'int4-g128', 'int8')
    >>> format_facts("int4-g256").bits_per_weight
    4.078125
    """
    found = _by_alias().get(_key(name)) or _named_by_sizes(_key(name))
    if found is None:
        raise UnknownNameError("precision", name, _by_alias(), listing="see the list: " + ", ".join(_SHORT))
    return found


def canonical(name: str) -> str:
    """The canonical name of a format.

    Raises:
        UnknownNameError: as `format_facts`.

    >>> canonical("bfloat16"), canonical("q4_k_m")
    ('bf16', 'gguf-q4_k_m')
    """
    return format_facts(name).name


def bytes_per_param(name: str) -> float:
    """Bytes one weight takes with its share of scales and zero points.

    Raises:
        UnknownNameError: as `format_facts`.

    >>> bytes_per_param("bf16"), bytes_per_param("mxfp4"), bytes_per_param("nf4")
    (2.0, 0.53125, 0.5625)
    """
    return format_facts(name).bits_per_weight / 8


def kv_bytes_per_element(name: str) -> float:
    """Bytes one cached element takes with its share of scales.

    Raises:
        UnknownNameError: no such format, or none that caches are kept in.

    >>> kv_bytes_per_element("fp8"), kv_bytes_per_element("nvfp4")
    (1.0, 0.5625)
    """
    fmt = format_facts(name)
    if "kv" not in fmt.use:
        raise UnknownNameError("KV-cache precision", name, kv_format_names(), listing=", ".join(kv_format_names()))
    return fmt.bits_per_weight / 8


def precision_rank(name: str) -> int:
    """Bits of one element: the order that `--min-precision` goes by. A format of equal rank passes.

    >>> precision_rank("bf16") > precision_rank("fp8") == precision_rank("int8") > precision_rank("nvfp4")
    True
    """
    return format_facts(name).bits


def meets_floor(name: str, floor: str) -> bool:
    """Whether a format has at least as many bits an element as `floor`.

    >>> meets_floor("fp8-block", "fp8"), meets_floor("int4", "fp8")
    (True, False)
    """
    return precision_rank(name) >= precision_rank(floor)


def format_names() -> tuple[str, ...]:
    """Canonical names, in the order of the table."""
    return tuple(_table())


def kv_format_names() -> tuple[str, ...]:
    """Canonical names of what a KV cache may be kept in."""
    return tuple(name for name, fmt in _table().items() if "kv" in fmt.use)


_SHORT = ("bf16", "fp16", "fp8", "int8", "int4", "nvfp4", "mxfp4", "nf4", "gguf-q4_k_m")


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.strip().lower()).strip("-")


_SPARSE = "-sparse24"
# By the start of its name, the listed format that a format which says its own sizes plans like.
_LIKE = {
    "mlx-int": "mlx-int4-g64",
    "hqq-int": "int4-g128",
    "int": "int4-g128",
    "fp8-block": "fp8-block",
    "codes": "int4-channel",
    "exl": "int4-channel",
}


@cache
def _named_by_sizes(key: str) -> Format | None:
    """A format that the table does not list and whose name says its sizes."""
    if key.endswith(_SPARSE):
        dense = _by_alias().get(key.removesuffix(_SPARSE)) or _named_by_sizes(key.removesuffix(_SPARSE))
        return replace(dense, name=key, stored_bits=dense.stored_bits / 2 + 1, aliases=()) if dense else None
    sizes = stored_format(key)
    like = next((_table()[row] for start, row in _LIKE.items() if key.startswith(start)), None)
    if sizes is None or like is None:
        return None
    bits = max(1, math.floor(sizes.element_bits))
    return replace(
        like,
        name=key,
        family="int8-weight-only" if bits == _BYTE and like.family == "int4" else like.family,
        bits=bits,
        stored_bits=sizes.element_bits,
        scale_bits=sizes.scale_bits,
        scale_rows=sizes.scale_rows,
        scale_cols=sizes.scale_cols,
        aliases=(),
    )


_BYTE = 8


@cache
def _table() -> Mapping[str, Format]:
    rows = (_format(dict(zip(COLUMNS, row, strict=True))) for _, row in read_rows(DATA / "formats.csv", COLUMNS))
    return MappingProxyType({fmt.name: fmt for fmt in rows})


@cache
def _by_alias() -> Mapping[str, Format]:
    table = _table()
    aliases = {_key(alias): fmt for fmt in table.values() for alias in fmt.aliases}
    return MappingProxyType(aliases | {_key(name): fmt for name, fmt in table.items()})


def _shared_by(text: str) -> tuple[int | None, int | None]:
    """Rows and columns that share a scale: `row` is one row and every column, `32` is 1 x 32."""
    if text == "row":
        return 1, None
    if "x" in text:
        rows, _, cols = text.partition("x")
        return int(rows), int(cols)
    return (1, int(text)) if text.isdigit() else (None, None)


def _format(row: Mapping[str, str]) -> Format:
    scale_rows, scale_cols = _shared_by(row["scale_per"])
    return Format(
        name=row["name"],
        family=row["family"],
        kind=cast("Kind", row["kind"]),
        bits=int(row["bits"]),
        stored_bits=float(row["bits"]),
        scale_bits=float(row["scale_bits"]),
        scale_rows=scale_rows,
        scale_cols=scale_cols,
        compute_format=row["compute"] or None,
        activation_format=row["activation"] or None,
        covers=cast("Covers", row["covers"]),
        use=frozenset(row["use"].split()),
        aliases=tuple(row["aliases"].split()),
        source=row["source"],
        where=row["where"],
        read_on=row["read_on"],
    )
