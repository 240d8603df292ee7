"""`check_guide`: every cell and box of the guide asked, the answer beside its word, every difference with a reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chipwise.audit.guide_check.asked import Asked, Told, command, remembering, request_of
from chipwise.audit.guide_check.parts import compare
from chipwise.audit.guide_check.reasons import errata, unanswered
from chipwise.errors import ChipwiseError, UnknownNameError
from chipwise.guide import Cell, cells, section_at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from chipwise.audit.guide_check.asked import Ask

    Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class GuideCheckRequest:
    """Which cells: all, or those of these ids; an id that ends in `*` means all that begin so."""

    only: tuple[str, ...] = ()


def check_guide(
    request: GuideCheckRequest, *, ask: Ask | None = None, progress: Progress | None = None
) -> dict[str, Any]:
    """Put every cell to `plan` and compare.

    A cell agrees when the answer holds what the guide recommends there. Where it does not, the reasons are read off
    that answer (the row of the size, the bar it misses, what it costs more) or off the errata; a cell that differs
    without any is listed in `unexplained`.

    Args:
        request: which cells.
        ask: puts a question; `advise`, each question once, unless said otherwise.
        progress: told after every cell how many are done, and of how many.

    Raises:
        UnknownNameError: no such cell; proposes near ones.

    >>> found = check_guide(GuideCheckRequest(only=("8.3",)))
    >>> found["cells"][0]["question"], found["agree"], found["total"], found["unexplained"]
    ('chipwise plan llama-3.3-70b --for chat', 1, 1, [])
    """
    ask, asked, rows = ask or remembering(), chosen(request.only), []
    for cell in asked:
        rows.append(_row(cell, ask))
        if progress:
            progress(len(rows), len(asked))
    return {
        "schema_version": 1,
        "cells": rows,
        "agree": sum(row["agrees"] for row in rows),
        "total": len(rows),
        "unexplained": [row["id"] for row in rows if not row["agrees"] and not row["differs"]],
    }


def chosen(only: Sequence[str]) -> tuple[Cell, ...]:
    """The cells of these ids in the guide's order; all without any.

    Raises:
        UnknownNameError: an id, or the beginning of one, that no cell has.
    """
    known = [cell.id for cell in cells()]
    for word in only:
        if not any(_means(word, name) for name in known):
            raise UnknownNameError("cell", word, known, listing="chipwise guide check lists them")
    return tuple(cell for cell in cells() if not only or any(_means(word, cell.id) for word in only))


def _means(word: str, name: str) -> bool:
    return name.startswith(word[:-1]) if word.endswith("*") else name == word


def _row(cell: Cell, ask: Ask) -> dict[str, Any]:
    told = _told(cell, ask)
    differs = [] if told.agrees else [*errata(cell.claims), *told.differs]
    return {
        "id": cell.id,
        "section": section_at(cell.where),
        "where": cell.where,
        "question": command(cell.question),
        "part": cell.part,
        "guide_recommends": list(cell.recommends),
        "answer": list(told.answer),
        "agrees": told.agrees,
        "differs": differs,
    }


def _told(cell: Cell, ask: Ask) -> Told:
    request = request_of(cell.question)
    try:
        advice = ask(request)
    except ChipwiseError as error:
        return unanswered(error)
    return compare(cell.part, cell.recommends, Asked(request=request, advice=advice))
