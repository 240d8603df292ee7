"""Defaults of Hugging Face configuration classes: facts with a source, kept in `data/class_defaults.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    text = (files("chipwise.model") / "data" / "class_defaults.json").read_text(encoding="utf-8")
    table: Mapping[str, Mapping[str, Any]] = json.loads(text)["classes"]
    return table


def class_defaults(model_type: str) -> Mapping[str, Any]:
    """What the configuration class of `model_type` assumes for keys a file leaves out; empty where it is not known.

    >>> class_defaults("gemma2")["head_dim"]
    256
    """
    return _table().get(model_type, {})


@cache
def _towers() -> Mapping[str, Mapping[str, Any]]:
    text = (files("chipwise.model") / "data" / "towers.json").read_text(encoding="utf-8")
    rows: list[Mapping[str, Any]] = json.loads(text)["towers"]
    return {row["name"]: row["config"] for row in rows}


def named_tower(name: str) -> Mapping[str, Any] | None:
    """The config of a vision tower that other configs only name; None where its shape is not known here.

    >>> named_tower("openai/clip-vit-large-patch14-336")["num_hidden_layers"]
    24
    """
    return _towers().get(name)


@cache
def _sized() -> Mapping[str, int]:
    text = (files("chipwise.model") / "data" / "towers.json").read_text(encoding="utf-8")
    rows: list[Mapping[str, Any]] = json.loads(text)["sized"]
    return {row["name"]: row["params"] for row in rows}


def sized_tower(name: str) -> int | None:
    """Parameters of a tower of which only the total is known; None where it is not known here.

    >>> sized_tower("mobilenetv5_300m_enc")
    294126912
    """
    return _sized().get(name)


@cache
def _backbones() -> Mapping[str, Mapping[str, Any]]:
    text = (files("chipwise.model") / "data" / "towers.json").read_text(encoding="utf-8")
    rows: list[Mapping[str, Any]] = json.loads(text)["backbones"]
    return {row["name"]: row for row in rows}


def backbone(name: str) -> Mapping[str, Any] | None:
    """Stage widths and depths of a ResNet that a detector only names; None where it is not known here.

    >>> backbone("resnet50")["depths"]
    [3, 4, 6, 3]
    """
    return _backbones().get(name)
