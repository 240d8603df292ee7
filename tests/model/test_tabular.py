"""Trees, embedding tables, estimators by name: enough to say whether a GPU is needed at all."""

from __future__ import annotations

import contextlib
import json
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chipwise.errors import ChipwiseError, InputError, KnowledgeError, UnknownNameError
from chipwise.model import load_model


def _write(folder: Path, name: str, body: bytes | str) -> str:
    file = folder / name
    file.write_bytes(body if isinstance(body, bytes) else body.encode())
    return str(file)


def _xgboost(*nodes: int) -> dict[str, object]:
    trees = [{"tree_param": {"num_nodes": str(count)}, "left_children": [-1] * count} for count in nodes]
    return {
        "learner": {"gradient_booster": {"model": {"trees": trees}, "name": "gbtree"}, "learner_model_param": {}},
        "version": [2, 1, 0],
    }


def test_xgboost_json(tmp_path: Path) -> None:
    spec = load_model(_write(tmp_path, "model.json", json.dumps(_xgboost(7, 15))))
    assert (spec.architecture, spec.params_total, spec.extra["trees"]) == ("tabular", 4 * 22, "2")


def test_xgboost_linear(tmp_path: Path) -> None:
    linear = {"learner": {"gradient_booster": {"name": "gblinear", "model": {"weights": [0.1] * 11}}}}
    assert load_model(_write(tmp_path, "model.json", json.dumps(linear))).params_total == 11


def _text(value: str) -> bytes:
    return b"U" + bytes([len(value)]) + value.encode()


def _ubj(value: object) -> bytes:
    if isinstance(value, dict):
        return b"{" + b"".join(_text(key) + _ubj(item) for key, item in value.items()) + b"}"
    if isinstance(value, str):
        return b"S" + _text(value)
    if isinstance(value, int):
        return b"L" + struct.pack(">q", value)
    assert isinstance(value, list)
    if value and all(isinstance(item, int) for item in value):
        return b"[$l#" + b"L" + struct.pack(">q", len(value)) + b"".join(struct.pack(">i", item) for item in value)
    return b"[#" + b"L" + struct.pack(">q", len(value)) + b"".join(_ubj(item) for item in value)


def test_xgboost_ubjson_says_the_same(tmp_path: Path) -> None:
    body = _ubj(_xgboost(7, 15))
    assert load_model(_write(tmp_path, "model.ubj", body)).params_total == 4 * 22


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
@given(data=st.data())
def test_broken_ubjson_is_refused_or_read(tmp_path: Path, data: st.DataObject) -> None:
    body = bytearray(_ubj(_xgboost(7, 15)))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(2, len(body) - 1))] = data.draw(st.integers(0, 255))
    path = _write(tmp_path, "model.ubj", bytes(body[: data.draw(st.integers(3, len(body)))]))
    with contextlib.suppress(ChipwiseError):
        assert load_model(path).params_total >= 0


def test_lightgbm_text(tmp_path: Path) -> None:
    text = "tree\nversion=v4\nnum_class=1\n\nTree=0\nnum_leaves=31\n\nTree=1\nnum_leaves=4\n"
    spec = load_model(_write(tmp_path, "model.txt", text))
    assert (spec.model_type, spec.params_total) == ("lightgbm", 4 * (61 + 7))


def test_lightgbm_without_trees(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no model of trees"):
        load_model(_write(tmp_path, "model.txt", "tree\nversion=v4\n"))


def test_dlrm_as_mlperf_sizes_it(tmp_path: Path) -> None:
    """Two tables of 10 and 20 rows x 8; 4-16-8 below; 3 pairs + 8 = 11 inputs above."""
    text = (
        "embedding_tables:\n  - {rows: 10, dim: 8}\n  - {rows: 20, dim: 8}\nbottom_mlp: [4, 16, 8]\ntop_mlp: [5, 1]\n"
    )
    spec = load_model(_write(tmp_path, "dlrm.yaml", text))
    below = 4 * 16 + 16 + 16 * 8 + 8
    above = 11 * 5 + 5 + 5 * 1 + 1
    assert (spec.architecture, spec.params_total) == ("recommender", 30 * 8 + below + above)


@pytest.mark.parametrize(
    "text",
    [
        "embedding_tables: 3\nrows: 100\ndims: 16\n",
        "rows: [100, 100, 100]\ndims: 16\n",
        "arch_embedding_size: 100-100-100\narch_sparse_feature_size: 16\n",
        "tables: [{rows: 100, dim: 16, count: 3}]\n",
    ],
)
def test_dlrm_spellings(tmp_path: Path, text: str) -> None:
    assert load_model(_write(tmp_path, "dlrm.yaml", text)).params_total == 4800


def test_dlrm_without_widths_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError, match="dims"):
        load_model(_write(tmp_path, "dlrm.yaml", "model_type: dlrm\nrows: [100, 200]\n"))


def test_tabnet(tmp_path: Path) -> None:
    """n_d = n_a = 8, 3 steps, 14 features, 2 classes, two shared and two own layers.

    Input norm 28; shared 14x32 + 16x32; four transformers of 2x64 + 2x(16x32 + 64); three attentive of 8x14 + 28; 8x2.
    """
    text = "input_dim: 14\noutput_dim: 2\nn_d: 8\nn_a: 8\nn_steps: 3\n"
    spec = load_model(_write(tmp_path, "tabnet.yaml", text))
    expected = 28 + 14 * 32 + 16 * 32 + 4 * (2 * 64 + 2 * (16 * 32 + 64)) + 3 * (8 * 14 + 28) + 16
    assert (spec.architecture, spec.params_total) == ("tabular", expected)


def test_estimators_by_name() -> None:
    assert load_model("sklearn:HistGradientBoostingClassifier").params_total == 100 * 61 * 4
    assert load_model("sklearn.ensemble.RandomForestClassifier,depth=4").params_total == 100 * 31 * 4
    assert load_model("sklearn:RandomForestClassifier,trees=10,samples=8").params_total == 10 * 15 * 4
    assert load_model("sklearn:LogisticRegression,features=30,classes=3").params_total == 91


def test_an_unbounded_forest_is_refused_by_name() -> None:
    with pytest.raises(KnowledgeError, match="depends on depth or samples or leaves"):
        load_model("sklearn:RandomForestClassifier")


def test_unknown_estimator_has_near_names() -> None:
    with pytest.raises(UnknownNameError) as told:
        load_model("sklearn:RandomForrestClassifier")
    assert "RandomForestClassifier" in told.value.fix


def test_bad_sizes() -> None:
    with pytest.raises(InputError, match="cannot read"):
        load_model("sklearn:Ridge,features=many")
