"""Errors by hand: three measurements of one metric from two sources."""

from __future__ import annotations

import math
from typing import Any

import pytest

from chipwise.audit.items import Item, Line, Prediction
from chipwise.audit.score import classification, errors, groups, scored_of, summary, worst
from chipwise.audit.table import Row


def line(
    predicted: Any, measured: Any, *, metric: str = "tpot_ms_mean", source: str = "a/b", factor: float = 1.2
) -> Line:
    numeric = isinstance(predicted, int | float) and not isinstance(predicted, bool)
    low, high = (predicted / factor, predicted * factor) if numeric else (predicted, predicted)
    row = Row(number=1, cells={"run_id": f"{predicted}", "source": f"{source}@1", "engine": "vllm"})
    return Line(
        item=Item(row=row, metric=metric, measured=measured),
        prediction=Prediction(low=low, mid=predicted, high=high, evidence="measured", labels={"chip": "h100-sxm"}),
    )


LINES = [line(11.0, 10.0), line(20.0, 10.0), line(9.0, 10.0, source="c/d")]


def test_errors_are_those_of_the_definition() -> None:
    found = errors(scored_of(LINES))
    assert found["n"] == 3
    assert found["mdape"] == pytest.approx(0.1)
    assert found["bias_log"] == pytest.approx(math.log(1.1))
    assert found["median_abs_log"] == pytest.approx(-math.log(0.9))
    assert found["p90_ape"] == pytest.approx(0.1 + 0.8 * 0.9)
    assert found["coverage80"] == pytest.approx(2 / 3)


def test_nothing_scored_has_no_errors() -> None:
    assert errors([])["mdape"] is None


def test_every_source_counts_once() -> None:
    found = summary(LINES, rows=3, by=())
    assert found["by_source"]["mdape"]["tpot_ms_mean"] == pytest.approx((0.55 + 0.1) / 2)
    assert found["metrics"]["tpot_ms_mean"]["mdape"] == pytest.approx(0.1)
    assert found["overall"]["mdape"] == pytest.approx(0.1)


def test_what_is_skipped_is_counted_by_its_code() -> None:
    lines = [*LINES, Line(item=LINES[0].item, code="saturated"), Line(item=LINES[0].item, code="saturated")]
    found = summary(lines, rows=5, by=())
    assert (found["items"], found["scored"], found["skipped"]) == (5, 3, {"saturated": 2})


def test_groups_take_columns_labels_and_evidence() -> None:
    found = groups(scored_of(LINES), ("engine", "chip", "evidence", "source"))
    assert [one["key"] for one in found] == [
        {"engine": "vllm", "chip": "h100-sxm", "evidence": "measured", "source": "a/b"},
        {"engine": "vllm", "chip": "h100-sxm", "evidence": "measured", "source": "c/d"},
    ]
    assert [one["n"] for one in found] == [2, 1]


def test_the_worst_come_first() -> None:
    assert [one["predicted"] for one in worst(scored_of(LINES))] == [20.0, 9.0, 11.0]


def test_a_prediction_of_nothing_is_an_error_and_not_a_gap() -> None:
    found = errors(scored_of([line(0.0, 5.0)]))
    assert found["n"] == 1
    assert found["mdape"] == pytest.approx(0.999)


def test_a_measurement_of_nothing_has_no_ratio() -> None:
    assert scored_of([line(3.0, 0.0), line(3.0, -0.4), line(3.0, None)]) == []


def test_recalls_are_of_what_fits_and_of_what_does_not() -> None:
    lines = [
        line(said, real, metric="fits")
        for said, real in ((True, True), (True, True), (False, True), (True, False), (False, False))
    ]
    found = classification(lines)
    assert found == {"fits_recall": pytest.approx(2 / 3), "oom_recall": 0.5, "balanced_accuracy": pytest.approx(7 / 12)}


def test_one_class_alone_has_no_balance() -> None:
    found = classification([line(said, True, metric="fits") for said in (True, False)])
    assert found == {"fits_recall": 0.5, "oom_recall": None, "balanced_accuracy": None}


def test_without_outcomes_there_is_no_classification() -> None:
    assert classification(LINES) is None


def test_mfu_is_not_pooled() -> None:
    found = summary([*LINES, line(80.0, 40.0, metric="mfu")], rows=4, by=())
    assert found["overall"]["mdape"] == pytest.approx(0.1)
    assert found["metrics"]["mfu"]["mdape"] == pytest.approx(1.0)
