"""`--strict-guide`: the guide's own filters to the letter, each marked as such and beside its erratum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.decide.advice import Rejected
from chipwise.guide import StrictQuestion, strict_rejections
from chipwise.precision import format_facts, stored_bytes, with_precision
from chipwise.precision.legal import stored_format

if TYPE_CHECKING:
    from chipwise.catalog import Instance
    from chipwise.decide.question import Question


def strictly_rejected(instance: Instance, question: Question) -> Rejected | None:
    """The first filter of the guide that excludes the size; None where it passes all, or where nobody asked."""
    if not question.policy.strict_guide or instance.chip is None:
        return None
    chip = question.catalog.chips[instance.chip]
    found = strict_rejections(instance, chip, strict_question(question))
    if not found:
        return None
    first = found[0]
    against = f"; errata: {first.erratum}" if first.erratum else ""
    return Rejected(
        instance=instance.name,
        rule=first.rule,
        reason=f"by the letter of the guide: {first.reason}{against}",
        shortfall=None,
        nearest={},
        change=f"{first.change}, or leave out --strict-guide",
        source=first.source,
    )


def strict_question(question: Question) -> StrictQuestion:
    """What the guide's filters look at: the model at 16 bits, its stored family, the kind of work."""
    floor = question.policy.min_precision
    return StrictQuestion(
        architecture=question.model.architecture,
        weights_bf16_bytes=float(stored_bytes(with_precision(question.model, "bf16")).main_bytes),
        format_family=format_facts(floor).family if floor else stored_format(question.model).family,
        large_pretraining=question.kind == "pretrain",
        isolation=question.policy.isolation,
    )
