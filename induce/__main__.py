"""`python -m induce [--check] [TYPE ...]`: derive the tables of `classes.csv` again, or count its classes against them.

Without types: all of them (hours). `--check` builds each class with its defaults and compares the count (minutes).
"""

from __future__ import annotations

import csv
import datetime as dt
import importlib.metadata
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chipwise.errors import ChipwiseError
from chipwise.model.defaults import class_defaults
from chipwise.model.read import Source, read_source
from induce.explore import Subject
from induce.paths import NOISE
from induce.subjects import REFUSALS, Diffusers, Transformers
from induce.table import ClassTable, Whole, induced, packed, params, write

HERE = Path(__file__).parent
TABLES = HERE.parent / "src" / "chipwise" / "model" / "data" / "tensors"


def say(text: str) -> None:
    """One line, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def listed(types: list[str]) -> dict[str, list[dict[str, str]]]:
    """The classes of `classes.csv` by model_type, those of `types` where any is named."""
    with (HERE / "classes.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    out: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        if not types or row["model_type"] in types:
            out.setdefault(row["model_type"], []).append(row)
    return out


def subject(row: Mapping[str, str]) -> Transformers | Diffusers:
    """The class of a row."""
    if row["library"] == "diffusers":
        return Diffusers(class_name=row["class"])
    given = json.loads((HERE / "given.json").read_text(encoding="utf-8"))
    return Transformers(model_type=row["model_type"], class_name=row["class"], given=given.get(row["given"], {}))


def derive(model_type: str, rows: list[dict[str, str]]) -> None:
    """Write the table of one model_type; classes whose defaults do not come out are told and left out."""
    classes: dict[str, ClassTable] = {}
    own: dict[str, Any] = {}
    for row in rows:
        try:
            whole: Whole = subject(row)
        except REFUSALS as refused:
            say(f"{model_type} {row['class']}: cannot be built ({refused})")
            continue
        table = induced(whole)
        if table is None:
            say(f"{model_type} {row['class']}: its defaults do not come out, left out")
            continue
        classes[row["class"]] = table
        own |= {part.path: _own(_at(whole.config, part.path)) for part in whole.parts}
        say(f"{model_type} {row['class']}: {len(table.rows)} rows, {table.right} of {table.checked} joint builds right")
    if not classes:
        return
    library = rows[0]["library"]
    version, torch = importlib.metadata.version(library), importlib.metadata.version("torch")
    source = (
        f"Hugging Face {library} {version} (PyPI), class built on torch {torch} meta tensors, "
        "config keys varied one and several at a time"
    )
    made = packed(classes, source=source, read_on=dt.datetime.now(tz=dt.UTC).date().isoformat(), kind=rows[0]["kind"])
    for entry in made["classes"].values():
        entry["parts"] = [[path, name, kind, own.get(path, {})] for path, name, kind, _ in entry["parts"]]
    causal = json.loads((HERE / "causal.json").read_text(encoding="utf-8")).get(model_type)
    write(TABLES / f"{model_type}.json", {**({"causal": causal} if causal else {}), **made})


def _at(config: Any, path: str) -> Mapping[str, Any]:
    for step in path.split("."):
        config = config.get(step) or {}
    return config if isinstance(config, Mapping) else {}


def _own(config: Mapping[str, Any]) -> dict[str, Any]:
    """What a nested config says otherwise than its own class does: sizes that the class leaves open are among it."""
    usual = class_defaults(str(config.get("model_type") or ""))
    out: dict[str, Any] = {
        key: value
        for key, value in config.items()
        if (_shapes(key, value) and value != usual.get(key)) or (key == "layer_types" and value)
    }
    for key, value in config.items():
        if isinstance(value, Mapping) and value.get("model_type"):
            out[key] = {"model_type": value["model_type"], **_own(value)}
    return out


def _shapes(key: str, value: object) -> bool:
    """Whether a key may act on shapes: no noise, no word."""
    return isinstance(value, int | float | list) and not NOISE.search(key) and key not in _OTHER


# Keys of every configuration class that act on no shape.
_OTHER = ("max_length", "min_length", "chunk_size", "pretraining_tp", "use_return_dict", "tf_legacy_loss")


def check(model_type: str, rows: list[dict[str, str]]) -> bool:
    """Whether chipwise counts each class as it is built with its own defaults."""
    good = True
    for row in rows:
        found = subject(row)
        counted = _counted(found)
        config = {**found.config, "architectures": [row["class"]], "_class_name": row["class"]}
        config = {**found.config, "_class_name": row["class"]} if row["library"] == "diffusers" else config
        if row["library"] != "diffusers":
            config.pop("_class_name")
        try:
            read: int | str = read_source(Source(config=config, name=model_type)).params_total
        except ChipwiseError as error:
            read = error.what
        if read != counted:
            say(f"{model_type} {row['class']}: read {read}, built {counted}")
            good = False
    return good


def _counted(found: Subject) -> int | None:
    if isinstance(found, Transformers):
        model, _ = found.build(found.config)
        return sum(int(tensor.numel()) for tensor in model.parameters())
    shapes = found.shapes(found.config)
    return None if shapes is None else params(shapes)


def main(arguments: list[str]) -> int:
    """Derive or check; 1 where a check fails."""
    only_check = "--check" in arguments
    found = listed([item for item in arguments if not item.startswith("-")])
    if not found:
        say(f"no such type in classes.csv: {json.dumps(arguments)}")
        return 2
    if only_check:
        same = [check(model_type, rows) for model_type, rows in found.items()]
        return 0 if all(same) else 1
    for model_type, rows in found.items():
        derive(model_type, rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
