"""A picked deployment in full, whatever it is deployed for."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.decide.other.deployment import OtherDeployment
from chipwise.decide.other.option import other_option
from chipwise.decide.pools.deployment import PooledDeployment
from chipwise.decide.pools.option import pooled_option
from chipwise.decide.rank import beats, tie
from chipwise.decide.serving.deployment import ServingDeployment
from chipwise.decide.serving.option import serving_option
from chipwise.decide.sharing.deployment import SharedDeployment
from chipwise.decide.sharing.option import shared_option
from chipwise.decide.training.deployment import TrainingDeployment
from chipwise.decide.training.option import training_option

if TYPE_CHECKING:
    from chipwise.decide.advice import Option
    from chipwise.decide.deployment import Deployment
    from chipwise.decide.pick import Picked
    from chipwise.decide.question import Question


def option_of(question: Question, picked: Picked, place: int) -> Option:
    """The option at one place of the picked ones, with what it ties with."""
    deployment = picked.options[place]
    metric = deployment.metric(question)
    ties = tuple(
        other + 1 for other, one in enumerate(picked.options) if other != place and tie(metric, one.metric(question))
    )
    option = _written(question, deployment, place, ties)
    apart = _stands_apart(question, deployment, picked.options[0])
    return option if apart is None else replace(option, risks=(apart, *option.risks))


def _stands_apart(question: Question, one: Deployment, first: Deployment) -> str | None:
    """What is said of the best option of the other vendor where the first beats it: it stands to be compared with."""
    mine, best = one.metric(question), first.metric(question)
    if one.instance.kind == first.instance.kind or not beats(best, mine) or not 0 < best.mid < mine.mid < math.inf:
        return None
    kind = "Neuron" if one.instance.kind == "neuron" else one.instance.kind.upper()
    return f"stands as the best {kind} option alone: {mine.mid / best.mid:.2f} times option 1 on {question.order_by}"


def _written(question: Question, deployment: Deployment, place: int, ties: tuple[int, ...]) -> Option:
    if isinstance(deployment, ServingDeployment):
        return serving_option(question, deployment, place + 1, ties)
    if isinstance(deployment, PooledDeployment):
        return pooled_option(question, deployment, place + 1, ties)
    if isinstance(deployment, SharedDeployment):
        return shared_option(question, deployment, place + 1, ties)
    if isinstance(deployment, TrainingDeployment):
        return training_option(question, deployment, place + 1, ties)
    if isinstance(deployment, OtherDeployment):
        return other_option(question, deployment, place + 1, ties)
    msg = f"no option is written for {type(deployment).__name__}"
    raise TypeError(msg)
