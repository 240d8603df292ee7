"""One training layout from flags, sized and timed: what `memory` and `estimate` answer for `--method`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from chipwise.advisor.layout import Target, platform_for
from chipwise.advisor.other import sample_of
from chipwise.advisor.request import SizeRequest
from chipwise.advisor.whole import class_of
from chipwise.catalog import load_catalog
from chipwise.decide.failures import Refusal
from chipwise.decide.question import Policy, Question, TrainingDemand
from chipwise.decide.training.answers import Row, memory_object, other_object, training_object
from chipwise.decide.training.option import sizes_of
from chipwise.decide.training.roles import GENERATING
from chipwise.decide.training.rollout import rollout_seconds
from chipwise.decide.training.trainers import Scheme, trainers_of
from chipwise.decide.training.trials import trial
from chipwise.decide.training.ways import DEGREES, Way, one_way, sample_ways
from chipwise.engines import load_engine
from chipwise.errors import InfeasibleError, InputError, KnowledgeError, UnknownNameError
from chipwise.memory.training_activations import held_format
from chipwise.memory.training_job import Method, Recompute, Shard, TrainingLayout, layout_problem
from chipwise.memory.training_recipes import recipe_named
from chipwise.parallelism import tp_problem
from chipwise.workload import ModelHints, TrainingWorkload, WorkloadRequest, resolve_workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chipwise.advisor.request import EstimateRequest, SplitRequest, TrainingRequest
    from chipwise.decide.platforms import Platform
    from chipwise.decide.training.trials import Trial
    from chipwise.model import ModelSpec

METHODS = {"pretrain": "pretrain", "full-ft": "finetune", "ppo": "rlhf"}
DEFAULT_RECOMPUTE: Recompute = "none"
TRAINED_IN = ("bf16", "fp16", "fp8", "mxfp8", "nvfp4")
"""Formats that the fitted runs multiplied in."""
SERVED = (
    "concurrency", "rate_per_s", "batch", "offline", "replicas", "lengths", "steps", "isl_tokens", "osl_tokens",
)  # fmt: skip
SERVING_ENGINE = (
    "engine", "version", "kv_precision", "utilization", "chunk_tokens", "max_num_seqs", "eager", "draft",
    "draft_tokens", "acceptance", "lora_adapters",
)  # fmt: skip
"""What a run has not; the lengths of answers only where some are generated."""


def train(model: ModelSpec, request: SizeRequest | EstimateRequest, instances: int = 1) -> dict[str, Any]:
    """The memory and the step of one layout.

    Degrees that are not said follow: dp takes what tp, pp and cp leave of the devices. Batch, sequence, optimizer
    and the rest come from the method's preset where they are not said; a step of samples is timed with the
    micro-batch that fits and makes it shortest.

    Raises:
        InputError: an unknown method or mode, degrees that do not fit the model or the devices.
        InfeasibleError, KnowledgeError: the chip cannot, or nobody knows whether it can, train the model.
    """
    _check_serving(request)
    demand = _demand(model, request)
    split = request.split
    asked = (split.tp or 1) * (split.pp or 1) * (split.cp or 1) * (split.dp or 1)
    platform = platform_for(Target(chip=request.chip, instance=request.instance), asked)
    way = _way(model, platform, split, demand, instances)
    question = _question(model, demand)
    scheme = _scheme(question, platform, split, request.training)
    mode: Any = demand.recompute or DEFAULT_RECOMPUTE
    chosen = demand.micro_batch is None
    ways = sample_ways(way, demand.global_batch) if chosen else one_way(way)
    found = trial(model, demand, scheme, mode, ways, rollout_s=rollout_seconds(question, ways))
    row = Row(trial=found, row=_fastest(found))
    way = ways[row.row]
    memory = memory_object(row, ())
    return {
        "memory": memory,
        "training": training_object(row) if memory["fits"] else None,
        "other": other_object(row) if memory["fits"] else None,
        "evidence": found.evidence(row.row),
        "config": {
            **_config(model, way, scheme, demand, mode),
            "precision": {"weights": held_format(found.job), "compute": found.job.precision},
        },
        "warnings": list(_words(question, row, request, chosen=chosen)),
    }


def _words(question: Question, row: Row, request: SizeRequest | EstimateRequest, *, chosen: bool) -> Iterator[str]:
    """What was chosen for the user, and what to say where the step does not fit."""
    way = row.trial.ways[row.row]
    if row.trial.short_bytes[row.row] > 0:
        holding = list(_holding(question, way, request, row.trial.recompute))
        if holding:
            yield f"the step would fit with {' or '.join(holding)}"
    elif chosen:
        yield f"--micro-batch is not said: of the powers of two that fit, {way.micro_batch:,} makes the shortest step"


def _holding(question: Question, way: Way, request: SizeRequest | EstimateRequest, mode: Recompute) -> Iterator[str]:
    """Flags of layouts of the same devices that hold the step: the least tp inside a node, weights sharded."""
    split, asked = request.split, request.training
    found = trainers_of(question, way.platform.chip)
    schemes, documented = ((), frozenset()) if isinstance(found, Refusal) else (found.schemes, found.tp)

    def holds(laid: Way, scheme: Scheme) -> bool:
        tried = trial(question.model, question.training, scheme, mode, one_way(laid), rollout_s=None)
        return float(tried.short_bytes[0]) <= 0

    if question.training.sample is None and split.tp is None and split.dp is None:
        for tp in _narrower(question.model, way, documented):
            scheme = _scheme(question, way.platform, replace(split, tp=tp), asked)
            if holds(replace(way, tp=tp, dp=way.dp // tp), scheme):
                yield f"--tp {tp}"
                break
    sharded = next((one for one in schemes if one.shard == "zero3"), None)
    if sharded is not None and way.tp * way.pp == 1 and way.dp > 1 and asked.shard is None and holds(way, sharded):
        yield "--shard zero3"


def _narrower(model: ModelSpec, way: Way, documented: frozenset[int]) -> list[int]:
    """Degrees of tp that take copies together inside a node, the least first."""
    legal = [tp for tp in DEGREES if 1 < tp <= way.platform.devices and way.dp % tp == 0]
    return [tp for tp in legal if tp_problem(model, tp) is None and (not documented or tp in documented)]


def _fastest(found: Trial) -> int:
    """The row that fits and is fastest; the first, which has the smallest micro-batch, where none fits."""
    return int(np.argmin(np.where(found.short_bytes > 0, np.inf, found.arrays.step_s)))


def _check_serving(request: SizeRequest | EstimateRequest) -> None:
    """Refuse what belongs to serving.

    Raises:
        InputError: a load, lengths of answers where none are generated, a setting of an engine.
    """
    method = request.training.method
    allowed = {"isl_tokens", "osl_tokens"} if method in GENERATING else set()
    default = 1 if isinstance(request, SizeRequest) else None
    said = [
        name for name in SERVED if name not in allowed and getattr(request, name, None) not in {None, False, default}
    ]
    said += [name for name in SERVING_ENGINE if getattr(request.engine, name) not in {None, False}]
    if said:
        word = said[0].removesuffix("_tokens").removesuffix("_per_s").replace("_", "-")
        raise InputError(
            f"--{word} does not go with --method {method}", why="a training run serves nobody", fix="leave it out"
        )


def _demand(model: ModelSpec, request: SizeRequest | EstimateRequest) -> TrainingDemand:
    asked = request.training
    method = asked.method or ""
    if method not in get_args(Method):
        raise UnknownNameError("method", method, get_args(Method))
    for name, value, known in (("--recompute", asked.recompute, Recompute), ("--shard", asked.shard, Shard)):
        if value is not None and value not in get_args(known):
            raise InputError(f"{name} {value} is not known", why="it is a fixed set", fix=" or ".join(get_args(known)))
    wish = WorkloadRequest(
        preset=METHODS.get(method, "lora" if method == "dora" else method),
        tokens=1.0,
        seq_len=asked.seq_len or request.context_tokens,
        micro_batch=asked.micro_batch,
        global_batch=asked.global_batch,
        optimizer=asked.optimizer,
        recompute=asked.recompute,
        lora_rank=asked.lora_rank if method in {"lora", "qlora", "dora"} else None,
        isl=getattr(request, "isl_tokens", None) if method in GENERATING else None,
        osl=getattr(request, "osl_tokens", None) if method in GENERATING else None,
        image_size=getattr(request, "image_size", None),
        frames=getattr(request, "frames", None),
        audio_s=getattr(request, "audio_s", None),
    )
    hints = ModelHints(architecture=class_of(model), max_context_tokens=model.max_context_tokens)
    workload = resolve_workload(wish, hints)
    if not isinstance(workload, TrainingWorkload):
        raise InputError(f"{method} is no training method", why="it trains nothing", fix="--method lora")
    sample = sample_of(model, wish)
    recompute = asked.recompute or DEFAULT_RECOMPUTE
    timed = sample is not None and not isinstance(request, SizeRequest)
    return TrainingDemand(
        method=method,
        tokens=1.0,
        seq_len=float(workload.seq_len.value) if workload.seq_len else 1.0,
        global_batch=float(workload.global_batch.value),
        micro_batch=asked.micro_batch if timed else workload.micro_batch.value,
        optimizer=workload.optimizer.value,
        recompute=workload.recompute.value if sample is None else recompute,
        sample=sample[0] if sample else None,
        precision=_precision(request.engine.precision, method),
        shard=asked.shard,
        lora_rank=workload.lora_rank.value if workload.lora_rank else 16,
        isl_tokens=float(workload.isl.value) if workload.isl else None,
        osl_tokens=float(workload.osl.value) if workload.osl else None,
        offload=asked.offload or "none",
        roles=asked.roles or "in-turn",
    )


def _precision(named: str | None, method: str) -> str:
    """What matrices are multiplied in, as the user names it; QLoRA's 4-bit base is multiplied in bf16.

    Raises:
        UnknownNameError: a format that no trainer multiplies.
    """
    if named is None or (method, named) == ("qlora", "nf4"):
        return "bf16"
    if named not in TRAINED_IN:
        raise UnknownNameError("training precision", named, TRAINED_IN, listing="known: " + ", ".join(TRAINED_IN))
    return named


def _way(model: ModelSpec, platform: Platform, split: SplitRequest, demand: TrainingDemand, instances: int) -> Way:
    tp, pp, cp = split.tp or 1, split.pp or 1, split.cp or 1
    devices = platform.devices * instances
    if devices % (tp * pp * cp):
        raise InputError(
            f"tp x pp x cp = {tp * pp * cp} does not divide the {devices} devices", why="every device has a place",
            fix="choose degrees that multiply to a divisor, or say --instances",
        )  # fmt: skip
    dp = split.dp or devices // (tp * pp * cp)
    layout = TrainingLayout(tp=tp, pp=pp, cp=cp, ep=split.ep or 1, dp=dp)
    problem = tp_problem(model, tp) or layout_problem(model, layout)
    if tp * pp * cp * dp != devices:
        problem = f"tp x pp x cp x dp = {tp * pp * cp * dp} is not the {devices} devices"
    if problem is not None:
        raise InputError(
            f"not a legal layout: {problem}", why="every device must hold whole pieces", fix="chipwise model"
        )
    micro, nodes = demand.micro_batch or 1, -(-devices // platform.devices)
    way = Way(platform=platform, nodes=nodes, tp=tp, pp=pp, ep=split.ep or 1, dp=dp, micro_batch=micro, cp=cp)
    if micro * dp > demand.global_batch:
        raise InputError(
            f"micro-batch {micro} x dp {dp} is more than the global batch {demand.global_batch:.0f}",
            why="every copy takes at least one micro-batch a step", fix=_fewer_copies(model, way, demand),
        )  # fmt: skip
    return way


def _fewer_copies(model: ModelSpec, way: Way, demand: TrainingDemand) -> str:
    """What makes every copy's micro-batch part of the batch."""
    fixes = [f"--global-batch {way.micro_batch * way.dp}"]
    if way.micro_batch > 1:
        fixes.append("a lower --micro-batch")
    together = [
        tp for tp in _narrower(model, way, frozenset()) if way.dp // tp * way.micro_batch <= demand.global_batch
    ]
    if together and demand.sample is None and way.tp == 1:
        fixes.append(f"devices that share a sequence: --tp {together[0]} or --cp {together[0]}")
    return ", or ".join(fixes)


def _question(model: ModelSpec, demand: TrainingDemand) -> Question:
    return Question(
        model=model,
        demand=demand,
        policy=Policy(goals=("training-cost",), regions=()),
        catalog=load_catalog(),
        engines={"nvidia": load_engine("vllm"), "aws": load_engine("vllm-neuron")},
        workload={},
        purpose="estimate",
    )


def _scheme(question: Question, platform: Platform, split: SplitRequest, asked: TrainingRequest) -> Scheme:
    """The scheme the flags mean: split where tp or pp is, else fully sharded; `--shard` beats both."""
    found = trainers_of(question, platform.chip)
    if isinstance(found, Refusal):
        family = InfeasibleError if found.known else KnowledgeError
        raise family(f"{question.model.name} on {platform.chip.id}: {found.reason}", why=found.source, fix=found.change)
    wants_split = (split.tp or 1) * (split.pp or 1) > 1
    fitting = [scheme for scheme in found.schemes if scheme.split == wants_split] or list(found.schemes)
    chosen = next((scheme for scheme in fitting if scheme.shard == asked.shard), fitting[0])
    shard: Any = asked.shard or chosen.shard
    return replace(chosen, shard=shard, trainer=recipe_named(asked.trainer) if asked.trainer else chosen.trainer)


def _config(model: ModelSpec, way: Way, scheme: Scheme, demand: TrainingDemand, mode: str) -> dict[str, Any]:
    return {
        "model": model.name,
        "chip": way.platform.chip.id,
        "instances": way.nodes,
        "devices": way.devices,
        "parallelism": {"tp": way.tp, "pp": way.pp, "ep": way.ep, "dp": way.dp, "cp": way.cp},
        "method": demand.method,
        "trainer": scheme.trainer,
        "shard": scheme.shard,
        "recompute": mode,
        "optimizer": demand.optimizer,
        **({"seq_len": round(demand.seq_len)} if demand.sample is None else sizes_of(demand.sample)),
        "micro_batch": way.micro_batch,
        "global_batch": round(demand.global_batch),
    }
