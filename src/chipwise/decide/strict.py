"""`--strict-guide`: the guide's own filters to the letter, each marked as such and beside its erratum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.decide.advice import Rejected
from chipwise.decide.question import Demand, TrainingDemand
from chipwise.guide import StrictQuestion, letter_of, strict_rejections
from chipwise.precision import format_facts, stored_bytes, with_precision
from chipwise.precision.legal import stored_format

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from chipwise.catalog import Instance
    from chipwise.decide.deployment import Deployment
    from chipwise.decide.question import Question
    from chipwise.guide import Letter

SIXTEEN_BITS = frozenset({"bf16", "fp16"})
"""The guide names them together: what it keeps at BF16 may be FP16."""


def strictly_rejected(instance: Instance, question: Question) -> Rejected | None:
    """The first filter of the guide that excludes the size, or that its flow names others.

    None where it passes all, or where nobody asked.
    """
    if not question.policy.strict_guide or instance.chip is None:
        return None
    chip = question.catalog.chips[instance.chip]
    found = strict_rejections(instance, chip, strict_question(question))
    if not found:
        return _not_named(instance, question)
    first = found[0]
    against = f"; errata: {first.erratum}" if first.erratum else ""
    return Rejected(
        instance=instance.name,
        rule=first.rule,
        reason=f"{first.reason}{against}",
        shortfall=None,
        nearest={},
        change=f"{first.change}, or leave out --strict-guide",
        source=first.source,
    )


def _letter(question: Question) -> Letter | None:
    """What section 8 states of one LLM; None where the work streams no tokens and trains nothing, or is of several."""
    if not isinstance(question.demand, Demand | TrainingDemand) or question.tenants:
        return None
    return letter_of(kind=question.kind, params=float(question.model.params_total), goal=question.policy.goals[0])


def _not_named(instance: Instance, question: Question) -> Rejected | None:
    letter = _letter(question)
    if letter is None or not letter.recommends or instance.name in letter.recommends:
        return None
    named = ", ".join(letter.recommends)
    return Rejected(
        instance=instance.name,
        rule="strict-flow",
        reason=f"by the letter of the guide: its flow ends at {letter.box}, which names {named}",
        shortfall=None,
        nearest={},
        change=f"{named}, or leave out --strict-guide",
        source=letter.source,
    )


def to_the_letter(
    deployments: Mapping[str, Sequence[Deployment]], question: Question
) -> tuple[dict[str, list[Deployment]], dict[str, Rejected]]:
    """Deployments at a precision and a split that the guide's flow states, and the sizes that have none such.

    Without `--strict-guide` all stay. A precision that the user asked for with `--min-precision` comes before the
    guide's.
    """
    letter = _letter(question) if question.policy.strict_guide else None
    if letter is None:
        return {name: list(ones) for name, ones in deployments.items()}, {}
    kept = {name: [one for one in ones if _stated(one, letter, question)] for name, ones in deployments.items()}
    return (
        {name: ones for name, ones in kept.items() if ones},
        {name: _unlike(name, deployments[name], letter) for name, ones in kept.items() if not ones},
    )


def _stated(one: Deployment, letter: Letter, question: Question) -> bool:
    family = format_facts(one.precision).family
    asked = question.policy.precision_stated or not letter.precision
    wanted = set(letter.precision) | (SIXTEEN_BITS if SIXTEEN_BITS & set(letter.precision) else set())
    tp = one.parallelism.tp
    return (asked or family in wanted) and letter.tp_least <= tp <= (letter.tp_most or tp)


def _unlike(name: str, ones: Sequence[Deployment], letter: Letter) -> Rejected:
    most = "" if letter.tp_most == letter.tp_least else f" to {letter.tp_most}" if letter.tp_most else " or more"
    split = f"tp {letter.tp_least}{most}" if letter.tp_source else "any split"
    feasible = sorted({f"tp{one.parallelism.tp} {one.precision}" for one in ones})
    return Rejected(
        instance=name,
        rule="strict-flow",
        reason=f"by the letter of the guide: {letter.box} states {' or '.join(letter.precision) or 'any format'} at "
        f"{split}; feasible here: {', '.join(feasible)}",
        shortfall=None,
        nearest={},
        change="leave out --strict-guide",
        source=letter.tp_source or letter.source,
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
