"""Try every way to lay a run on every platform; gather per size its feasible runs and its failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import numpy as np

from chipwise.decide.failures import Failure, Refusal, refusal_failure
from chipwise.decide.found import Found
from chipwise.decide.platforms import platforms_of
from chipwise.decide.training.deployment import TrainingDeployment
from chipwise.decide.training.rollout import rollout_seconds
from chipwise.decide.training.trainers import Trainers, trainers_of
from chipwise.decide.training.trials import trial, ways_of
from chipwise.memory.training_job import Recompute

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chipwise.catalog import Instance
    from chipwise.cost import Quote
    from chipwise.decide.platforms import Platform
    from chipwise.decide.question import Question
    from chipwise.decide.training.trainers import Scheme
    from chipwise.decide.training.trials import Trial, Way

Quotes = dict[str, "Quote | None"]


def search_training(question: Question, instances: Sequence[Instance], quotes: Quotes) -> Found:
    """Size and time every way; keep per size and number of nodes the fastest that fits.

    Args:
        question: model, run, policy.
        instances: sizes to try.
        quotes: those of them that may be bought here, with their price.
    """
    found = Found()
    schemes: dict[Scheme, list[tuple[Platform, Trainers]]] = {}
    for platform in platforms_of(instances, question.catalog.chips):
        trainers = trainers_of(question, platform.chip)
        if isinstance(trainers, Refusal):
            found.fail(platform.members, refusal_failure(trainers))
            continue
        for scheme in trainers.schemes:
            schemes.setdefault(scheme, []).append((platform, trainers))
    asked = question.training.recompute
    modes: tuple[Recompute, ...] = tuple(mode for mode in get_args(Recompute) if asked in {None, mode})
    for scheme, seats in schemes.items():
        ways = [way for platform, trainers in seats for way in ways_of(question, platform, trainers, scheme)]
        if ways:
            notes = {platform.chip.id: trainers.notes for platform, trainers in seats}
            rollout_s = rollout_seconds(question, ways)
            trials = [trial(question, scheme, mode, ways, rollout_s) for mode in modes]
            _gather(question, trials, notes, quotes, found)
    return found


def _gather(
    question: Question, trials: Sequence[Trial], notes: dict[str, tuple[str, ...]], quotes: Quotes, found: Found
) -> None:
    """Per platform and nodes the fastest row that fits, over all recomputation modes."""
    ways = trials[0].ways
    found.layouts_tried.append(len(ways) * len(trials))
    times = np.stack([np.where(one.short_bytes > 0, np.inf, one.arrays.step_s) for one in trials])
    short = np.stack([one.short_bytes for one in trials])
    rows: dict[tuple[int, int], list[int]] = {}
    for row, way in enumerate(ways):
        rows.setdefault((id(way.platform), way.nodes), []).append(row)
    for place in rows.values():
        taken = times[:, place]
        mode, column = np.unravel_index(int(np.argmin(taken)), taken.shape)
        way = ways[place[int(column)]]
        if not np.isfinite(taken[mode, column]):
            found.fail(way.platform.members, _memory_failure(way, float(short[:, place].min())))
            continue
        found.held.update(one.name for one in way.platform.members)
        for instance in way.platform.members:
            if instance.name in quotes:
                deployment = TrainingDeployment(
                    instance=instance,
                    trial=trials[int(mode)],
                    row=place[int(column)],
                    tokens=question.training.tokens,
                    notes=notes[way.platform.chip.id],
                    quote=quotes[instance.name],
                )
                _judge(question, deployment, found)


def _memory_failure(way: Way, short_bytes: float) -> Failure:
    return Failure(
        stage="memory",
        distance=short_bytes,
        reason=f"does not fit on {way.nodes} of them: {short_bytes / 2**30:.1f} GiB short on each device at best",
        source="training memory budget",
        change="adapters (LoRA, QLoRA), an 8-bit optimizer, a shorter sequence, or more memory",
        shortfall={"value": short_bytes, "unit": "bytes per device"},
        nearest={"instances": way.nodes, "tp": way.tp, "pp": way.pp, "micro_batch": way.micro_batch},
    )


def _judge(question: Question, deployment: TrainingDeployment, found: Found) -> None:
    """Keep a run that meets its deadline; note how far the others miss it."""
    deadline_s = question.training.deadline_s
    took_s = deployment.duration_s.mid
    if deadline_s is None or took_s <= deadline_s:
        found.add(deployment)
        return
    found.fail(
        [deployment.instance],
        Failure(
            stage="slo",
            distance=took_s / deadline_s,
            reason=f"takes {took_s / 86400:.3g} days on {deployment.instances} (deadline {deadline_s / 86400:.3g})",
            source="training prediction",
            change=f"a deadline {took_s / deadline_s:.2f} times as long, or a faster size",
            shortfall={"value": took_s - deadline_s, "unit": "s"},
            nearest={"instances": deployment.instances, "days": took_s / 86400},
        ),
    )
