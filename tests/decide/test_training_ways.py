"""Ways to lay a run: every device has a place, no batch is exceeded, rows of one fleet stand together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise import load_catalog, load_model
from chipwise.decide.platforms import Platform, platforms_of
from chipwise.decide.question import Policy, Question, TrainingDemand
from chipwise.decide.training.trainers import ADAPTERS, SPLIT, Trainers
from chipwise.decide.training.ways import Way, Ways, one_way, ways_of

BATCH = 512.0


@pytest.fixture
def question() -> Question:
    return Question(
        model=load_model("mixtral-8x7b"),
        demand=TrainingDemand(
            method="pretrain",
            tokens=1e9,
            seq_len=4096.0,
            global_batch=BATCH,
            micro_batch=None,
            optimizer="adamw",
            recompute=None,
        ),
        policy=Policy(goals=("training-cost",), regions=()),
        catalog=load_catalog(),
        engines={},
        workload={},
        purpose="pretrain",
    )


def platforms() -> list[Platform]:
    catalog = load_catalog()
    return platforms_of([catalog.instance(name) for name in ("p5.48xlarge", "g6e.12xlarge")], catalog.chips)


def laid(question: Question) -> Ways:
    found = ways_of(question, [(one, Trainers(schemes=(SPLIT,))) for one in platforms()], SPLIT)
    assert found is not None
    return found


def test_every_device_has_a_place_and_no_batch_is_exceeded(question: Question) -> None:
    ways = laid(question)
    devices = ways.of_platforms([float(one.devices) for one in ways.platforms]) * ways.column("nodes")
    assert np.array_equal(ways.column("tp") * ways.column("pp") * ways.column("dp"), devices)
    assert np.all(ways.column("dp") * ways.column("micro_batch") <= BATCH)
    assert np.all(8 % ways.column("ep") == 0)
    assert set(ways.column("vp")[ways.column("pp") == 1]) == {1.0}


def test_rows_of_one_fleet_stand_together(question: Question) -> None:
    ways = laid(question)
    fleets = ways.fleets()
    assert [start for start, _ in fleets[1:]] == [stop for _, stop in fleets[:-1]]
    assert (fleets[0][0], fleets[-1][1]) == (0, len(ways))
    seen = [(ways[start].platform.chip.id, ways[start].nodes) for start, _ in fleets]
    assert len(set(seen)) == len(seen)
    assert ("l40s", 2) in seen
    assert {ways[row].nodes for row in range(*fleets[1])} == {ways[fleets[1][0]].nodes}


def test_a_row_is_what_was_laid() -> None:
    way = Way(platform=platforms()[0], nodes=2, tp=8, pp=1, ep=1, dp=2, micro_batch=4)
    assert one_way(way)[0] == way
    assert one_way(replace(way, cp=2))[0].cp == 2
    assert way.devices == 16


def test_a_ring_takes_what_copies_cannot_where_every_layer_looks_back_at_all_tokens(question: Question) -> None:
    """Two sequences on eight devices; half of GPT-OSS's layers look back at a window."""
    seats = [(platforms()[0], Trainers(schemes=ADAPTERS))]
    asked = replace(question, demand=replace(question.training, method="lora", global_batch=2.0))
    found = ways_of(replace(asked, model=load_model("llama-3.1-8b")), seats, ADAPTERS[0])
    assert found is not None
    degrees = {(way.nodes, way.cp, way.dp) for way in (found[row] for row in range(len(found)))}
    assert degrees == {(1, 8, 1), (1, 4, 2), (2, 8, 2)}
    assert ways_of(replace(asked, model=load_model("gpt-oss-20b")), seats, ADAPTERS[0]) is None
