"""Our own table of serving measurements: what it holds, that it is read as it was written, and that a fit repeats."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

MEGABYTES = 3.0
Row = dict[str, str]


@pytest.fixture(scope="module")
def calibrate(repo: Path) -> Iterator[ModuleType]:
    """The folder beside src: it is no part of the package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(repo))
        import calibrate.collect
        import calibrate.figures
        import calibrate.folds
        import calibrate.serving
        import calibrate.serving_tables

        yield calibrate


@pytest.fixture(scope="module")
def table(repo: Path) -> Path:
    return repo / "measurements" / "serving.csv"


@pytest.fixture(scope="module")
def rows(table: Path) -> list[Row]:
    with table.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def test_it_is_small_and_every_figure_has_its_source(calibrate: ModuleType, table: Path, rows: list[Row]) -> None:
    assert table.stat().st_size <= MEGABYTES * 1e6
    assert len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        assert row["source"]
        assert any(row[name] for name in calibrate.figures.FIGURES)
        assert all(float(row[name]) > 0 for name in calibrate.figures.FIGURES if row[name])


def test_every_run_of_it_can_be_asked(calibrate: ModuleType, table: Path, rows: list[Row]) -> None:
    found = calibrate.figures.measurements(table)
    assert {one.id for one in found} == {row["id"] for row in rows}


def published(**cells: Any) -> dict[str, Any]:
    base = {
        "run_id": "r1",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "hardware": "h100-sxm",
        "n_devices": 2,
        "tp": 2,
        "engine": "vllm",
        "engine_version": "0.11.0",
        "weight_precision": "fp8",
        "isl": 1024,
        "osl": 256,
        "concurrency_or_batch": 16,
        "load_kind": "fixed-concurrency",
        "metric": "tpot_ms_mean",
        "value": 8.0,
        "source": "lab/bench@1a2b3c:results/x.csv",
        "flags": "conditions-complete",
        "note": "160 requests, max_num_seqs=64",
    }
    return base | cells


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """A folder of published tables with these rows."""

    def made(*own: dict[str, Any]) -> Path:
        with (tmp_path / "inference.csv").open("w", encoding="utf-8", newline="") as handle:
            writer = csv.DictWriter(handle, list(own[0]))
            writer.writeheader()
            writer.writerows(own)
        (tmp_path / "models.csv").write_text("model,file,variant\n", encoding="utf-8")
        return tmp_path

    return made


def test_a_run_becomes_one_row_in_base_units(calibrate: ModuleType, folder: Callable[..., Path]) -> None:
    (row,), left = calibrate.collect.collected(
        folder(
            published(),
            published(metric="ttft_ms_p50", value=50.0),
            published(metric="output_tok_s_per_gpu", value=900.0),
            published(metric="ttft_ms_p99", value=90.0),
        )
    )
    assert (row["model"], row["weights"], row["chip"], row["source"]) == (
        "llama-3.1-8b", "fp8", "h100-sxm", "lab/bench@1a2b3c",
    )  # fmt: skip
    assert (row["tpot_s"], row["ttft_p50_s"], row["output_tokens_per_s"]) == ("0.008", "0.05", "1800")
    assert (row["requests"], row["max_num_seqs"], row["chunk_tokens"], row["complete"]) == ("160", "64", "", "1")
    assert left == {"percentile": 1}


def test_what_is_ruled_out_is_left_out_with_its_reason(calibrate: ModuleType, folder: Callable[..., Path]) -> None:
    rows, left = calibrate.collect.collected(folder(published(flags="caution"), published(run_id="r2", value="")))
    assert rows == []
    assert sum(left.values()) == 2


def test_a_row_is_read_as_the_run_that_it_was_written_of(
    calibrate: ModuleType, folder: Callable[..., Path], tmp_path: Path
) -> None:
    from chipwise.audit.runs import run_of
    from chipwise.audit.table import Row as Published

    source = published(load_kind="request-rate", request_rate=4, note="ShareGPT, 500 prompts, g5.2xlarge", osl=214)
    rows, _ = calibrate.collect.collected(folder(source))
    file = tmp_path / "own.csv"
    calibrate.collect.write(file, rows)
    (found,) = calibrate.figures.measurements(file)
    wanted = run_of(Published(number=1, cells={name: str(value) for name, value in source.items()}), None)
    for name in ("chip_id", "engine", "place", "load", "limits", "kv_format", "eager", "rented", "assumed_release"):
        assert getattr(found.run, name) == getattr(wanted, name), name
    assert found.run.model.model.params_total == wanted.model.model.params_total


def test_a_model_that_is_not_built_in_stands_by_its_sizes(calibrate: ModuleType) -> None:
    from chipwise.audit.runs import ModelKey

    sizes = "params:6658473984,layers=32,hidden=4096,heads=32,kv_heads=32,head_dim=128,vocab=50272"
    name, weights = calibrate.collect.own_model(ModelKey(name=sizes, models=None, words="fp16"))
    assert (name, weights) == (sizes, "bf16")


def test_the_table_is_written_again_bit_for_bit(
    calibrate: ModuleType, shared: Path, table: Path, tmp_path: Path
) -> None:
    rows, _ = calibrate.collect.collected(shared / "truth")
    calibrate.collect.write(tmp_path / "again.csv", rows)
    assert (tmp_path / "again.csv").read_bytes() == table.read_bytes()


def test_a_run_of_an_assumed_release_is_judged_one_step_weaker(calibrate: ModuleType, table: Path) -> None:
    found = calibrate.figures.measurements(table)
    stated = next(one for one in found if one.complete and not one.run.assumed_release)
    assumed = next(one for one in found if one.run.assumed_release)
    own = [calibrate.serving.Residual(measurement=one, log_ratio=0.1) for one in (stated, assumed)]
    pools = calibrate.serving_tables.judged({"measured": own, "calibrated": [], "transferred": []})
    assert {name: [one.measurement for one in pool] for name, pool in pools.items()} == {
        "measured": [stated],
        "calibrated": [assumed],
        "transferred": [],
    }


def test_a_fit_to_a_part_of_it_repeats_and_beats_its_start(calibrate: ModuleType, table: Path) -> None:
    whole = calibrate.figures.measurements(table)
    part = [one for one in whole if one.run.chip_id == "h100-sxm" and one.run.model.name == "llama-3.1-8b"]
    groups = calibrate.serving.groups(part)
    model = calibrate.serving.model_of(groups)
    fits = [calibrate.serving.fitted(model, part, calibrate.serving.Settings(iterations=2)) for _ in range(2)]
    np.testing.assert_array_equal(*fits)

    def median(theta: Any) -> float:
        return float(np.median([abs(one.log_ratio) for one in calibrate.serving.residuals(model, theta, groups)]))

    assert median(fits[0]) < median(np.zeros(len(model.variables)))
