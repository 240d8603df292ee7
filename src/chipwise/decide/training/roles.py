"""The models that a preference method holds beside the one it trains: who they are, what they take, what they cost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from chipwise.memory.training import RolesInput, generation_cache_bytes, training_memory
from chipwise.units import show_bytes, show_seconds

if TYPE_CHECKING:
    from chipwise.decide.question import Question, TrainingDemand
    from chipwise.decide.training.answers import Row
    from chipwise.memory.training_job import TrainingLayout
    from chipwise.model import ModelSpec

READ_ONLY = {"dpo": ("reference",), "grpo": ("reference",), "ppo": ("reference", "reward")}
"""Models that are only read, by method. Sources: the guide A:43; the papers of PPO (language models), DPO, GRPO."""
TRAINED = {"ppo": ("critic",)}
"""Models that are trained beside the actor."""
GENERATING = frozenset({"ppo", "grpo"})
"""Methods whose steps begin with answers that the model writes."""


def roles_of(model: ModelSpec, demand: TrainingDemand, layout: TrainingLayout) -> RolesInput:
    """The models beside the one that is trained: a reference for DPO and GRPO, reward and a trained critic for PPO.

    They are taken to be of the trained model's size, and on the same devices unless they are asked apart. Generation
    takes the memory in turn, or has an engine beside the trainer with the cache of a step's answers.
    """
    if demand.roles == "apart":
        return RolesInput()
    frozen, trained = READ_ONLY.get(demand.method, ()), TRAINED.get(demand.method, ())
    held = RolesInput(frozen=(model,) * len(frozen), trained=(model,) * len(trained))
    if demand.roles != "beside" or demand.method not in GENERATING:
        return held
    answers = demand.global_batch * layout.tp / layout.devices
    cache = generation_cache_bytes(model, tp=layout.tp, sequences=answers, tokens=demand.seq_len)
    return replace(held, generation_tp=layout.tp, generation_cache_bytes=cache)


def roles_words(question: Question, row: Row, training: dict[str, Any]) -> str | None:
    """Who is held, how many bytes of a device the others take, how long they and generation take of a step."""
    method = question.training.method
    frozen, trained = READ_ONLY.get(method, ()), TRAINED.get(method, ())
    if not frozen and not trained:
        return None
    asked = row.trial.asked_of(row.row)
    whole, alone = training_memory(asked), training_memory(replace(asked, roles=RolesInput()))
    others = float(np.ravel(whole.total_bytes)[0]) - float(np.ravel(alone.total_bytes)[0])
    seconds = {term["op"]: term["seconds"] for term in training["terms"]}
    parts = (("generation", seconds.get("rollout", 0.0)), ("the other models", seconds.get("other_passes", 0.0)))
    taken = " and ".join(f"{name} {show_seconds(value)}" for name, value in parts if value)
    step = show_seconds(training["step_s"].mid)
    learns = " and ".join(("actor", *trained))
    held = (
        f"{method} trains {learns} and reads {' and '.join(frozen)}, all taken to be of one size, on the same devices"
    )
    return f"{held}: the others take {show_bytes(others)} of each, and of a step of {step} {taken}"
