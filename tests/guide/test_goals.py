"""The six goals."""

from __future__ import annotations

import pytest

from chipwise.catalog import Catalog
from chipwise.errors import UnknownNameError
from chipwise.guide import claim, goal_card, goal_settings, goal_sizes, precision_floor
from chipwise.guide.tables import table
from chipwise.workload import goals

NAMES = [row["goal"] for row in table("goals")]


@pytest.mark.parametrize("goal", NAMES)
def test_every_goal_has_metrics_settings_and_sizes(catalog: Catalog, goal: str) -> None:
    card = goal_card(goal)
    assert all((card.question, card.metrics, card.direction, card.tradeoff))
    assert {one.setting for one in goal_settings(goal)} >= {"spot"}
    for params in (8e9, 70.6e9, 405e9):
        rows = goal_sizes(goal, params)
        assert rows
        assert {name for row in rows for name in (*row.nvidia, *row.neuron)} <= set(catalog.instances)


def test_they_are_the_goals_of_plan() -> None:
    assert [goal.name for goal in goals()] == NAMES
    assert [goal_card(name).number for name in NAMES] == [1, 2, 3, 4, 5, 6]


def test_corrected_settings_name_their_erratum() -> None:
    corrected = [one.erratum for name in NAMES for one in goal_settings(name) if one.erratum]
    assert corrected
    assert all(claim(name).verdict != "right" for name in corrected)


@pytest.mark.parametrize(("goal", "spot"), [("latency", "no"), ("quality", "no"), ("time-to-train", "no")])
def test_spot_is_no_choice_where_an_interruption_hurts(goal: str, spot: str) -> None:
    assert [one.value for one in goal_settings(goal) if one.setting == "spot"] == [spot]


def test_floors_fall_with_the_goal() -> None:
    floors = {name: precision_floor(name) for name in NAMES}
    assert {name: floor.floor if floor else None for name, floor in floors.items()} == {
        "latency": "fp8", "quality": "bf16", "concurrency": "fp8", "cost": "int4",
        "time-to-train": None, "training-cost": None,
    }  # fmt: skip


def test_an_unknown_goal_is_refused() -> None:
    with pytest.raises(UnknownNameError):
        goal_card("speeed")
