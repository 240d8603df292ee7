"""Start-up rows: capacity as printed, quantisation as loaded, outcomes as the engine decides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chipwise.audit import memory
from chipwise.audit.items import Context, Line
from chipwise.audit.table import Row
from chipwise.model import load_model
from chipwise.parallelism import Split

CONTEXT = Context(file=Path("memory.csv"))


@pytest.fixture
def lines(started: dict[str, Any]) -> Callable[..., dict[str, Line]]:
    def replayed(**cells: Any) -> dict[str, Line]:
        merged = started | cells
        row = Row(number=2, cells={name: str(value) for name, value in merged.items() if value is not None})
        return {line.item.metric: line for line in memory.predict(memory.items_of([row], CONTEXT), CONTEXT)}

    return replayed


@pytest.fixture
def mid(lines: Callable[..., dict[str, Line]]) -> Callable[..., Any]:
    def figure(metric: str, **cells: Any) -> Any:
        found = lines(**cells)[metric]
        assert found.prediction is not None, found.code
        return found.prediction.mid

    return figure


def test_weights_are_parameters_times_their_bytes(mid: Callable[..., Any]) -> None:
    assert mid("weights_gib") == pytest.approx(8_030_261_248 * 2 / 2**30, rel=0.005)


def test_the_pool_is_near_the_log(mid: Callable[..., Any]) -> None:
    assert mid("kv_tokens") == pytest.approx(476016, rel=0.03)
    assert mid("fits") is True


def test_two_devices_hold_half_each(mid: Callable[..., Any]) -> None:
    assert mid("weights_gib", tp=2, n_gpus=2) == pytest.approx(mid("weights_gib") / 2, rel=0.01)


@pytest.mark.parametrize(("words", "share"), [("fp8 (online)", 0.57), ("bitsandbytes", 0.38), ("none", 1.0)])
def test_quantisation_words_are_loaded(mid: Callable[..., Any], words: str, share: float) -> None:
    assert mid("weights_gib", quantization=words) == pytest.approx(share * mid("weights_gib"), rel=0.1)


def test_a_32_bit_start_takes_twice_the_weights(mid: Callable[..., Any]) -> None:
    assert mid("weights_gib", dtype="float32") == pytest.approx(2 * mid("weights_gib"), rel=0.01)


def test_printed_memory_counts_where_the_chip_is_unknown(mid: Callable[..., Any]) -> None:
    assert mid("kv_tokens", gpu="GPU of nobody") > 0.9 * mid("kv_tokens")


def test_memory_in_a_name_counts_where_nothing_is_printed(mid: Callable[..., Any]) -> None:
    near = mid("kv_tokens", gpu="GPU of nobody 80GB", gpu_mem_gib_reported=None)
    assert near == pytest.approx(mid("kv_tokens"), rel=0.05)


def test_without_capacity_weights_are_still_known(lines: Callable[..., Any]) -> None:
    found = lines(gpu="not named in the thread", gpu_mem_gib_reported=None)
    assert found["weights_gib"].prediction is not None
    assert found["kv_tokens"].code == "conditions-missing:gpu"
    assert found["fits"].code == "conditions-missing:gpu"


def test_what_is_too_large_does_not_fit(mid: Callable[..., Any]) -> None:
    assert mid("fits", model="llama-3.3-70b") is False
    assert mid("fits", max_model_len=4_000_000) is False


def test_an_outcome_that_hangs_on_what_nobody_states_is_not_predicted(lines: Callable[..., Any]) -> None:
    small = {"gpu_mem_gib_reported": 24.0}
    unsaid = small | {"gpu_memory_utilization_or_mem_fraction": 0.9, "max_model_len": ""}
    assert lines(**unsaid)["fits"].code == "conditions-missing:max_model_len"
    tight = lines(**small, max_model_len=20_000, gpu_memory_utilization_or_mem_fraction="")["fits"]
    assert tight.code == "conditions-missing:gpu_memory_utilization_or_mem_fraction"


def test_an_outcome_that_does_not_is(mid: Callable[..., Any]) -> None:
    unsaid = {"max_model_len": "", "gpu_memory_utilization_or_mem_fraction": ""}
    assert mid("fits", **unsaid) is True
    assert mid("fits", model="llama-3.3-70b", **unsaid) is False


def test_a_pool_needs_the_share_it_is_of(lines: Callable[..., Any]) -> None:
    found = lines(gpu_memory_utilization_or_mem_fraction="")
    assert found["kv_tokens"].code == "conditions-missing:gpu_memory_utilization_or_mem_fraction"
    assert found["weights_gib"].prediction is not None


def test_utilization_is_read_as_share_or_percent(mid: Callable[..., Any]) -> None:
    assert mid("kv_tokens", gpu_memory_utilization_or_mem_fraction="95") == mid("kv_tokens")
    low = mid("kv_tokens", gpu_memory_utilization_or_mem_fraction=0.5)
    assert low < 0.6 * mid("kv_tokens")


@pytest.mark.parametrize(
    ("cells", "code"),
    [
        ({"tp": "", "n_gpus": ""}, "conditions-missing:tp"),
        ({"engine": "lmdeploy"}, "engine-unknown"),
        ({"engine": ""}, "conditions-missing:engine"),
        ({"model": "nobody/knows-this"}, "model-unknown"),
    ],
)
def test_what_is_not_predicted_says_why(lines: Callable[..., Any], cells: dict[str, Any], code: str) -> None:
    assert {line.code for line in lines(**cells).values()} == {code}


def test_a_cell_that_is_no_number_is_no_measurement(lines: Callable[..., Any]) -> None:
    assert lines(kv_tokens="many")["kv_tokens"].code == "conditions-missing:kv_tokens"


def test_terms_add_up_to_capacity_where_it_fits(lines: Callable[..., Any]) -> None:
    found = lines()["fits"].prediction
    assert found is not None
    used = sum(value for name, value in found.terms.items() if name != "capacity_gib")
    assert used < found.terms["capacity_gib"]


ROUTED, DENSE = "mixtral-8x7b", "llama-3.1-8b"


@pytest.mark.parametrize(
    ("model", "cells", "split"),
    [
        (DENSE, {"n_gpus": 8, "pp": 2}, Split(tp=4, pp=2)),
        (DENSE, {"tp": 2, "dp": 4, "n_gpus": 8}, Split(tp=2)),
        (DENSE, {"tp": 2, "ep": "yes"}, Split(tp=2)),
        (ROUTED, {"tp": 2, "dp": 4, "n_gpus": 8}, Split(tp=2)),
        (ROUTED, {"tp": 1, "dp": 8, "ep": 8, "n_gpus": 8}, Split(tp=1, dp=8, ep=8)),
        (ROUTED, {"tp": 1, "dp": 8, "ep": "yes"}, Split(tp=1, dp=8, ep=8)),
        (ROUTED, {"tp": 4, "ep": "yes"}, Split(tp=4, ep=4)),
        (ROUTED, {"tp": 8, "dp": 8, "n_gpus": 8}, Split(tp=1, dp=8)),
        (ROUTED, {"tp": 8, "dp": 4, "ep": 8, "n_gpus": 8}, Split(tp=2, dp=4, ep=8)),
        (ROUTED, {"tp": 8, "dp": 2, "pp": 2, "n_gpus": 16, "ep": "yes"}, Split(tp=4, dp=2, pp=2, ep=8)),
    ],
)
def test_degrees_that_a_row_leaves_out_follow_from_the_others(model: str, cells: dict[str, Any], split: Split) -> None:
    row = Row(number=2, cells={name: str(value) for name, value in cells.items()})
    assert memory.split_of(row, load_model(model)) == split


def test_a_rank_prints_the_tokens_of_its_own_pool(mid: Callable[..., Any]) -> None:
    """Each of 8 ranks holds one expert of 8 (45.1 B in all), and attention and embeddings of its own (1.6 B)."""
    cells = {"model": ROUTED, "tp": 1, "dp": 8, "ep": 8, "n_gpus": 8, "kv_mem_gib_per_gpu": 1}
    assert mid("weights_gib", **cells) == pytest.approx((45.1e9 / 8 + 1.61e9) * 2 / 2**30, rel=0.01)
    bytes_a_token = 32 * 8 * 128 * 2 * 2
    assert mid("kv_tokens", **cells) == pytest.approx(mid("kv_mem_gib", **cells) * 2**30 / bytes_a_token, rel=1e-3)


@pytest.mark.parametrize(("version", "layers"), [("0.7.3", 8), ("0.8.5", 6)])
def test_the_release_says_which_stage_is_the_fullest(mid: Callable[..., Any], version: str, layers: int) -> None:
    """Of 32 layers over 5 stages the last holds 8 before 0.8, and 6 since: with the head that is more than 7."""
    each, head, rotary = 218_112_000, 128256 * 4096, 131072 * 64
    found = mid("weights_gib", pp=5, n_gpus=5, engine_version=version)
    assert found == pytest.approx((layers * each + head + rotary * 2) * 2 / 2**30, rel=0.001)
