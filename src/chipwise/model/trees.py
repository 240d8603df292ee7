"""Gradient-boosted trees and scikit-learn: XGBoost (JSON, UBJSON), LightGBM (text), scikit-learn by name and sizes.

A tree is counted at four numbers a node, those a prediction reads: which feature, its threshold (or the leaf's value),
two children. That is what decides whether a GPU is worth it, and it fits in a processor's cache more often than not.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from chipwise.errors import InputError, KnowledgeError, UnknownNameError
from chipwise.model.spec import ModelSpec, ParamsSource, Weight
from chipwise.model.ubjson import Numbers

_NUMBERS_A_NODE = 4
_MOST_NODES = 2**40


def forest(name: str, kind: str, nodes: int, trees: int, *, source: ParamsSource = "config") -> ModelSpec:
    """A model of `trees` trees that have `nodes` nodes together.

    >>> forest("toy", "xgboost", nodes=700, trees=100).params_total
    2800
    """
    table = Weight(
        name="trees.nodes", part="other", out_features=nodes, in_features=_NUMBERS_A_NODE, gemm=False,
        quantisable=False, format="fp32",
    )  # fmt: skip
    return _tabular(name, kind, (table,), source, {"trees": str(trees), "nodes": str(nodes)})


def linear(name: str, kind: str, weights: int, *, source: ParamsSource = "config") -> ModelSpec:
    """A linear model of so many coefficients."""
    row = Weight(name="coefficients", part="other", out_features=1, in_features=weights, format="fp32")
    return _tabular(name, kind, (row,), source, {})


def _tabular(name: str, kind: str, outer: tuple[Weight, ...], source: ParamsSource, extra: dict[str, str]) -> ModelSpec:
    return ModelSpec(
        name=name, model_type=kind, architecture="tabular", layers=(), outer=outer, hidden_size=0, vocab_size=0,
        max_context_tokens=None, dtype="float32", params_source=source, extra=extra,
    )  # fmt: skip


def is_xgboost(config: Mapping[str, Any]) -> bool:
    """Whether an object is a model that XGBoost saved."""
    learner = config.get("learner")
    return isinstance(learner, Mapping) and "gradient_booster" in learner


def from_xgboost(config: Mapping[str, Any], name: str) -> ModelSpec:
    """A saved XGBoost model: gbtree, dart (trees with a weight each) or gblinear.

    Raises:
        InputError: it holds no trees and no coefficients.
    """
    booster = _inner(config, "learner", "gradient_booster")
    model = booster.get("model", {})
    model = model if isinstance(model, Mapping) else {}
    if booster.get("name") == "gblinear":
        return linear(name, "xgboost", _length(model.get("weights")))
    held = model.get("trees")
    held = _inner(booster, "gbtree", "model").get("trees") if held is None else held
    if not isinstance(held, list):
        raise _broken(name, "its gradient_booster holds no trees")
    return forest(name, "xgboost", sum(_nodes(name, tree) for tree in held), len(held))


def _inner(config: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    value: Any = config
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _nodes(name: str, tree: Any) -> int:
    stated = _inner(tree if isinstance(tree, Mapping) else {}, "tree_param").get("num_nodes")
    if isinstance(stated, str | int) and not isinstance(stated, bool) and str(stated).isdigit():
        return min(int(stated), _MOST_NODES)
    counted = _length(tree.get("left_children")) if isinstance(tree, Mapping) else 0
    if not counted:
        raise _broken(name, "a tree in it has no nodes")
    return counted


def _length(value: Any) -> int:
    return value.length if isinstance(value, Numbers) else len(value) if isinstance(value, list) else 0


_LEAVES = re.compile(r"^num_leaves=(\d{1,12})\s*$", re.MULTILINE)


def from_lightgbm(text: str, name: str) -> ModelSpec:
    """A LightGBM model in its text format: a tree of n leaves has n - 1 splits.

    >>> text = chr(10).join(["tree", "version=v4", "Tree=0", "num_leaves=31"])
    >>> from_lightgbm(text, "toy").params_total
    244

    Raises:
        InputError: it lists no trees.
    """
    leaves = [int(found) for found in _LEAVES.findall(text)]
    if not leaves:
        raise _broken(name, "it lists no trees")
    return forest(name, "lightgbm", sum(2 * count - 1 for count in leaves if count), len(leaves))


def _broken(name: str, why: str) -> InputError:
    return InputError(f"{name} is no model of trees", why=why, fix="save the model again, or name another file")


@cache
def _estimators() -> Mapping[str, Mapping[str, str]]:
    text = (files("chipwise.model") / "data" / "sklearn.csv").read_text(encoding="utf-8")
    return {row["name"].lower(): row for row in csv.DictReader(text.splitlines())}


_PREFIX = re.compile(r"^(sklearn|scikit-learn)[:.]", re.IGNORECASE)


def is_sklearn(reference: str) -> bool:
    """Whether a reference names a scikit-learn estimator: `sklearn:NAME` or `sklearn.module.NAME`."""
    return bool(_PREFIX.match(reference))


_SAVED = re.compile(r"^(xgb|lgbm|lightgbm)", re.IGNORECASE)


def how_to_name(reference: str) -> str:
    """How to ask for a model of trees or an estimator that was named without its notation; empty for other names.

    >>> how_to_name("RandomForestClassifier")
    'write it as sklearn:RandomForestClassifier,trees=100,depth=12'
    >>> how_to_name("xgboost")
    'give the path of the saved model: .json or .ubj of XGBoost, .txt of LightGBM'
    """
    head = reference.partition(",")[0].strip()
    row = _estimators().get(head.lower())
    if row is not None:
        sizes = "features=300" if row["kind"] == "linear" else "trees=100,depth=12"
        return f"write it as sklearn:{row['name']},{sizes}"
    return "give the path of the saved model: .json or .ubj of XGBoost, .txt of LightGBM" if _SAVED.match(head) else ""


def from_sklearn(reference: str) -> ModelSpec:
    """A scikit-learn estimator by its class, with sizes: `sklearn:Ridge,features=300`.

    A fitted forest is as deep as its data make it; where the class sets no bound, `depth` or `samples` must be said.

    >>> from_sklearn("sklearn:GradientBoostingClassifier").params_total
    6000

    Raises:
        UnknownNameError: no such estimator in the table.
        KnowledgeError: its size depends on something that is not said; what, is named.
    """
    head, *pairs = _PREFIX.sub("", reference).split(",")
    name = head.rpartition(".")[2]
    row = _estimators().get(name.lower())
    if row is None:
        raise UnknownNameError("scikit-learn estimator", name, [known["name"] for known in _estimators().values()])
    given = _given(reference, pairs)
    if row["kind"] == "linear":
        need(row["name"], given, "features")
        return linear(row["name"], "sklearn", given["features"] * given.get("classes", 1) + 1, source="user")
    trees = given.get("trees") or int(row["trees"])
    return forest(row["name"], "sklearn", trees * _tree_nodes(row, given), trees, source="user")


def _given(reference: str, pairs: Sequence[str]) -> dict[str, int]:
    given = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        if key.strip() not in {"features", "classes", "trees", "depth", "samples", "leaves"} or not value.isdigit():
            raise InputError(
                f"cannot read {pair!r} in {reference[:80]!r}",
                why="features, classes, trees, depth, leaves and samples are whole numbers",
                fix="write it like sklearn:RandomForestClassifier,trees=100,depth=12",
            )
        given[key.strip()] = min(int(value), 2**31)
    return given


def need(name: str, given: Mapping[str, int], *keys: str) -> None:
    """Refuse where none of `keys` is given."""
    if not any(key in given for key in keys):
        raise KnowledgeError(
            f"the size of {name} depends on {' or '.join(keys)}",
            why="a fitted model is as large as its data make it, and nothing is guessed",
            fix=f"say it: sklearn:{name},{keys[0]}=...",
        )


def _tree_nodes(row: Mapping[str, str], given: Mapping[str, int]) -> int:
    """Nodes of one tree at most: 2 * leaves - 1, where leaves <= 2^depth and <= samples."""
    bounds = {key: given.get(key) or (int(row[key]) if row[key] else None) for key in ("leaves", "depth")}
    if bounds["leaves"] is None and bounds["depth"] is None:
        need(row["name"], given, "depth", "samples", "leaves")
    leaves = [bounds["leaves"], given.get("samples"), 2 ** min(bounds["depth"], 40) if bounds["depth"] else None]
    return 2 * min(count for count in leaves if count) - 1
