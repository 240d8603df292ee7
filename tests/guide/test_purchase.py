"""How and where to buy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import UnknownNameError
from chipwise.guide import purchase_advice, purchase_pattern, region_advice
from chipwise.guide.tables import table

PLACES = {"us-east-1": "us", "eu-west-1": "eu", "ap-south-2": "ap"}


@pytest.mark.parametrize("pattern", [row["pattern"] for row in table("purchase")])
def test_every_pattern_has_advice(pattern: str) -> None:
    found = purchase_advice(pattern)
    assert all((found.option, found.next, found.why, found.caution))
    assert found.option != found.next


@pytest.mark.parametrize(
    ("training", "interruptible", "steady", "option"),
    [
        (True, True, False, "spot"),
        (True, False, False, "capacity-block"),
        (False, False, True, "savings-plan"),
        (False, False, False, "on-demand"),
    ],
)
def test_the_pattern_of_a_question(*, training: bool, interruptible: bool, steady: bool, option: str) -> None:
    pattern = purchase_pattern(training=training, interruptible=interruptible, steady=steady)
    assert purchase_advice(pattern).option == option


def test_regions_are_weighed_by_stated_rules() -> None:
    found = region_advice(PLACES, offered=["us-east-1", "eu-west-1"], allowed=["eu", "us"], users="eu")
    assert [(one.region, one.stays, one.rank) for one in found] == [
        ("eu-west-1", True, 1),
        ("us-east-1", True, 2),
        ("ap-south-2", False, None),
    ]
    assert all("latency is not measured" in one.why for one in found if one.stays)
    assert all(one.source.startswith("guide A:1168") for one in found)


def test_sovereignty_shuts_regions_out() -> None:
    found = {one.region: one for one in region_advice(PLACES, offered=PLACES, allowed=["eu"])}
    assert [name for name, one in found.items() if one.stays] == ["eu-west-1"]
    assert found["us-east-1"].why == "data may not be in us"


@given(st.sets(st.sampled_from(sorted(PLACES))), st.sampled_from(["us", "eu", "sa", None]))
def test_every_region_is_answered_once_and_ranks_are_whole(offered: set[str], users: str | None) -> None:
    found = region_advice(PLACES, offered=offered, users=users)
    assert sorted(one.region for one in found) == sorted(PLACES)
    assert sorted(one.rank for one in found if one.rank is not None) == list(range(1, len(offered) + 1))


def test_an_unknown_pattern_is_refused() -> None:
    with pytest.raises(UnknownNameError):
        purchase_advice("bursts")
