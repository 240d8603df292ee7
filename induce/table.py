"""One class becomes a table: its rows, the values its class assumes, and what is not known of it; checked by building.

A model_type's file holds the rows of all its classes once, and for each class the numbers of its rows.
"""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from chipwise.model.expressions import names_in
from induce.explore import Builder, Explored, Shapes, Subject, explore, mixtures
from induce.paths import DEPTH, NOISE, changed, flat, numbers
from induce.rows import Row, Rows, rows_of, total, under_flags

# Keys that a part's config holds and that act on tensors outside of it.
_OUTWARD = {
    "hidden_size", "vocab_size", "d_model", "n_embd", "embed_dim", "projection_dim", "intermediate_size", "dim",
    "output_dim", "hidden_dim",
}  # fmt: skip
# Words whose other values change no tensor: they are not told as unknown.
_HARMLESS = re.compile(
    r"act$|activation|_fn$|_function|dtype|(^|\.)id2label|label2id|^label|commit|revision|attn_impl|pooling|^model_type|\.model_type$|"
    r"problem|loss|strategy|processor|padding_mode|_type$|init|rope|kernels|mode$|_method|path|_norm_func|"
    r"out_features|out_indices|stage_names|token|quantization_config|prefix|bad_words|resample|scheduler"
)
_OTHERS = 1000
_SHALLOW = 2


class PartLike(Protocol):
    """A part that another family reads."""

    @property
    def path(self) -> str:
        """Where its config stands."""
        ...

    @property
    def class_name(self) -> str:
        """What it is built as."""
        ...

    @property
    def model_type(self) -> str:
        """The family that reads it."""
        ...


class Whole(Subject, Protocol):
    """A subject with parts."""

    @property
    def parts(self) -> Sequence[PartLike]:
        """The parts of the class at its defaults."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassTable:
    """What is known of one class. `right` of `checked` builds, other values together, come out as counted."""

    rows: tuple[Row, ...]
    parts: tuple[tuple[str, str, str], ...]
    defaults: Mapping[str, Any]
    fixed: tuple[str, ...]
    words: Mapping[str, Any]
    right: int
    checked: int


def induced(subject: Whole, *, seconds: float = 300.0, shallow: bool = True) -> ClassTable | None:
    """The table of a class; None where it cannot be built, or its own defaults do not come out exactly.

    Deep stacks are explored at two layers first; where their true depth then comes out wrong, as they are.
    """
    builder = Builder(subject=subject, until=time.process_time() + seconds)
    config = dict(subject.config)
    true = builder.build(config)
    if true is None:
        return None
    start = _shallow(config, builder) if shallow else config
    explored, rows, untried = _explored(builder, subject, start)
    table = _table(builder, subject, explored, rows, untried)
    if params(true) == total(table.rows, numbers(config)):
        return table
    return induced(subject, seconds=2 * seconds, shallow=False) if shallow else None


def params(shapes: Shapes) -> int:
    """Elements of all tensors."""
    out = 0
    for shape in shapes.values():
        each = 1
        for side in shape:
            each *= side
        out += each
    return out


def _shallow(config: dict[str, Any], builder: Builder) -> dict[str, Any]:
    out = config
    for path, value in flat(config).items():
        is_depth = DEPTH.search(path.rpartition(".")[2])
        if is_depth and isinstance(value, int) and not isinstance(value, bool) and value > _SHALLOW:
            out = changed(out, path, _SHALLOW)
    return out if builder.build(out) is not None else config


def _explored(builder: Builder, subject: Whole, config: dict[str, Any]) -> tuple[Explored, Rows, list[str]]:
    inside = [part.path for part in subject.parts]
    found = {path: value for path, value in flat(config).items() if _counts(path, inside)}
    flags = [path for path, value in found.items() if isinstance(value, bool)]
    sizes = [path for path, value in found.items() if isinstance(value, int | float) and path not in flags]
    explored = explore(builder, config, sizes)
    if explored is None:
        raise AssertionError(config)
    rows = rows_of(explored)
    zeros = [path for path in explored.values if explored.points[0].env[path] == 0]
    rows, unbuilt = under_flags(builder, explored, rows, [*flags, *zeros])
    return explored, rows, [*explored.untried, *unbuilt]


def _counts(path: str, inside: Sequence[str]) -> bool:
    """Whether a key is tried: no noise, and of a part only what acts beyond it."""
    steps = path.split(".")
    if any(NOISE.search(step) for step in steps):
        return False
    return steps[-1] in _OUTWARD or not any(path.startswith(f"{part}.") for part in inside)


def _table(builder: Builder, subject: Whole, explored: Explored, rows: Rows, untried: Sequence[str]) -> ClassTable:
    wrong = {point.key for point in explored.points if point.key and not _right(rows, point.env, point.shapes)}
    fixed = rows.fixed | {key for key in wrong if key}
    used = {name for row in rows.rows for text in (row.count, *row.sides) for name in _keys(text)}
    used |= {path for row in rows.rows for path in row.when}
    known = flat(subject.config)
    words = {path: value for path, value in known.items() if isinstance(value, str) and not _HARMLESS.search(path)}
    words |= {
        path: known[path] for path in untried if path in known and path not in fixed | used and _told(path, known)
    }
    right, checked = _checked(builder, explored, replace(rows, fixed=frozenset(fixed)))
    return ClassTable(
        rows=rows.rows,
        parts=tuple((part.path, part.class_name, part.model_type) for part in subject.parts),
        defaults={path: known[path] for path in sorted(used | fixed) if path in known},
        fixed=tuple(sorted(fixed)),
        words=words,
        right=right,
        checked=checked,
    )


def _told(path: str, known: Mapping[str, Any]) -> bool:
    return not _HARMLESS.search(path) and not isinstance(known[path], list | dict)


def _keys(text: str) -> set[str]:
    return {name for pair in names_in(text) for name in pair.split("~")}


def _right(rows: Rows, env: Mapping[str, float], shapes: Shapes) -> bool:
    try:
        return total(rows.rows, env) == params(shapes)
    except (ZeroDivisionError, KeyError):
        return False


def _checked(builder: Builder, explored: Explored, rows: Rows) -> tuple[int, int]:
    """Builds that no row was made from, several free keys changed: how many come out right, of how many that build."""
    free = {path: values[-1:] for path, values in explored.values.items() if path not in rows.fixed}
    right = checked = 0
    for chosen in mixtures(free, first=_OTHERS):
        config = dict(explored.config)
        for path, value in chosen.items():
            config = changed(config, path, value)
        shapes = builder.build(config)
        checked += shapes is not None
        right += shapes is not None and _right(rows, numbers(config), shapes)
    return right, checked


def packed(classes: Mapping[str, ClassTable], *, source: str, read_on: str, kind: str) -> dict[str, Any]:
    """The file of one model_type: rows that several classes have stand once; vectors alike are counted together."""
    order = sorted(classes, key=lambda name: -len(classes[name].rows))
    holders: dict[str, list[str]] = defaultdict(list)
    rows: dict[str, list[Any]] = {}
    for name in order:
        for row in classes[name].rows:
            shown = [row.name, row.count, list(row.sides), dict(row.when)]
            key = json.dumps(shown)
            rows.setdefault(key, shown)
            holders[key].append(name)
    listed, place = _merged(rows, holders)
    return {
        "source": source,
        "read_on": read_on,
        "kind": kind,
        "defaults": {key: value for name in order for key, value in classes[name].defaults.items()},
        "words": {key: value for name in order for key, value in classes[name].words.items()},
        "classes": {
            name: {
                "rows": sorted({place[key] for key in rows if name in holders[key]}),
                "parts": [[*part, {}] for part in classes[name].parts],
                "fixed": list(classes[name].fixed),
            }
            for name in order
        },
        "rows": listed,
    }


def _merged(rows: Mapping[str, list[Any]], holders: Mapping[str, list[str]]) -> tuple[list[list[Any]], dict[str, int]]:
    """Matrices stay alone; vectors of one stack, size, count and condition become one row with their number."""
    listed: list[list[Any]] = []
    place: dict[str, int] = {}
    vectors: dict[str, int] = {}
    for key, (name, count, sides, when) in rows.items():
        shown = [name.removesuffix(".weight"), count, sides, when, 1]
        alike = json.dumps([name.rpartition(".N.")[0], count, sides, when, holders[key], "norm" in name])
        if len(sides) == 1 and alike in vectors:
            place[key] = vectors[alike]
            listed[vectors[alike]][4] += 1
            continue
        place[key] = len(listed)
        listed.append(shown)
        if len(sides) == 1:
            vectors[alike] = place[key]
    return listed, place


def write(file: Path, table: Mapping[str, Any]) -> None:
    """A table as JSON, one row a line."""
    heads = [
        f"{json.dumps(key)}:{json.dumps(value, separators=(',', ':'))}" for key, value in table.items() if key != "rows"
    ]
    rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in table["rows"])
    file.write_text("{" + ",\n".join([*heads, f'"rows":[\n{rows}\n]']) + "}\n", encoding="utf-8")
