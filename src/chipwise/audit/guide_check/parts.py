"""The parts of an answer that cells are compared with, by the name that a cell gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chipwise.audit.guide_check.asked import Asked, Told
from chipwise.audit.guide_check.figures import (
    bound,
    cache,
    count,
    counted,
    ep,
    formats,
    legal,
    mfu,
    nodes,
    tp,
    weights,
)
from chipwise.audit.guide_check.reasons import nothing_feasible
from chipwise.audit.guide_check.sizes import (
    apart,
    cheaper,
    exactly,
    feasible,
    gpu,
    has,
    infeasible,
    lacks,
    sizes,
    sold,
    vendor,
)
from chipwise.audit.guide_check.words import amount, box, holds, need, scale, shared, signal

Part = Callable[[Sequence[str], Asked], Told]

_OF_THE_ANSWER: dict[str, Part] = {
    "sizes": sizes,
    "feasible": feasible,
    "infeasible": infeasible,
    "has": has,
    "lacks": lacks,
    "exactly": exactly,
    "legal": legal,
    "cache": cache,
    "vendor": vendor,
    "signal": signal,
    "box": box,
    "holds": holds,
}
_OF_ITS_OPTIONS: dict[str, Part] = {
    "formats": formats,
    "tp": tp,
    "ep": ep,
    "nodes": counted("nodes", nodes),
    "instances": counted("instances", lambda option: float(option.instances)),
    "chips": counted("chips", lambda option: float(option.chips_used)),
    "copies": counted("copies", lambda option: float(option.replicas)),
    "mfu": mfu,
    "count": count,
    "weights": weights,
    "bound": bound,
    "need": need,
    "amount": amount,
    "sold": sold,
    "apart": apart,
    "cheaper": cheaper,
    "gpu": gpu,
    "scale": scale,
    "shared": shared,
}
PARTS = frozenset({*_OF_THE_ANSWER, *_OF_ITS_OPTIONS})
"""Every part that a cell may name."""


def compare(part: str, words: Sequence[str], asked: Asked) -> Told:
    """The guide's words beside that part of the answer; where no size will do, why."""
    if part in _OF_THE_ANSWER:
        return _OF_THE_ANSWER[part](words, asked)
    return _OF_ITS_OPTIONS[part](words, asked) if asked.options else nothing_feasible(asked)
