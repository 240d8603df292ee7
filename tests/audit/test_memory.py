"""Start-up rows: capacity as printed, quantisation as loaded, outcomes as the engine decides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chipwise.audit import memory
from chipwise.audit.items import Context, Line
from chipwise.audit.table import Row

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
