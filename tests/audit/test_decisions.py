"""Two kinds of hardware, one question: the pick, whether it was the best, and what it costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chipwise.audit import ValidateRequest, validate

Row = dict[str, Any]
Write = Callable[[list[Row]], str]
Pair = Callable[[float, float], list[Row]]


def ask(write: Write, rows: list[Row]) -> dict[str, Any]:
    return validate(ValidateRequest(kind="decisions", file=write(rows)))


@pytest.fixture
def offline(served: Row) -> Row:
    return served | {"load_kind": "offline-max-throughput", "metric": "output_tok_s_total"}


@pytest.fixture
def pair(offline: Row) -> Pair:
    """An H100, predicted far faster, and an L4."""

    def rows(fast: float, slow: float) -> list[Row]:
        return [
            offline | {"run_id": "a", "hardware": "h100-sxm", "value": fast},
            offline | {"run_id": "b", "hardware": "l4", "value": slow},
        ]

    return rows


def test_the_pick_is_the_one_predicted_best(write: Write, pair: Pair) -> None:
    found = ask(write, pair(9000.0, 700.0))
    assert (found["cases"], found["top1"], found["top3"]) == (1, 1.0, 1.0)
    assert found["regret"] == {"mean": 0.0, "median": 0.0, "p90": 0.0}
    assert found["cases_detail"][0]["hardware"] == ["h100-sxm", "l4"]


def test_regret_is_what_the_best_would_have_given(write: Write, pair: Pair) -> None:
    found = ask(write, pair(600.0, 700.0))
    assert (found["top1"], found["top3"]) == (0.0, 1.0)
    assert found["regret"]["mean"] == pytest.approx(700 / 600 - 1)


def test_throughput_counts_by_the_chip(write: Write, pair: Pair) -> None:
    rows = pair(1000.0, 700.0)
    rows[0] |= {"n_devices": 2, "tp": 2}
    found = ask(write, rows)
    assert found["cases_detail"][0]["best"] == "l4"


def test_a_closed_loop_is_compared_by_its_latencies(write: Write, served: Row) -> None:
    rows = [
        served | {"run_id": name, "hardware": chip, "metric": metric, "value": value}
        for name, chip, scale in (("a", "h100-sxm", 1.0), ("b", "l4", 10.0))
        for metric, value in (("ttft_ms_mean", 100.0 * scale), ("tpot_ms_mean", 8.0 * scale))
    ]
    found = ask(write, rows)
    assert found["cases"] == 1
    assert found["cases_detail"][0]["decided_by"] == "tokens"
    assert found["top1"] == 1.0


def test_one_kind_of_hardware_is_no_choice(write: Write, offline: Row) -> None:
    rows = [offline | {"run_id": str(tp), "tp": tp, "n_devices": tp} for tp in (1, 2)]
    found = ask(write, rows)
    assert found["cases"] == 0
    assert found["top1"] is None
    assert found["regret"] == {"mean": None, "median": None, "p90": None}


def test_other_lengths_are_another_question(write: Write, pair: Pair) -> None:
    rows = pair(9000.0, 700.0)
    rows[1] |= {"isl": 2048}
    assert ask(write, rows)["cases"] == 0


def test_a_flagged_row_decides_nothing(write: Write, pair: Pair) -> None:
    rows = pair(600.0, 700.0)
    rows[1] |= {"flags": "conditions-complete suspect"}
    assert ask(write, rows)["cases"] == 0
