"""Every cell of the guide's tables and every box of its flows as a question, and what the guide recommends there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

from chipwise.guide.tables import Row, table

_QUESTIONS = Path(__file__).parent / "data" / "questions.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell or box.

    `question` is what is asked, by the fields of a request to `plan`; `part` names what of the answer is compared;
    `recommends` is the guide's word on it; `claims` are what the errata say of it.
    """

    id: str
    where: str
    question: Mapping[str, Any]
    part: str
    recommends: tuple[str, ...]
    claims: tuple[str, ...]


@cache
def cells() -> tuple[Cell, ...]:
    """Every cell, by section: those written down, then those of the tables that are alike cell by cell.

    >>> next(one for one in cells() if one.id == "8.8-latency").recommends
    ('p5e.48xlarge', 'trn2.48xlarge')
    """
    return tuple(chain(map(_written, table("cells")), _formats(), _caches(), _needs()))


@cache
def questions() -> Mapping[str, Mapping[str, Any]]:
    """The questions by name: fields of a request, lists as tuples.

    >>> questions()["goal-cost-8b"]["goal"]
    'cost'
    """
    import yaml

    read = yaml.safe_load(_QUESTIONS.read_text(encoding="utf-8"))
    return MappingProxyType({name: MappingProxyType(_fields(said)) for name, said in read.items()})


def _fields(said: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in said.items()}


def _written(row: Row) -> Cell:
    return Cell(
        id=row["id"],
        where=row["where"],
        question=questions()[row["question"]],
        part=row["part"],
        recommends=_recommended(row),
        claims=tuple(row["claims"].split()),
    )


def _recommended(row: Row) -> tuple[str, ...]:
    """The words of the cell; `=table.column` stands for those that another table holds for this id or line."""
    said = row["guide"]
    if not said.startswith("="):
        return _words(said, row["part"])
    name, _, column = said[1:].partition(".")
    key, wanted = ("box", row["id"].partition(".format")[0]) if name == "flow_boxes" else ("where", row["where"])
    return tuple(next(one[column] for one in table(name) if one[key] == wanted).split())


def _words(said: str, part: str) -> tuple[str, ...]:
    """Sizes, formats and the like are words; what has blanks in it is one."""
    return (said,) if part in {"signal", "amount", "scale"} else tuple(said.split())


def _formats() -> Iterator[Cell]:
    """The two matrices of data types: a format and the families that have it or have not."""
    for row in table("datatypes"):
        yield Cell(
            id=row["id"],
            where=row["where"],
            question=MappingProxyType({**questions()["has-format"], "needs": (row["row"],)}),
            part="has" if row["guide"] == "yes" else "lacks",
            recommends=tuple(row["families"].split()),
            claims=(row["id"],),
        )


def _caches() -> Iterator[Cell]:
    """The table of caches: so many requests of such a length."""
    for row in table("kv_cells"):
        asked = {"context_tokens": int(row["context_tokens"]), "users": int(row["concurrency"])}
        yield Cell(
            id=row["id"],
            where=row["where"],
            question=MappingProxyType({**questions()["cache"], **asked}),
            part="cache",
            recommends=(row["guide_gb"],),
            claims=(row["id"],),
        )


def _needs() -> Iterator[Cell]:
    """The checklist: how much a kind of workload needs a feature."""
    for row in table("checklist"):
        yield Cell(
            id=f"7.{row['workload']}.{row['feature']}",
            where=row["source"],
            question=questions()[f"checklist-{row['workload']}"],
            part="need",
            recommends=(f"{row['feature']}={row['need']}",),
            claims=(),
        )
