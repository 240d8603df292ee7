"""Runs that change weights: how many tokens, in which batches, until when, at what price."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import cast

from chipwise.errors import InputError
from chipwise.workload.presets import Preset, sampled_preset
from chipwise.workload.types import Given, Method, ModelHints, TrainingWorkload, WorkloadRequest
from chipwise.workload.values import flag, number, said, text, whole

METHODS: tuple[Method, ...] = ("pretrain", "full-ft", "lora", "qlora", "dpo", "ppo", "grpo")
_GENERATES = frozenset({"ppo", "grpo"})


def resolve_training(
    request: WorkloadRequest, preset: Preset, hints: ModelHints, goals: Given[tuple[str, ...]]
) -> TrainingWorkload:
    """The run that is asked for.

    Tokens are the user's, else the preset's, else `tokens a parameter x active parameters` (compute-optimal
    pre-training). A global batch counts sequences: `ceil(tokens a step / sequence length)`, a step of more tokens in a
    long run; where answers are generated, those of the preset's batch, fewer as prompt and answer are longer than its
    own. A model that reads no
    tokens is trained on samples, which the user's `tokens` then count: all that are seen, where no passes are said.

    Raises:
        InputError: a sequence longer than the model takes, a batch smaller than the micro-batch,
            lengths of answers for a method that generates none, a sequence of a model that reads none.
    """
    own = sampled_preset(preset, hints.architecture)
    if own is not None:
        return _on_samples(request, own, goals)
    method = cast("Given[Method]", text(request.method, preset, "method"))
    if method.value not in _GENERATES and (request.isl is not None or request.osl is not None):
        raise InputError(
            f"--isl and --osl do not go with {method.value}",
            why="nothing is generated: sequences have one length",
            fix="give --seq-len (or --context)",
        )
    seq_len = _sequence(request, preset, hints)
    isl, osl = whole(request.isl, preset, "isl"), whole(request.osl, preset, "osl")
    batched = seq_len.value if isl is None or osl is None else _batched(isl.value + osl.value, preset)
    run = replace(_run(request, preset, goals), tokens=_tokens(request, preset, hints), seq_len=seq_len)
    return replace(
        run,
        global_batch=_global_batch(request, _step_tokens(preset, run.tokens_total), batched),
        isl=isl,
        osl=osl,
        group=whole(None, preset, "group"),
    )


def _on_samples(request: WorkloadRequest, preset: Preset, goals: Given[tuple[str, ...]]) -> TrainingWorkload:
    sequences = dict.fromkeys(("seq_len", "context"), "a sample is an image, a clip or a row")
    for name, why in {**sequences, "isl": "nothing is generated", "osl": "nothing is generated"}.items():
        if said(request, name):
            raise InputError(
                f"{flag(name)} does not go with this model",
                why=f"it is trained on no tokens: {why}",
                fix="leave it out",
            )
    if request.recompute == "selective":
        raise InputError(
            "--recompute selective does not go with this model",
            why="what is selected are parts of a language model's layers",
            fix="--recompute none or full",
        )
    run = _run(request, preset, goals)
    if request.tokens is not None and request.epochs is None:  # the preset's passes are over its own samples
        run = replace(run, epochs=Given(value=1.0, origin="preset"))
    return replace(
        run,
        samples=whole(request.tokens, preset, "samples"),
        global_batch=_global_batch(request, preset.number("global_batch"), 1),
    )


def _run(request: WorkloadRequest, preset: Preset, goals: Given[tuple[str, ...]]) -> TrainingWorkload:
    """What every run has, whatever it is trained on."""
    return TrainingWorkload(
        preset=Given(value=preset.name, origin="user" if request.preset or request.method else "model"),
        goals=goals,
        method=cast("Given[Method]", text(request.method, preset, "method")),
        tokens=None,
        epochs=number(request.epochs, preset, "epochs") or Given(value=1.0, origin="preset"),
        seq_len=None,
        global_batch=Given(value=1, origin="preset"),
        micro_batch=whole(request.micro_batch, preset, "micro_batch") or Given(value=1, origin="preset"),
        optimizer=text(request.optimizer, preset, "optimizer") or Given(value="adamw", origin="preset"),
        recompute=text(request.recompute, preset, "recompute") or Given(value="none", origin="preset"),
        shard=text(request.shard, preset, "shard"),
        lora_rank=whole(request.lora_rank, preset, "lora_rank"),
        deadline_s=number(request.deadline_s, preset, "deadline_s"),
        budget_usd=number(request.budget_usd, preset, "budget_usd"),
    )


def tokens_for(*, tokens_per_param: float, params_active: float) -> float:
    """Training tokens of a compute-optimal run: `tokens a parameter x parameters a token passes through`.

    Source: Hoffmann et al., Training Compute-Optimal Large Language Models, 2022, arXiv:2203.15556.

    >>> tokens_for(tokens_per_param=20, params_active=70e9)
    1400000000000.0
    """
    return tokens_per_param * params_active


def _tokens(request: WorkloadRequest, preset: Preset, hints: ModelHints) -> Given[int] | None:
    stated = whole(request.tokens, preset, "tokens")
    if stated is not None:
        return stated
    ratio = preset.number("tokens_per_param")
    params = hints.params_active or hints.params_total
    if ratio is None or not params:
        return None
    return Given(value=round(tokens_for(tokens_per_param=ratio, params_active=params)), origin="model")


def _sequence(request: WorkloadRequest, preset: Preset, hints: ModelHints) -> Given[int]:
    stated = request.seq_len if request.seq_len is not None else request.context
    seq_len = whole(stated, preset, "seq_len") or Given(value=1, origin="preset")
    limit = hints.max_context_tokens
    if limit is None or seq_len.value <= limit:
        return seq_len
    if seq_len.origin == "user":
        raise InputError(
            f"a sequence of {seq_len.value} is beyond what the model takes",
            why=f"its longest context is {limit} tokens",
            fix=f"give --seq-len {limit} or less",
        )
    return Given(value=limit, origin="model")


def _batched(mean_tokens: int, preset: Preset) -> float:
    """Length that a batch of generated sequences is counted by: the preset's, as many times as its mean is exceeded.

    The longest sequence that is allowed does not count: a step generates and trains mean ones.
    """
    own = {name: preset.number(name) or 0.0 for name in ("seq_len", "isl", "osl")}
    return max(own["seq_len"] * mean_tokens / (own["isl"] + own["osl"]), 1.0)


def _step_tokens(preset: Preset, tokens: float | None) -> float | None:
    """Tokens of a step: those of a long run where more are trained than its batch was raised after."""
    long_from, long_step = preset.number("long_run_tokens"), preset.number("long_global_batch_tokens")
    if tokens is not None and long_from is not None and tokens > long_from:
        return long_step
    return preset.number("global_batch_tokens")


def _global_batch(request: WorkloadRequest, counted: float | None, seq_len: float) -> Given[int]:
    """Sequences (or samples) a step: the user's, else the preset's tokens over the length; whole micro-batches."""
    micro_batch = request.micro_batch or 1
    if request.global_batch is not None:
        if request.global_batch < micro_batch:
            raise InputError(
                f"--global-batch {request.global_batch} is below --micro-batch {micro_batch}",
                why="a step holds at least one micro-batch",
                fix=f"raise --global-batch to {micro_batch} or more",
            )
        return Given(value=request.global_batch, origin="user")
    return Given(value=max(micro_batch, math.ceil((counted or float(seq_len)) / seq_len)), origin="preset")
