"""A picked deployment in full, whatever it is deployed for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.decide.other.deployment import OtherDeployment
from chipwise.decide.other.option import other_option
from chipwise.decide.pools.deployment import PooledDeployment
from chipwise.decide.pools.option import pooled_option
from chipwise.decide.rank import tie
from chipwise.decide.serving.deployment import ServingDeployment
from chipwise.decide.serving.option import serving_option
from chipwise.decide.sharing.deployment import SharedDeployment
from chipwise.decide.sharing.option import shared_option
from chipwise.decide.training.deployment import TrainingDeployment
from chipwise.decide.training.option import training_option

if TYPE_CHECKING:
    from chipwise.decide.advice import Option
    from chipwise.decide.pick import Picked
    from chipwise.decide.question import Question


def option_of(question: Question, picked: Picked, place: int) -> Option:
    """The option at one place of the picked ones, with what it ties with."""
    deployment = picked.options[place]
    metric = deployment.metric(question)
    ties = tuple(
        other + 1 for other, one in enumerate(picked.options) if other != place and tie(metric, one.metric(question))
    )
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
