"""The models that a preference method holds beside the one it trains: who they are, what they take, what they cost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.memory.training import RolesInput, generation_cache_bytes

if TYPE_CHECKING:
    from chipwise.decide.question import TrainingDemand
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
