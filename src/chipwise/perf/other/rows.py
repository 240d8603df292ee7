"""Rows of a table: embeddings looked up and small networks (DLRM), or trees walked node by node."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from chipwise.perf.other.encoders import lacking
from chipwise.perf.other.layers import multiplied
from chipwise.perf.other.passes import Forward, Item, Passes
from chipwise.precision import bytes_per_param

if TYPE_CHECKING:
    from chipwise.model import ModelSpec

NUMBER_BYTES = 4.0
"""The numbers of a tree's node, and those of a row that comes in, have 32 bits."""


def recommender_passes(model: ModelSpec, item: Item) -> Passes:
    """`item.batch` candidates: a row of every table each, then the networks above.

    `batch * sum(dim * bytes of an element)` are looked up; matrices as everywhere.

    Raises:
        KnowledgeError: the model has no tables and no matrices.
    """
    tables = [weight for weight in model.outer if weight.part == "embedding"]
    if not tables and not any(weight.gemm for weight in model.outer):
        raise lacking(model, "what a candidate costs", "neither embedding tables nor networks were read")
    row_bytes = sum(float(bytes_per_param(each.format)) * each.in_features for each in tables)
    one = Forward(name="ranker", moved_bytes=item.batch * row_bytes)
    for weight in model.outer:
        one = one.plus(multiplied(weight, rows=item.batch))
    one = one.plus(Forward(name="lookups", kernels=float(bool(tables))))
    note = "one row of every table a candidate; a request's own vectors are looked up for every candidate"
    asked = len(tables) + _inputs(model)
    return Passes(
        unit=item.unit,
        units=1.0,
        forwards=(one,),
        peak_bytes=one.moved_bytes,
        input_bytes=item.batch * asked * NUMBER_BYTES,
        notes=(note,),
    )


def _inputs(model: ModelSpec) -> float:
    """Numbers that the first matrix takes."""
    return float(next((weight.in_features for weight in model.outer if weight.gemm), 0))


def tabular_passes(model: ModelSpec, item: Item) -> Passes:
    """`item.batch` rows down every tree, or through a linear model or a small network.

    A balanced tree of n nodes is `log2((n + 1) / 2)` deep: `batch * trees * depth` nodes are read, each of the
    numbers that the model's file holds a node.

    Raises:
        KnowledgeError: neither trees nor matrices were read, or layers over steps whose number no file says.
    """
    trees, nodes = float(model.extra.get("trees", 0)), float(model.extra.get("nodes", 0))
    one = Forward(name="model")
    notes: tuple[str, ...] = ()
    if trees and nodes:
        depth = max(math.log2(max((nodes / trees + 1.0) / 2.0, 1.0)), 1.0)
        width = sum(weight.in_features for weight in model.outer if weight.out_features == nodes)
        one = Forward(name="trees", moved_bytes=item.batch * trees * depth * width * NUMBER_BYTES)
        notes = (
            "trees are taken as balanced, and nodes read at the memory's rate: waiting for each is not counted",
            "how many features a row has no file says: its way over the network is not counted",
        )
    elif model.layers or not any(weight.gemm for weight in model.outer):
        why = "how many steps of its layers a row is, no file says" if model.layers else "neither trees nor networks"
        raise lacking(model, "what a row costs", why)
    for weight in model.outer:
        one = one.plus(multiplied(weight, rows=item.batch))
    return Passes(
        unit=item.unit,
        units=item.batch,
        forwards=(one,),
        peak_bytes=one.moved_bytes,
        input_bytes=item.batch * _inputs(model) * NUMBER_BYTES,
        notes=notes,
    )


def walks_trees(model: ModelSpec) -> bool:
    """Whether the model is trees: no matrix to multiply."""
    return "trees" in model.extra
