"""What links, networks and storage do in seconds: by hand for the sums, by published rates for storage."""

from __future__ import annotations

import pytest

from chipwise.decide.effects import Spent, checkpoint_effect, communication_effects, spent, storage

TERMS = {"gemm": 1.0, "tp": 0.25, "ep": 0.125, "dp": 0.5}
COLLECTIVES = {"tp", "ep", "dp"}


def test_on_one_node_nothing_crosses_a_network() -> None:
    step = spent(TERMS, unit="a step", communication=COLLECTIVES, inside={"tp"}, nodes=1)
    assert (step.total_s, step.inside_s, step.between_s) == (1.875, 0.875, 0.0)
    assert set(communication_effects(step, nodes=1, large_from=16)) == {"nvlink"}


@pytest.mark.parametrize(("inside", "between_s"), [({"tp"}, 0.625), ({"tp", "ep"}, 0.5)])
def test_groups_that_stay_inside_a_node_do_not_cross(inside: set[str], between_s: float) -> None:
    step = spent(TERMS, unit="a step", communication=COLLECTIVES, inside=inside, nodes=2)
    assert step.between_s == between_s
    assert step.inside_s + step.between_s == sum(TERMS[name] for name in COLLECTIVES)


def test_many_instances_name_what_half_a_network_would_add() -> None:
    step = Spent(unit="a step", total_s=8.0, inside_s=0.0, between_s=0.5)
    assert "ultracluster" not in communication_effects(step, nodes=8, large_from=16)
    words = communication_effects(step, nodes=64, large_from=16)["ultracluster"].words
    assert "64 instances" in words
    assert words.endswith("would add 500 ms")


def test_direct_storage_is_the_fastest_way_and_rates_are_those_aws_publishes() -> None:
    assert storage()["client_gds"] == 1200e9 / 8
    assert storage()["client_gds"] > storage()["client_efa"] > storage()["client_ena"]
    effect = checkpoint_effect(size_bytes=8 * 150e9, clients=8, interval_s=None, write_s=100.0)
    assert "at least 1.00 s by GDS, 1.71 s by EFA alone, 12.0 s by ENA" in effect.words
    assert "FSx" in effect.source
