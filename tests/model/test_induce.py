"""The tool that derives tensor tables: a class made up here comes out as the expressions it was made from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

Shapes = dict[str, tuple[int, ...]]


@pytest.fixture(scope="module")
def induce(repo: Path) -> Iterator[ModuleType]:
    """The folder beside src: it is no part of the package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(repo))
        import induce.explore
        import induce.fit
        import induce.rows
        import induce.table

        yield induce


CONFIG: dict[str, Any] = {
    "hidden_size": 48,
    "ffn_dim": 192,
    "num_layers": 3,
    "image_size": 96,
    "patch_size": 16,
    "use_bias": False,
    "register_tokens": 0,
    "stages": [2, 1],
    "padding_idx": 1,
}


def built(config: Mapping[str, Any]) -> Shapes:
    """An encoder of patches, a gate beside the first layer, registers and biases where they are asked for."""
    hidden, ffn = config["hidden_size"], config["ffn_dim"]
    side = config["image_size"] // config["patch_size"]
    out: Shapes = {"embeddings.position": (side * side + 1, hidden)}
    if config["register_tokens"]:
        out["embeddings.registers"] = (config["register_tokens"], hidden)
    for index in range(config["num_layers"]):
        out[f"layers.{index}.fc1.weight"] = (2 * ffn, hidden)
        out[f"layers.{index}.norm.weight"] = (hidden,)
        if config["use_bias"]:
            out[f"layers.{index}.fc1.bias"] = (2 * ffn,)
    for stage, count in enumerate(config["stages"]):
        for index in range(count):
            out[f"stages.{stage}.blocks.{index}.weight"] = (hidden * 2**stage, hidden)
    out["gate.weight"] = (hidden * hidden // 16, 3)
    return out


@dataclass(slots=True, kw_only=True)
class Toy:
    """A class that takes an even width and no other."""

    config: dict[str, Any] = field(default_factory=lambda: dict(CONFIG))
    parts: tuple[()] = ()

    def shapes(self, config: Mapping[str, Any]) -> Shapes | None:
        return None if config["hidden_size"] % 4 else built(config)


def test_every_other_config_comes_out_as_built(induce: ModuleType) -> None:
    table = induce.table.induced(Toy())
    assert table is not None
    assert table.fixed == ()
    assert (table.right, table.checked > 0) == (table.checked, True)
    other = {
        **CONFIG,
        "hidden_size": 64,
        "ffn_dim": 100,
        "num_layers": 7,
        "image_size": 224,
        "use_bias": True,
        "register_tokens": 4,
        "stages": [3, 5],
    }
    env = {**other, "stages.0": 3, "stages.1": 5}
    assert induce.rows.total(table.rows, env) == induce.table.params(built(other))


def test_rows_say_what_they_depend_on(induce: ModuleType) -> None:
    table = induce.table.induced(Toy())
    rows = {row.name: row for row in table.rows}
    fc1 = rows["layers.N.fc1.weight"]
    assert (fc1.count, fc1.sides, dict(fc1.when)) == ("num_layers", ("2*ffn_dim", "hidden_size"), {})
    assert dict(rows["layers.N.fc1.bias"].when) == {"use_bias": True}
    assert dict(rows["embeddings.registers"].when) == {"register_tokens": ">0"}
    assert rows["embeddings.position"].sides[0] == "image_size~patch_size*image_size~patch_size+1"
    assert "padding_idx" not in table.defaults


def test_a_key_without_an_expression_is_fixed(induce: ModuleType) -> None:
    @dataclass(slots=True, kw_only=True)
    class Strange(Toy):
        def shapes(self, config: Mapping[str, Any]) -> Shapes | None:
            return {"odd": (config["hidden_size"] ** 5 % 1009 + 1, config["ffn_dim"])}

    table = induce.table.induced(Strange())
    assert table is not None
    assert table.fixed == ("hidden_size",)


def test_what_does_not_build_gives_no_table(induce: ModuleType) -> None:
    assert induce.table.induced(Toy(config={**CONFIG, "hidden_size": 47})) is None


def test_the_file_holds_rows_once(induce: ModuleType, tmp_path: Path) -> None:
    table = induce.table.induced(Toy())
    pair = {"ToyModel": table, "ToyForDetection": table}
    made = induce.table.packed(pair, source="toy 1.0", read_on="2026-11-30", kind="vision")
    induce.table.write(tmp_path / "toy.json", made)
    read = json.loads((tmp_path / "toy.json").read_text(encoding="utf-8"))
    assert read["classes"]["ToyModel"]["rows"] == read["classes"]["ToyForDetection"]["rows"]
    assert len(read["rows"]) == len(table.rows)
    assert read["defaults"]["hidden_size"] == 48
    assert ["layers.N.fc1", "num_layers", ["2*ffn_dim", "hidden_size"], {}, 1] in read["rows"]


@given(st.integers(1, 64), st.integers(1, 9), st.integers(0, 50))
def test_sums_of_products_are_found(induce: ModuleType, one: int, two: int, more: int) -> None:
    pairs = [(16, 4), (32, 4), (48, 4), (16, 8), (16, 12), (32, 8)]
    samples = [({"a": a, "b": b}, one * a * b + two * a + more) for a, b in pairs]
    text = induce.fit.fit(["a", "b"], samples)
    assert text is not None
    assert induce.fit.holds(text, [({"a": 96, "b": 20}, one * 96 * 20 + two * 96 + more)])


def test_no_expression_is_better_than_a_wrong_one(induce: ModuleType) -> None:
    samples = [({"a": a}, a**3 % 101) for a in (3, 7, 20, 33)]
    assert induce.fit.fit(["a"], samples) is None


def test_classes_and_what_they_must_be_given_are_listed(repo: Path) -> None:
    """Every table's model_type stands in `classes.csv`, and what a row names stands in `given.json`."""
    lines = (repo / "induce" / "classes.csv").read_text(encoding="utf-8").splitlines()[1:]
    given_names = set(json.loads((repo / "induce" / "given.json").read_text(encoding="utf-8")))
    fields = [line.split(",") for line in lines]
    tables = {path.stem for path in (repo / "src/chipwise/model/data/tensors").glob("*.json")}
    assert tables <= {row[1] for row in fields}
    assert {row[4] for row in fields if row[4]} <= given_names
