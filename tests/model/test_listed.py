"""Classes known by their tensors, against transformers and diffusers: each class default holds exactly this many.

`listed_counts.csv`: parameters of the class on torch's meta device (transformers 5.24.0, diffusers 0.42.1, torch
2.13.0), and of the class with some keys changed (`changes`, JSON).
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from chipwise.errors import KnowledgeError
from chipwise.model.draft import Draft
from chipwise.model.families import reader
from chipwise.model.families.listed import listed, listed_types, read_listed
from chipwise.model.keys import Keys
from chipwise.model.read import Source, read_source

with (Path(__file__).parent / "listed_counts.csv").open(encoding="utf-8", newline="") as handle:
    ROWS = [
        (row["model_type"], row["architecture"], row["changes"], int(row["params"])) for row in csv.DictReader(handle)
    ]


def _config(model_type: str, changes: str) -> dict[str, Any]:
    """The class defaults as a config, with the changes."""
    table = listed(model_type)
    assert table is not None
    config: dict[str, Any] = {"model_type": model_type}
    parts = tuple(f"{part[0]}." for entry in table["classes"].values() for part in entry["parts"])
    for path, value in {**table["defaults"], **json.loads(changes or "{}")}.items():
        if not path.startswith(parts):
            _put(config, path.split("."), value)
    return config


def _put(held: Any, steps: list[str], value: object) -> None:
    step, *rest = steps
    if isinstance(held, list):
        while len(held) <= int(step):
            held.append(None)
        key: Any = int(step)
    else:
        key = step
    if not rest:
        held[key] = value
        return
    missing = held[key] is None if isinstance(held, list) else key not in held
    if missing:
        held[key] = [] if rest[0].isdigit() else {}
    _put(held[key], rest, value)


def _total(draft: Draft) -> int:
    outside = sum(weight.params for weight in draft.outer) + sum(tower.params for tower in draft.towers)
    return outside + sum(layer.params for layer in draft.layers)


@pytest.mark.parametrize(("model_type", "architecture", "changes", "params"), ROWS)
def test_counts(model_type: str, architecture: str, changes: str, params: int) -> None:
    keys = Keys(data=_config(model_type, changes), nested=True, head=architecture)
    assert _total(read_listed(keys)) == params


@pytest.mark.parametrize("model_type", listed_types())
def test_tables_are_whole(model_type: str) -> None:
    table = listed(model_type)
    assert table is not None
    assert table["source"]
    assert reader(model_type) is read_listed
    for entry in table["classes"].values():
        assert entry["rows"] or entry["parts"]
        assert all(len(table["rows"][index]) == 5 for index in entry["rows"])


def test_a_size_that_is_missing_is_named() -> None:
    with pytest.raises(KnowledgeError, match="hidden_size"):
        read_source(Source(config={"model_type": "ijepa", "architectures": ["IJepaModel"]}, name="x"))


def test_a_key_of_unknown_effect_is_refused() -> None:
    config = {**_config("rt_detr", ""), "num_feature_levels": 5, "architectures": ["RTDetrForObjectDetection"]}
    with pytest.raises(KnowledgeError, match="num_feature_levels differ"):
        read_source(Source(config=config, name="x"))


def test_detectors_on_a_cnn_are_cnn() -> None:
    config = {**_config("rt_detr", ""), "architectures": ["RTDetrForObjectDetection"]}
    assert read_source(Source(config=config, name="x")).architecture == "cnn"
