"""The bars on published counts: classes, parameters, active parameters, cache and states."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import pytest

from chipwise.errors import ChipwiseError
from chipwise.model import ModelSpec, load_model

CLASSES = {
    "dense LLM": "dense-llm",
    "MoE LLM": "moe-llm",
    "vision-language": "vision-language",
    "vision foundation model": "vision",
    "CNN": "cnn",
    "diffusion": "diffusion",
    "audio/speech": "audio",
    "embedding/encoder": "encoder",
}
EXACT = {"meta-device", "safetensors-index"}


def _near(got: float, text: str, tolerance: float) -> bool:
    wanted = float(text)
    return abs(got - wanted) <= wanted * tolerance


def _checks(row: dict[str, str], spec: ModelSpec) -> dict[str, bool]:
    exact = row["params_total_method"] in EXACT
    found = {"class": spec.architecture == CLASSES[row["arch_class"]]}
    if row["params_total"]:
        name = "exact params" if exact else "other params"
        found[name] = _near(spec.params_total, row["params_total"], 0.001 if exact else 0.02)
    if row["params_active_meta_exact"]:
        found["active params"] = _near(spec.params_active, row["params_active_meta_exact"], 0.01)
    if row["kv_bytes_per_token_bf16"]:
        found["kv"] = spec.kv_bytes_per_token() == float(row["kv_bytes_per_token_bf16"])
    if row["state_bytes_per_sequence"]:
        found["state"] = _near(spec.state_bytes_per_sequence(), row["state_bytes_per_sequence"], 0.05)
    return found


@pytest.fixture(scope="module")
def hits(shared: Path) -> dict[str, list[bool]]:
    truth = shared / "truth"
    places = [("configs", truth / "configs" / "index.csv"), (".", truth / "models" / "index_moved.csv")]
    out: dict[str, list[bool]] = defaultdict(list)
    for folder, table in places:
        with table.open(encoding="utf-8", newline="") as handle:
            rows = list(csv.DictReader(handle))
        for row in rows:
            try:
                spec = load_model(str(truth / folder / row["file"]))
            except ChipwiseError:
                out["read"].append(False)
                continue
            out["read"].append(True)
            for name, good in _checks(row, spec).items():
                out[name].append(good)
    return out


@pytest.mark.parametrize(
    ("what", "bar"),
    [
        ("read", 0.99),
        ("class", 0.97),
        ("exact params", 0.97),
        ("other params", 0.85),
        ("active params", 0.95),
        ("kv", 0.97),
        ("state", 0.90),
    ],
)
def test_bars(hits: dict[str, list[bool]], what: str, bar: float) -> None:
    assert sum(hits[what]) >= bar * len(hits[what])


def test_every_listed_model_is_read_or_refused_with_a_reason(shared: Path) -> None:
    table = shared / "truth" / "models.csv"
    with table.open(encoding="utf-8", newline="") as handle:
        names = [row["model"] for row in csv.DictReader(handle) if row["file"]]
    unread = []
    for name in names:
        try:
            load_model(name, models=table)
        except ChipwiseError as error:
            unread.append((name, error.what))
    assert len(unread) <= len(names) * 0.02, unread
