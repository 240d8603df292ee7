"""`validate(request)`: replay a table of measurements and say how far off chipwise is. The door of this room."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chipwise.audit import inference, memory, params, training
from chipwise.audit.decisions import decisions, replayed
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
    by: tuple[tuple[str, ...], ...]
    """What is grouped by, one after the other, where nothing is asked."""


KINDS = {
    "params": Kind(
        required=params.REQUIRED,
        items_of=params.items_of,
        predict=params.predict,
        by=tuple(("metric", name) for name in ("class", "family")),
    ),
    "memory": Kind(
        required=memory.REQUIRED,
        items_of=memory.items_of,
        predict=memory.predict,
        by=(("metric", "source"), ("metric", "engine", "version"), ("metric", "gpu")),
    ),
    "inference": Kind(
        required=inference.REQUIRED,
        items_of=inference.items_of,
        predict=inference.predict,
        by=tuple(("quantity", name) for name in ("load_kind", "source", "hardware", "engine", "family", "evidence")),
    ),
    "training": Kind(
        required=training.REQUIRED,
        items_of=training.items_of,
        predict=training.predict,
        by=tuple(("metric", name) for name in ("source", "hw_family", "method", "framework")),
    ),
}
DECISIONS = "decisions"


def validate(request: ValidateRequest) -> dict[str, Any]:
    """Replay the table of `request`, in CONTRACT's shape.

    Raises:
        InputError: a table that cannot be read, or lacks the columns of its kind; a folder for `--rows`.
        UnknownNameError: no such kind.
    """
    kind = _kind(request.kind)
    context = Context(file=Path(request.file), models=_models(request.models), incomplete=request.incomplete)
    rows = read_table(context.file, kind.required)
    if request.kind == DECISIONS:
        lines = replayed(rows, context)
    else:
        lines = kind.predict(sample(_items(kind, rows, context), request.sample), context)
    if request.rows is not None:
        write_lines(lines, Path(request.rows))
    if request.kind == DECISIONS:
        return {"kind": request.kind, **decisions(lines, rows=len(rows))}
    answer = summary(lines, rows=len(rows), by=(request.by,) if request.by else kind.by)
    return {"kind": request.kind, "sample": request.sample, **answer}


def _kind(name: str) -> Kind:
    """The kind of that name; decisions are made from the table of serving runs."""
    if name not in (*KINDS, DECISIONS):
        known = (*KINDS, DECISIONS)
        raise UnknownNameError("kind of table", name, known, listing=f"choose {', '.join(known)}")
    return KINDS["inference" if name == DECISIONS else name]


def _items(kind: Kind, rows: list[Row], context: Context) -> list[Item]:
    items = kind.items_of(rows, context)
    if rows and not items:
        raise InputError(
            f"{context.file} holds no measurement of that kind",
            why="none of its rows fills a column that such a table has",
            fix="name the kind the table is of: params, memory, inference, training, decisions",
        )
    return items


def _models(path: str | None) -> Path | None:
    if path is None or Path(path).exists():
        return Path(path) if path else None
    raise InputError(
        f"--models {path} is neither a folder nor a file",
        why="names are looked up there first",
        fix="give a folder of <org>__<name>.json files, or a csv with the columns model,file,variant",
    )


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
