"""The cache's format when nobody names one."""

from __future__ import annotations

import pytest

from chipwise.engines import default_kv_format, load_engine
from chipwise.engines.caches import COLUMNS
from chipwise.engines.profile import DATA, sources
from chipwise.facts import read_rows


@pytest.mark.parametrize(
    ("engine", "family", "stored", "kept"),
    [
        ("tensorrt-llm", "fp8", None, "fp8"),
        ("tensorrt-llm", "nvfp4", None, "fp8"),
        ("tensorrt-llm", "bf16", None, "bf16"),
        ("tensorrt-llm", "fp8", "bf16", "bf16"),
        ("vllm", "fp8", None, "bf16"),
        ("vllm", "fp8", "fp8", "fp8"),
    ],
)
def test_the_checkpoint_beats_the_engine(engine: str, family: str, stored: str | None, kept: str) -> None:
    assert default_kv_format(engine, weight_family=family, stored=stored) == kept


def test_every_habit_names_an_engine_and_a_source() -> None:
    for _, row in read_rows(DATA / "kv_defaults.csv", COLUMNS):
        named = dict(zip(COLUMNS, row, strict=True))
        assert load_engine(named["engine"]).name == named["engine"]
        assert named["source"] in sources()
