"""A table of measurements as rows that answer safely: a blank, odd or missing cell is None, never a crash."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from chipwise.errors import InputError
from chipwise.units import parse_count

_LEADING = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", re.IGNORECASE)
_REPOSITORY = re.compile(r"(?:https?://)?([\w.-]+/[\w.-]+?)(?:[@#\s:/]|$)")
_TRUE = frozenset({"true", "yes", "1", "y"})
_NOTES = ("note", "note_first_row")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a table: cells by column name, stripped."""

    number: int
    cells: Mapping[str, str]

    def text(self, column: str) -> str:
        """The cell; empty where it is blank or the table has no such column."""
        return self.cells.get(column, "")

    def value(self, column: str) -> float | None:
        """The cell as a number; None where it is blank or holds none.

        >>> row = Row(number=1, cells={"isl": "~8,192", "tp": "8 GPUs", "rate": "inf", "osl": "2k"})
        >>> [row.value(name) for name in ("isl", "tp", "rate", "osl", "pp")]
        [8192.0, 8.0, inf, 2000.0, None]
        """
        return number(self.text(column))

    def finite(self, column: str) -> float | None:
        """The cell as a finite number, else None."""
        value = self.value(column)
        return value if value is not None and math.isfinite(value) else None

    def positive(self, column: str) -> float | None:
        """The cell as a finite number above zero, else None."""
        value = self.value(column)
        return value if value is not None and 0 < value < math.inf else None

    def yes(self, column: str) -> bool:
        """Whether the cell says yes."""
        return self.text(column).lower() in _TRUE

    @property
    def run_id(self) -> str:
        """The run's name; without one the line number stands for it."""
        return self.text("run_id") or self.text("id") or self.text("file") or f"line {self.number}"

    @property
    def note(self) -> str:
        """What the source says beside its figures."""
        return " ".join(self.text(name) for name in _NOTES if self.text(name))

    @property
    def source(self) -> str:
        """Who measured: the table's own key, else the repository or host that `source` begins with.

        >>> Row(number=1, cells={"source": "lab/bench@1a2b:results/x.csv"}).source
        'lab/bench'
        """
        if self.text("source_key"):
            return self.text("source_key")
        text = self.text("source")
        found = _REPOSITORY.match(text)
        return found.group(1) if found else text.split(" ")[0] or "unknown"


def number(text: str) -> float | None:
    """The number a text begins with, `~`, thousands commas and units aside; `inf` is infinite; None: there is none.

    >>> number("95%"), number("about 3"), number("infinite"), number("")
    (95.0, None, inf, None)
    """
    plain = text.strip().lstrip("~≈<>=").replace(",", "").strip()
    if not plain:
        return None
    if plain.lower().startswith("inf"):
        return math.inf
    try:
        return float(plain) if plain.lower() != "nan" else None
    except ValueError:
        pass
    try:
        return float(parse_count(plain))
    except InputError:
        found = _LEADING.match(plain)
        return float(found.group()) if found else None


def read_table(file: Path, required: tuple[str, ...]) -> list[Row]:
    """The rows of a csv.

    Raises:
        InputError: no such file, not text, empty, or a column of `required` is missing.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{file} cannot be read", why=f"a table of measurements is a text file ({error})", fix="check the path"
        ) from error
    reader = csv.DictReader(io.StringIO(text, newline=""))
    lacking = [name for name in required if name not in (reader.fieldnames or ())]
    if lacking:
        raise InputError(
            f"{file} has no column {' and none '.join(lacking)}",
            why="the measurements of this kind of table stand there",
            fix="name the table of that kind, with its header line",
        )
    try:
        return [_row(place, cells) for place, cells in enumerate(reader, start=2)]
    except csv.Error as error:
        raise InputError(f"{file} is no csv", why=str(error), fix="write it out again as a csv") from error


def _row(place: int, cells: Mapping[str | None, str | list[str] | None]) -> Row:
    plain = {key: value.strip() for key, value in cells.items() if key is not None and isinstance(value, str)}
    return Row(number=place, cells=plain)
