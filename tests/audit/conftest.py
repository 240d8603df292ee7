"""Small tables of measurements, written where a test may write."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

Write = Callable[[Sequence[dict[str, Any]]], str]


@pytest.fixture
def served() -> dict[str, Any]:
    """A row of a serving table."""
    return dict(_SERVED)


@pytest.fixture
def started() -> dict[str, Any]:
    """A row of a start-up table."""
    return dict(_STARTED)


_SERVED = {
    "run_id": "r1",
    "model": "llama-3.1-8b",
    "hardware": "h100-sxm",
    "n_devices": 1,
    "tp": 1,
    "engine": "vllm",
    "engine_version": "0.11.0",
    "weight_precision": "bf16",
    "isl": 1024,
    "osl": 256,
    "concurrency_or_batch": 16,
    "load_kind": "fixed-concurrency",
    "metric": "tpot_ms_mean",
    "value": 8.0,
    "unit": "ms",
    "source": "lab/bench@1:x.csv",
    "flags": "conditions-complete",
}
_STARTED = {
    "run_id": "m1",
    "engine": "vllm",
    "engine_version": "0.19.0",
    "model": "llama-3.1-8b",
    "gpu": "H100-80GB",
    "gpu_mem_gib_reported": 79.19,
    "n_gpus": 1,
    "tp": 1,
    "dtype": "bfloat16",
    "gpu_memory_utilization_or_mem_fraction": 0.95,
    "max_model_len": 8192,
    "weights_gib_per_gpu": 14.99,
    "kv_tokens": 476016,
    "outcome": "fits",
    "source": "lab/planner@1 log",
}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write rows as a csv with the columns of all of them; returns its path."""

    def written(rows: Sequence[dict[str, Any]]) -> str:
        names = list(dict.fromkeys(name for row in rows for name in row))
        file = tmp_path / "table.csv"
        with file.open("w", encoding="utf-8", newline="") as handle:
            writer = csv.DictWriter(handle, names, restval="")
            writer.writeheader()
            writer.writerows(rows)
        return str(file)

    return written
