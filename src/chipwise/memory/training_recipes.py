"""How many bytes a trainer holds for one parameter, and the fitted numbers of its activations: data with sources."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources

from chipwise.errors import UnknownNameError
from chipwise.memory.training_job import ADAPTER_METHODS, TrainingJob

_ACTIVATION_BYTES = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """What no document says, fitted on the peaks of all trainers together.

    `eager_factor` and `fused_factor` multiply what kernels are counted to leave. `process_bytes` is what one process
    takes before a step, `group_bytes` what more it takes where several devices talk. `slack_fraction` of the
    activations is lost in the allocator. `hot_expert_factor` is what the busiest device's experts get over the mean
    where routing is not forced to be even. Measured peaks lie between `low_fraction` and `high_fraction` of the
    prediction 8 times in 10. A step fits a device where it takes at most `usable_fraction` of what the driver reports.
    """

    eager_factor: float
    fused_factor: float
    process_bytes: float
    group_bytes: float
    slack_fraction: float
    hot_expert_factor: float
    low_fraction: float
    high_fraction: float
    usable_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a trainer keeps for one trained parameter, in bytes, and what its kernels leave.

    `master_bytes` is a copy of the weights in fp32 beside them; `moment_bytes` is the width of one optimizer moment;
    `step_bytes` are alive while a parameter is updated. `gradients_persist`: 1 where gradients have a buffer of their
    own; 0 where they fill what activations free. `bucket_bytes` are the buffers that gradients of several devices
    pass through. `gather_bytes` is the width of a weight that is brought back; `live_params` are brought back at once
    (0: two layers), `whole_at_load`: all of them while a checkpoint is read; `host_checkpoints`: what full
    recomputation keeps waits in host memory.

    `norm_bytes`, `fused_activation`, `expanded_kv`, `routed_outputs`, `adapter_input_bytes` and `quantised_inputs`
    (of what enters a frozen matrix of few bits) are what its kernels leave, see `training_shapes.Kernels`.
    `score_bytes` of a score are kept without a fused attention kernel. `logits_bytes` is held for one logit at the
    peak of the loss, nothing where `fused_loss` joins it with the head.
    """

    name: str
    family: str
    """The recipe whose speed is like its own."""
    weight_bytes: float
    gradient_bytes: float
    master_bytes: float
    moment_bytes: float
    step_bytes: float
    gradients_persist: float
    bucket_bytes: float
    gather_bytes: float
    live_params: float
    whole_at_load: float
    host_checkpoints: float
    norm_bytes: float
    fused_activation: float
    expanded_kv: float
    routed_outputs: float
    adapter_input_bytes: float
    quantised_inputs: float
    score_bytes: float
    logits_bytes: float
    fused_loss: float

    @property
    def eager(self) -> bool:
        """Whether it runs one kernel an operation: its norms work on a copy in 32 bits."""
        return self.norm_bytes > _ACTIVATION_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """What an optimizer keeps for one parameter: `moments` at the recipe's width, or `state_bytes` where that is fixed.

    `outer_moments` are those of embedding and head. `on_host` states live in host memory and are paged in.
    """

    name: str
    moments: float
    outer_moments: float
    state_bytes: float
    needs_master: float
    on_host: float


def _rows(name: str) -> list[dict[str, str]]:
    text = resources.files("chipwise.memory").joinpath(f"data/{name}").read_text(encoding="utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


@cache
def fitted() -> Fitted:
    """The fitted numbers."""
    return Fitted(**{row["name"]: float(row["value"]) for row in _rows("training_fitted.csv")})


@cache
def recipes() -> Mapping[str, Recipe]:
    """Every recipe by name."""
    numbers = [one.name for one in fields(Recipe) if one.name not in {"name", "family"}]
    return {
        row["name"]: Recipe(name=row["name"], family=row["family"], **{key: float(row[key]) for key in numbers})
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
    'composer'
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
    """The optimizer of a job, its name with dashes or, as Transformers writes it, with underscores.

    Raises:
        UnknownNameError: an optimizer that is not in the table.
    """
    known, name = optimizers(), job.optimizer.lower().replace("_", "-")
    if name not in known:
        raise UnknownNameError("optimizer", job.optimizer, known, listing="known: " + ", ".join(known))
    return known[name]
