"""Tables of numbers: DLRM (embedding tables and two MLPs) and TabNet, described by a small YAML of their sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from chipwise.model.blocks import Weights, matrix, norm, table
from chipwise.model.detect import DIMS, ROWS, TABLES
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys

_BOTTOM = ("bottom_mlp", "arch_mlp_bot", "bot_mlp", "dense_arch_layer_sizes", "dense_mlp")
_TOP = ("top_mlp", "arch_mlp_top", "over_arch_layer_sizes", "over_mlp")
_ROW = (*ROWS[:2], "vocab", "vocab_size", "cardinality", "num_rows")


def dlrm(keys: Keys) -> Draft:
    """DLRM: `sum(rows * dim)` in the tables, which are looked up; MLPs below and above their interaction.

    Tables are a list of {rows, dim}, or a number of tables with `rows` and `dims`, each one number or a list.

    >>> draft = dlrm(Keys(data={"tables": [{"rows": 1000, "dim": 16}], "bottom_mlp": [13, 16]}))
    >>> sum(weight.params for weight in draft.outer)
    16224
    """
    pairs = _tables(keys)
    outer: Weights = tuple(
        table(f"embedding_tables.{index}", rows, dim, units=rows) for index, (rows, dim) in enumerate(pairs)
    )
    width = max(dim for _, dim in pairs)
    bottom, top = _widths(keys, _BOTTOM), _widths(keys, _TOP)
    features = len(pairs) + bool(bottom)
    dense = keys.maybe("dense_features", "num_dense_features", "dense_in_features")
    outer += _mlp("bottom_mlp", (dense, *bottom) if dense and bottom else bottom)
    # Above the interaction stand the dense vector and every pair of features once.
    joined = width + features * (features - 1) // 2
    outer += _mlp("top_mlp", (joined, *top) if top else ())
    return Draft(kind="recommender", outer=outer, hidden_size=width)


def _tables(keys: Keys) -> list[tuple[int, int]]:
    listed = keys.raw(*TABLES)
    if isinstance(listed, list) and listed and all(isinstance(item, Mapping) for item in listed):
        return [pair for index, item in enumerate(listed) for pair in _table(keys, index, item)]
    keys.need(ROWS, DIMS)
    rows = _numbers(keys, ROWS)
    count = keys.maybe(*TABLES) if isinstance(listed, int) else None
    rows = rows * count if count and len(rows) == 1 else rows
    dims = _numbers(keys, DIMS)
    dims = dims * len(rows) if len(dims) == 1 else dims
    if len(dims) != len(rows) or (count and count != len(rows)) or not rows:
        raise keys.wrong(ROWS[0], len(rows), "one number of rows and one dim for every table")
    return list(zip(rows, dims, strict=True))


def _table(keys: Keys, index: int, item: Mapping[str, Any]) -> list[tuple[int, int]]:
    one = Keys(data=item, path=f"{keys.path}tables.{index}.")
    one.need(_ROW, DIMS)
    return [(one.size(*_ROW), one.size(*DIMS, least=1))] * min(one.size("count", default=1), 100_000)


def _numbers(keys: Keys, names: Sequence[str]) -> tuple[int, ...]:
    value = keys.raw(*names)
    if isinstance(value, str):
        parts = value.replace(",", "-").split("-")
        value = [int(part) for part in parts if part.strip().isdigit()]
    found = keys.also(**{names[0]: value})
    return found.sizes(names[0], count=1)


def _widths(keys: Keys, names: Sequence[str]) -> tuple[int, ...]:
    return _numbers(keys, names) if keys.has(*names) else ()


def _mlp(name: str, widths: Sequence[int]) -> Weights:
    return tuple(
        weight
        for index, (inside, out) in enumerate(pairwise(widths))
        for weight in matrix(f"{name}.{index}", (out, inside), "mlp", bias=True)
    )


def tabnet(keys: Keys) -> Draft:
    """TabNet: steps of a feature transformer (shared and own gated layers) and an attentive transformer.

    With w = n_d + n_a: shared layers of 2w outputs hold no bias; each step has its own norms and own layers.
    """
    keys.need(("input_dim",), ("output_dim",), ("n_d",), ("n_a",), ("n_steps",))
    inside, out = keys.size("input_dim", least=1), keys.size("output_dim")
    n_d, n_a, steps = keys.size("n_d"), keys.size("n_a"), keys.layers("n_steps")
    shared, own = keys.size("n_shared", default=2), keys.size("n_independent", default=2)
    rows, dims = keys.sizes("cat_dims"), keys.sizes("cat_emb_dim", count=len(keys.sizes("cat_dims")))
    inside += sum(dim - 1 for dim in dims[: len(rows)])
    w = n_d + n_a
    gated: Weights = (*matrix("fc", (2 * w, w), "mlp"), *norm("bn", 2 * w, "layer"))
    first = matrix("shared.0", (2 * w, inside), "mlp") if shared else ()
    transformer: Weights = norm("bn", 2 * w, "layer") * shared + gated * own
    attentive = (*matrix("attentive.fc", (inside, n_a), "attention"), *norm("attentive.bn", inside, "layer"))
    outer = (
        *(table(f"embeddings.{index}", *pair) for index, pair in enumerate(zip(rows, dims, strict=False))),
        *norm("initial_bn", inside, "layer"),
        *first,
        *(matrix("shared", (2 * w, w), "mlp") * max(shared - 1, 0)),
        *(transformer * (steps + 1)),
        *(attentive * steps),
        *matrix("final_mapping", (out, n_d), "head"),
    )
    return Draft(kind="tabular", outer=outer, hidden_size=w)


READERS = {"dlrm": dlrm, "tabnet": tabnet}
