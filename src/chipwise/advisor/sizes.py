"""`size(SizeRequest)`: the memory of one layout, what fits in it, and what would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipwise.advisor.layout import Target, lay, platform_for, read_model
from chipwise.advisor.training import train
from chipwise.decide.serving.answers import hold, memory_object

if TYPE_CHECKING:
    from chipwise.advisor.request import SizeRequest

DEFAULT_CONTEXT_TOKENS = 8192


def size(request: SizeRequest) -> dict[str, Any]:
    """Whether a model fits on a chip, an instance or a MIG slice, term by term, in CONTRACT's shape.

    Args:
        request: the model, the target, and what the flags say. Context is the model's own limit, at most 8,192
            tokens, where it is not said.

    Raises:
        InputError, InfeasibleError, KnowledgeError: see `lay`.
    """
    model = read_model(request.model, request.models)
    if request.training.method is not None:
        found = train(model, request)
        return {"schema_version": 1, "model": model.name, "config": found["config"], **found["memory"]}
    target = Target(chip=request.chip, instance=request.instance, mig=request.mig)
    wanted = request.split
    devices = (wanted.tp or 1) * (wanted.pp or 1) * (wanted.cp or 1) * (wanted.dp or 1)
    laid = lay(model, platform_for(target, devices), wanted, request.engine)
    context = request.context_tokens or min(model.max_context_tokens or DEFAULT_CONTEXT_TOKENS, DEFAULT_CONTEXT_TOKENS)
    held = hold(laid.model, laid.layout, context_tokens=float(context), concurrency=float(request.concurrency))
    answer = memory_object(laid.model, laid.layout, held)
    return {"schema_version": 1, "model": model.name, "precision": laid.layout.seat.capability.weight_format, **answer}
