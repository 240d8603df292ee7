"""`validate(request)`: replay a table of measurements and say how far off chipwise is. The door of this room."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chipwise.audit import inference, memory, params
from chipwise.audit.items import Context, Item, Line, Predict
from chipwise.audit.score import summary
from chipwise.audit.table import Row, read_table
from chipwise.errors import InputError, UnknownNameError


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateRequest:
    """A question to `validate`. `by` are the keys of `groups`; `sample` items are drawn the same way every time.

    `incomplete` also predicts and scores what the table does not call complete.
    """

    kind: str
    file: str
    models: str | None = None
    rows: str | None = None
    by: tuple[str, ...] = ()
    sample: int | None = None
    incomplete: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How one kind of table is read and replayed."""

    required: tuple[str, ...]
    items_of: Callable[[list[Row], Context], list[Item]]
    predict: Predict
    by: tuple[str, ...]
    """What is grouped by where nothing is asked."""


KINDS = {
    "params": Kind(
        required=params.REQUIRED, items_of=params.items_of, predict=params.predict, by=("metric", "class")
    ),
    "memory": Kind(
        required=memory.REQUIRED, items_of=memory.items_of, predict=memory.predict, by=("metric", "engine", "version")
    ),
    "inference": Kind(
        required=inference.REQUIRED,
        items_of=inference.items_of,
        predict=inference.predict,
        by=("quantity", "load", "source"),
    ),
}


def validate(request: ValidateRequest) -> dict[str, Any]:
    """Replay the table of `request`, in CONTRACT's shape.

    Raises:
        InputError: a table that cannot be read, or lacks the columns of its kind; a folder for `--rows`.
        UnknownNameError: no such kind.
    """
    if request.kind not in KINDS:
        raise UnknownNameError("kind of table", request.kind, KINDS, listing=f"choose {', '.join(KINDS)}")
    kind = KINDS[request.kind]
    context = Context(
        file=Path(request.file),
        models=Path(request.models) if request.models else None,
        incomplete=request.incomplete,
    )
    rows = read_table(context.file, kind.required)
    items = sample(kind.items_of(rows, context), request.sample)
    lines = kind.predict(items, context)
    if request.rows is not None:
        write_lines(lines, Path(request.rows))
    answer = summary(lines, rows=len(rows), by=request.by or kind.by)
    return {"kind": request.kind, "sample": request.sample, "by": list(request.by or kind.by), **answer}


def sample(items: list[Item], count: int | None) -> list[Item]:
    """`count` items drawn by the hash of their run, so that one run's metrics come together; the order is kept."""
    if count is None or count >= len(items):
        return items
    places = sorted(range(len(items)), key=lambda place: (_digest(items[place]), place))[:count]
    return [items[place] for place in sorted(places)]


def _digest(item: Item) -> bytes:
    return hashlib.blake2b(item.row.run_id.encode(), digest_size=8).digest()


def write_lines(lines: list[Line], file: Path) -> None:
    """One JSON line an item.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        with file.open("w", encoding="utf-8") as handle:
            for line in lines:
                handle.write(json.dumps(line.as_json(), ensure_ascii=False, allow_nan=False) + "\n")
    except OSError as error:
        raise InputError(
            f"{file} cannot be written", why=f"--rows writes one line an item ({error})", fix="name a writable file"
        ) from error
