"""What can be said of a size before any layout is tried: left out by the question, retired, unknown, no accelerator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.capacity import buyable_terms, offered_regions
from chipwise.cost import best_quote
from chipwise.decide.advice import Excluded, NotJudged, Rejected
from chipwise.decide.question import OtherDemand
from chipwise.decide.strict import strictly_rejected
from chipwise.guide import feature_of

if TYPE_CHECKING:
    from chipwise.catalog import Instance
    from chipwise.cost import Quote
    from chipwise.decide.question import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """Sizes that go on to be tried, and those that are answered already."""

    tried: tuple[Instance, ...]
    excluded: tuple[Excluded, ...]
    rejected: tuple[Rejected, ...]
    not_judged: tuple[NotJudged, ...]


def matches(instance: Instance, pattern: str) -> bool:
    """Whether a word of `--only` or `--exclude` means this size: its name, its family, or a family prefix with `*`.

    The word is compared without regard to case.
    """
    word = pattern.lower()
    if word.endswith("*"):
        return instance.name.startswith(word[:-1])
    return word in {instance.name, instance.family, instance.chip}


def exclusion(instance: Instance, question: Question) -> str | None:
    """The flag by which the question leaves the size out; None where it does not."""
    policy = question.policy
    if policy.only and not any(matches(instance, word) for word in policy.only):
        return "--only"
    if any(matches(instance, word) for word in policy.exclude):
        return "--exclude"
    wanted = {"nvidia": "gpu", "neuron": "neuron"}.get(policy.vendor)
    if wanted is not None and instance.kind != wanted:
        return f"--vendor {policy.vendor}"
    return None


def screen(question: Question) -> Screened:
    """Part the catalog's sizes into those worth trying and those answered by a rule that needs no layout."""
    sizes = question.catalog.instances.values()
    answered = [(size, _answered(size, question)) for size in sizes]
    answers = [answer for _, answer in answered]
    return Screened(
        tried=tuple(size for size, answer in answered if answer is None),
        excluded=tuple(answer for answer in answers if isinstance(answer, Excluded)),
        rejected=tuple(answer for answer in answers if isinstance(answer, Rejected)),
        not_judged=tuple(answer for answer in answers if isinstance(answer, NotJudged)),
    )


def _answered(instance: Instance, question: Question) -> Excluded | Rejected | NotJudged | None:
    by = exclusion(instance, question)
    if by is not None:
        return Excluded(instance=instance.name, by=by)
    if instance.status == "retired":
        return _refused(instance, "retired", "retired: no region offers it", "a current family")
    if instance.kind == "cpu" and isinstance(question.demand, OtherDemand):
        return None
    if instance.kind == "cpu":
        why = "memory bandwidth: no source gives it, and token generation is bound by it"
        return NotJudged(instance=instance.name, lacks=why)
    if instance.lacks or instance.chip is None:
        return NotJudged(instance=instance.name, lacks=", ".join(instance.lacks) or "its accelerator")
    return strictly_rejected(instance, question)


def _refused(instance: Instance, rule: str, reason: str, change: str) -> Rejected:
    return Rejected(
        instance=instance.name, rule=rule, reason=reason, shortfall=None, nearest={}, change=change, source="catalog"
    )


def missing_need(instance: Instance, question: Question) -> Rejected | None:
    """The first feature of `--needs` that the size lacks, as its rejection; None where it has all."""
    chip = question.catalog.chips.get(instance.chip or "")
    if chip is None:
        wanted = ", ".join(question.policy.needs)
        return _refused(instance, f"needs-{wanted}", f"--needs {wanted}: no accelerator", "a GPU") if wanted else None
    for need in question.policy.needs:
        found = feature_of(need, instance, chip)
        if not found.has:
            reason = f"--needs {need}: {found.amount}"
            change = f"leave out --needs {need}"
            return Rejected(
                instance=instance.name, rule=f"needs-{need}", reason=reason, shortfall=None, nearest={}, change=change,
                source=found.source,
            )  # fmt: skip
    return None


def offer(instance: Instance, question: Question) -> Quote | Rejected | None:
    """What the size costs where it is offered; a rejection where it is not to be had; None without any price."""
    policy, catalog = question.policy, question.catalog
    here = offered_regions(catalog.regions_of(instance.name, priced=True), policy.regions)
    terms = buyable_terms(instance, policy.purchase, interruptible=policy.interruptible)
    if not here:
        anywhere = catalog.regions_of(instance.name, priced=True)
        reason = f"not offered in {_listed(policy.regions)}"
        change = f"--region {anywhere[0]}" if anywhere else "ask AWS: no region of the catalog lists it"
        return _refused(instance, "region", reason, change)
    if not terms:
        sold = ", ".join(sorted(instance.usage_classes)) or "no public term"
        wanted = policy.purchase if policy.purchase != "any" else "on-demand or as a Capacity Block"
        reason = f"not sold {wanted}; sold as {sold}"
        return _refused(instance, "purchase", reason, f"--purchase {min(instance.usage_classes, default='any')}")
    return best_quote(
        catalog.prices(instance.name),
        terms=terms,
        regions=here,
        user_usd_per_hour=policy.prices_usd_per_hour.get(instance.name),
        savings=catalog.spot_history(instance.name),
    )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
