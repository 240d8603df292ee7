"""What a chip does with a weight format: multiply it natively, hold it and widen it, or neither.

`data/capabilities.csv` holds the rules by vendor, architecture and compute capability, first match wins; no
rule names a chip. Rates come from the chip's own table: a format without a printed rate has none here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal, cast

from chipwise.catalog.types import Chip
from chipwise.facts import read_rows
from chipwise.precision.formats import DATA, Format, format_facts

Mode = Literal["native", "weight-only", "none"]
COLUMNS = (
    "vendor", "architecture", "cc_from", "cc_below", "families", "mode", "stored", "compute", "rate_of",
    "advisable", "why", "source", "where", "read_on",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """What one chip does with one weight format.

    `stored_format` is what its memory holds: the format asked for, or what it is cast to where the chip lacks
    it (bf16 on Turing and Volta is held as fp16). `flops_per_s` is the dense peak in `compute_format`; None
    where no source prints it, and where mode is `none`.
    """

    mode: Mode
    weight_format: str
    stored_format: str
    compute_format: str | None
    flops_per_s: float | None
    advisable: bool
    """False: it works, and nobody should plan on it; `why` says so."""
    why: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    vendor: str
    architecture: str
    cc_from: float
    cc_below: float
    families: frozenset[str]
    mode: Mode
    stored: str
    compute: str
    rate_of: tuple[str, ...]
    advisable: bool
    why: str
    source: str

    def matches(self, chip: Chip, family: str) -> bool:
        if self.vendor != chip.vendor or not (self.families & {family, "*"}):
            return False
        if self.architecture not in {"*", chip.architecture}:
            return False
        return self.cc_from <= _version(chip.compute_capability) < self.cc_below


@lru_cache(maxsize=4096)
def capability(chip: Chip, weight_format: str) -> Capability:
    """What `chip` does with weights of that format.

    Native: multiplied as stored, at the dense rate of `compute_format`. Weight-only: stored as asked, widened
    to 16 bits before the multiplication, at the 16-bit rate; it saves bytes, not FLOPs. None: it cannot be
    held.

    Args:
        chip: any chip of the catalog.
        weight_format: a name or alias of a format.

    Raises:
        UnknownNameError: no such format.

    Source: the rule that matched; `source` and `why` of the result say which.
    """
    fmt = format_facts(weight_format)
    rule = next((rule for rule in _rules() if rule.matches(chip, fmt.family)), None)
    return _unruled(chip, fmt) if rule is None else _ruled(chip, fmt, rule)


def _ruled(chip: Chip, fmt: Format, rule: _Rule) -> Capability:
    compute = rule.compute or fmt.compute_format
    rates = (chip.dense_flops_per_s.get(name) for name in rule.rate_of or ((compute,) if compute else ()))
    return Capability(
        mode=rule.mode,
        weight_format=fmt.name,
        stored_format=rule.stored or fmt.name,
        compute_format=None if rule.mode == "none" else compute,
        flops_per_s=None if rule.mode == "none" else next((rate for rate in rates if rate), None),
        advisable=rule.advisable,
        why=rule.why,
        source=rule.source,
    )


def _unruled(chip: Chip, fmt: Format) -> Capability:
    """No rule speaks of this vendor: only what the chip's own table calls native."""
    native = fmt.compute_format is not None and fmt.compute_format in chip.native
    lists = "lists it as native" if native else "does not list it as native, and no kernel is known that widens it"
    return Capability(
        mode="native" if native else "none",
        weight_format=fmt.name,
        stored_format=fmt.name,
        compute_format=fmt.compute_format if native else None,
        flops_per_s=chip.dense_flops_per_s.get(fmt.compute_format or "") if native else None,
        advisable=True,
        why=f"the table of {chip.id} {lists}",
        source=f"catalog facts of {chip.id}",
    )


def _version(text: str | None) -> float:
    """`10.3` as 10.03, so that 12.10 would lie above 12.9; 0 where there is none."""
    if not text:
        return 0.0
    major, _, minor = text.partition(".")
    return int(major) + int(minor or 0) / 100


@cache
def _rules() -> tuple[_Rule, ...]:
    rows = (dict(zip(COLUMNS, row, strict=True)) for _, row in read_rows(DATA / "capabilities.csv", COLUMNS))
    return tuple(_rule(row) for row in rows)


def _rule(row: Mapping[str, str]) -> _Rule:
    return _Rule(
        vendor=row["vendor"],
        architecture=row["architecture"],
        cc_from=_version(row["cc_from"]),
        cc_below=_version(row["cc_below"]) if row["cc_below"] else float("inf"),
        families=frozenset(row["families"].split()),
        mode=cast("Mode", row["mode"]),
        stored=row["stored"],
        compute=row["compute"],
        rate_of=tuple(row["rate_of"].split()),
        advisable=row["advisable"] == "yes",
        why=row["why"],
        source=f"{row['source']}: {row['where']}",
    )
