"""`size(SizeRequest)`: the memory of one layout, what fits in it, and what would."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chipwise.advisor.layout import DEFAULT_ENGINES, Target, lay, platform_for, read_model
from chipwise.advisor.limits import check_context, check_split, check_version
from chipwise.advisor.request import SplitRequest
from chipwise.advisor.whole import answers_whole
from chipwise.catalog import load_catalog
from chipwise.decide.serving.holding import hold, memory_object

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
    if platform.sample is not None and platform.sample.chip_fraction < 1.0:
        answer["fractions"] = _fractions(laid, request, float(context))
    return {"schema_version": 1, "model": model.name, "precision": laid.layout.seat.capability.weight_format, **answer}


def _slices(laid: Laid, request: SizeRequest, context_tokens: float) -> list[dict[str, Any]]:
    """Every MIG profile of the chip, smallest first: whether one slice holds the model, and how many a GPU gives."""
    chip = laid.layout.seat.platform.chip
    profiles = sorted(chip.mig_profiles, key=lambda one: (one.memory_fraction, one.compute_fraction, one.name))
    return [
        {
            "profile": one.name,
            "fits": _holds(laid, request, context_tokens, Target(chip=chip.id, instance=None, mig=one.name)),
            "per_gpu": one.count or 1,
        }
        for one in profiles
    ]


def _fractions(laid: Laid, request: SizeRequest, context_tokens: float) -> list[dict[str, Any]]:
    """Every size that rents a part of this chip, smallest first: whether it holds the model, how many share a GPU."""
    chip = laid.layout.seat.platform.chip.id
    parts = (one for one in load_catalog().instances.values() if one.chip == chip and one.chip_fraction < 1.0)
    return [
        {
            "instance": one.name,
            "fits": _holds(laid, request, context_tokens, Target(chip=None, instance=one.name)),
            "per_gpu": round(1.0 / one.chip_fraction),
        }
        for one in sorted(parts, key=lambda one: (one.chip_fraction, one.vcpu or 0, one.name))
        if not one.lacks
    ]


def _holds(laid: Laid, request: SizeRequest, context_tokens: float, target: Target) -> bool:
    """Whether one part of a chip holds the model as it is asked."""
    engine = replace(request.engine, precision=None)
    one = lay(laid.model, platform_for(target, 1), SplitRequest(tp=1), engine, models=request.models)
    held = hold(one.model, one.layout, context_tokens=context_tokens, concurrency=float(request.concurrency))
    return bool(held.answer.fits)
