"""`size(SizeRequest)`: the memory of one layout, what fits in it, and what would."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chipwise.advisor.layout import DEFAULT_ENGINES, Target, lay, platform_for, read_model
from chipwise.advisor.limits import check_context, check_split, check_version
from chipwise.advisor.request import SplitRequest
from chipwise.advisor.whole import answers_whole
from chipwise.decide.serving.answers import hold, memory_object

if TYPE_CHECKING:
    from chipwise.advisor.layout import Laid
    from chipwise.advisor.request import SizeRequest

DEFAULT_CONTEXT_TOKENS = 8192


def size(request: SizeRequest) -> dict[str, Any]:
    """Whether a model fits on a chip, an instance or a MIG slice, term by term, in CONTRACT's shape.

    Args:
        request: the model, the target, and what the flags say. Context is the model's own limit, at most 8,192
            tokens, where it is not said.

    Raises:
        InputError: a context beyond the model's, an illegal split, an unknown version of the engine.
        InfeasibleError, KnowledgeError: see `lay`.
    """
    model = read_model(request.model, request.models)
    check_context(model, request.context_tokens, "--context")
    check_context(model, request.training.seq_len, "--seq-len")
    check_split(model, request.split)
    if request.training.method is not None:
        from chipwise.advisor.training import train  # a heavy door, opened for runs alone

        found = train(model, request)
        return {"schema_version": 1, "model": model.name, "config": found["config"], **found["memory"]}
    if answers_whole(model) and request.mig is None:
        from chipwise.advisor.other import size_other  # opened for such models alone

        return size_other(model, request)
    target = Target(chip=request.chip, instance=request.instance, mig=request.mig)
    wanted = request.split
    devices = (wanted.tp or 1) * (wanted.pp or 1) * (wanted.cp or 1) * (wanted.dp or 1)
    platform = platform_for(target, devices)
    check_version(request.engine.engine or DEFAULT_ENGINES.get(platform.chip.vendor, "vllm"), request.engine.version)
    laid = lay(model, platform, wanted, request.engine, models=request.models)
    context = request.context_tokens or min(model.max_context_tokens or DEFAULT_CONTEXT_TOKENS, DEFAULT_CONTEXT_TOKENS)
    held = hold(laid.model, laid.layout, context_tokens=float(context), concurrency=float(request.concurrency))
    answer = memory_object(laid.model, laid.layout, held)
    if request.mig:
        answer["mig"] = _slices(laid, request, float(context))
    return {"schema_version": 1, "model": model.name, "precision": laid.layout.seat.capability.weight_format, **answer}


def _slices(laid: Laid, request: SizeRequest, context_tokens: float) -> list[dict[str, Any]]:
    """Every MIG profile of the chip, smallest first: whether one slice holds the model, and how many a GPU gives."""
    chip, found = laid.layout.seat.platform.chip, []
    for profile in sorted(chip.mig_profiles, key=lambda one: (one.memory_fraction, one.compute_fraction, one.name)):
        platform = platform_for(Target(chip=chip.id, instance=None, mig=profile.name), 1)
        one = lay(laid.model, platform, SplitRequest(tp=1), replace(request.engine, precision=None))
        held = hold(one.model, one.layout, context_tokens=context_tokens, concurrency=float(request.concurrency))
        found.append({"profile": profile.name, "fits": bool(held.answer.fits), "per_gpu": profile.count or 1})
    return found
