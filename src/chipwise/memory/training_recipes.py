"""How many bytes a trainer holds for one parameter, and the fitted numbers of its activations: data with sources."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources

from chipwise.errors import UnknownNameError
from chipwise.memory.training_job import ADAPTER_METHODS, TrainingJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a trainer keeps for one trained parameter, in bytes, and for the step around it.

    `master_bytes` is a copy of the weights in fp32 beside them; `moment_bytes` is the width of one optimizer moment.
    `gradients_persist`: 1 where gradients have a buffer of their own; 0 where they fill what activations free.
    `gather_bytes` is the width of a weight that is brought back; `live_params` are brought back at once (0: two
    layers), `whole_at_load`: all of them while a checkpoint is read. `norm_bytes`, `fused_activation`, `routed_outputs`, `adapter_input_bytes` and `quantised_inputs` (of what
    enters a frozen matrix of few bits) are what its kernels leave, see `training_shapes.Kernels`. `logits_bytes` is
    held for one logit at the peak of an unfused loss, `step_bytes` for one trained parameter while it is updated. `activation_factor` multiplies what is counted (casts, copies),
    `fixed_bytes` is the framework and its kernels, `bucket_bytes` the buffers that gradients of several devices pass
    through, `slack_fraction` what the allocator loses. Measured peaks lie between `low_fraction` and `high_fraction`
    of the prediction 8 times in 10.
    """

    name: str
    weight_bytes: float
    gradient_bytes: float
    master_bytes: float
    moment_bytes: float
    gradients_persist: float
    gather_bytes: float
    live_params: float
    whole_at_load: float
    norm_bytes: float
    fused_activation: float
    routed_outputs: float
    adapter_input_bytes: float
    quantised_inputs: float
    fused_loss: float
    logits_bytes: float
    step_bytes: float
    activation_factor: float
    fixed_bytes: float
    bucket_bytes: float
    slack_fraction: float
    low_fraction: float
    high_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """What an optimizer keeps for one parameter: `moments` at the recipe's width, or `state_bytes` where that is fixed.

    `on_host` states live in host memory and are paged in.
    """

    name: str
    moments: float
    state_bytes: float
    needs_master: float
    on_host: float


def _rows(name: str) -> list[dict[str, str]]:
    text = resources.files("chipwise.memory").joinpath(f"data/{name}").read_text(encoding="utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


@cache
def recipes() -> Mapping[str, Recipe]:
    """Every recipe by name."""
    numbers = [one.name for one in fields(Recipe) if one.name != "name"]
    return {
        row["name"]: Recipe(name=row["name"], **{key: float(row[key]) for key in numbers})
        for row in _rows("training_recipes.csv")
    }


@cache
def optimizers() -> Mapping[str, Optimizer]:
    """Every optimizer by name."""
    numbers = [one.name for one in fields(Optimizer) if one.name != "name"]
    return {
        row["name"]: Optimizer(name=row["name"], **{key: float(row[key]) for key in numbers})
        for row in _rows("training_optimizers.csv")
    }


@cache
def _aliases() -> Mapping[str, str]:
    return {row["alias"]: row["recipe"] for row in _rows("training_trainers.csv")}


def recipe_named(trainer: str) -> str:
    """The recipe behind a trainer's name as sources print it: the longest alias that the name holds.

    Raises:
        UnknownNameError: no alias is part of the name.

    >>> recipe_named("llm-foundry (Composer FSDP1)")
    'fsdp'
    """
    if trainer in recipes():
        return trainer
    lowered = trainer.lower()
    hits = [alias for alias in _aliases() if alias in lowered]
    if not hits:
        raise UnknownNameError("trainer", trainer, [*recipes(), *_aliases()])
    return _aliases()[max(hits, key=len)]


def recipe_of(job: TrainingJob) -> Recipe:
    """The recipe of a job: its trainer's; without one, `hf` for adapters and `megatron` for everything else.

    Raises:
        UnknownNameError: a trainer that no recipe knows.
    """
    if job.trainer is not None:
        return recipes()[recipe_named(job.trainer)]
    return recipes()["hf" if job.method in ADAPTER_METHODS else "megatron"]


def optimizer_of(job: TrainingJob) -> Optimizer:
    """The optimizer of a job.

    Raises:
        UnknownNameError: an optimizer that is not in the table.
    """
    known = optimizers()
    if job.optimizer.lower() not in known:
        raise UnknownNameError("optimizer", job.optimizer, known)
    return known[job.optimizer.lower()]


def spread_of(job: TrainingJob) -> tuple[float, float]:
    """Fractions of the predicted total between which 80 % of measured peaks of this recipe lie."""
    recipe = recipe_of(job)
    return recipe.low_fraction, recipe.high_fraction
