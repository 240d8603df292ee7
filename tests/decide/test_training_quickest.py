"""The fastest step of every fleet: what trying every row finds, and what tokens and deadlines do not change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise import load_catalog, load_model
from chipwise.decide.platforms import platforms_of
from chipwise.decide.question import Policy, Question, TrainingDemand
from chipwise.decide.training.quickest import Fastest, Quickest, Short, modes, quickest
from chipwise.decide.training.runs import Seat, courses_of
from chipwise.decide.training.trainers import SPLIT, Trainers
from chipwise.decide.training.trials import trial
from chipwise.decide.training.ways import Ways, ways_of

RUN = TrainingDemand(
    method="pretrain", tokens=1e11, seq_len=4096.0, global_batch=512.0, micro_batch=None, optimizer="adamw",
    recompute=None,
)  # fmt: skip


def asked(run: TrainingDemand = RUN) -> Question:
    return Question(
        model=load_model("llama-3.3-70b"),
        demand=run,
        policy=Policy(goals=("training-cost",), regions=()),
        catalog=load_catalog(),
        engines={},
        workload={},
        purpose="pretrain",
    )


def laid(question: Question) -> Ways:
    catalog = load_catalog()
    names = ("p5.48xlarge", "g6e.12xlarge")
    places = platforms_of([catalog.instance(name) for name in names], catalog.chips)
    found = ways_of(question, [(one, Trainers(schemes=(SPLIT,))) for one in places], SPLIT)
    assert found is not None
    return found


def best(run: TrainingDemand = RUN) -> Quickest:
    question = asked(run)
    return quickest(question.model, run, SPLIT, laid(question), None)


def test_each_fleet_takes_the_fastest_row_that_fits_of_all_modes() -> None:
    question = asked()
    ways = laid(question)
    trials = [trial(question.model, RUN, SPLIT, mode, ways, rollout_s=None) for mode in modes(RUN)]
    found = best()
    assert found.tried == len(ways) * len(trials)
    assert {type(one) for one in found.fleets} == {Fastest, Short}
    for fleet, (start, stop) in zip(found.fleets, ways.fleets(), strict=True):
        rows = [(one, row) for one in trials for row in range(start, stop) if one.short_bytes[row] <= 0]
        if isinstance(fleet, Short):
            assert not rows
            assert fleet.short_bytes == min(one.short_bytes[start:stop].min() for one in trials)
        else:
            assert fleet.trial.value(fleet.row, "step_s") == min(one.value(row, "step_s") for one, row in rows)


def test_a_row_that_is_kept_says_what_it_said_among_all() -> None:
    question = asked()
    ways = laid(question)
    whole = trial(question.model, RUN, SPLIT, "full", ways, rollout_s=None)
    rows = np.array([len(ways) - 1, 7])
    kept = whole.at(rows)
    for place, row in enumerate(rows.tolist()):
        assert kept.ways[place] == ways[row]
        assert kept.asked_of(place) == whole.asked_of(row)
        assert kept.memory_of(place, "weights_bytes") == whole.memory_of(row, "weights_bytes")
        assert kept.time_range(place, 1.0) == whole.time_range(row, 1.0)


def test_tokens_and_deadline_change_no_step_and_a_batch_does() -> None:
    first = best()
    assert best(replace(RUN, tokens=5e12, deadline_s=86400.0)) is first
    assert best(replace(RUN, global_batch=256.0)) is not first


@pytest.mark.parametrize("times", [2.0, 10.0])
def test_work_is_as_long_as_tokens_are_many(times: float) -> None:
    catalog = load_catalog()
    seats = [
        Seat(trial=one.trial, row=one.row, way=one.way, instance=catalog.instance("p5.48xlarge"), quote=None)
        for one in best().fleets
        if isinstance(one, Fastest) and one.way.platform.chip.id == catalog.instance("p5.48xlarge").chip
    ]
    few = courses_of(asked(), seats)
    many = courses_of(asked(replace(RUN, tokens=RUN.tokens * times)), seats)
    assert many.work_s == pytest.approx(few.work_s * times)
    assert np.all(few.low_s <= few.mid_s)
    assert np.all(few.mid_s <= few.high_s)
    one = few.at(0)
    whole_s = one.start_s + one.work_s / one.goodput_fraction + one.finish_s
    assert one.duration_s.mid == pytest.approx(whole_s)
