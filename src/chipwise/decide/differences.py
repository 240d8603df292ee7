"""Why a size is no option, as one structured reason: its kind, and by how much."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from chipwise.decide.advice import AlsoFeasible, Behind, Excluded, NotJudged, Rejected
from chipwise.decide.bars import COST_GOALS
from chipwise.decide.deployment import standing_of
from chipwise.decide.rank import beats
from chipwise.decide.training.deployment import TrainingDeployment
from chipwise.units import show_usd

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chipwise.decide.deployment import Deployment
    from chipwise.decide.question import Question

Other = AlsoFeasible | Rejected | NotJudged | Excluded
_KIND_OF_RULE = {"memory": "memory", "slo": "slo", "region": "region", "purchase": "region", "budget": "price"}
"""What is not named here is a matter of what hardware, engine or the guide's letter supports."""


def behind(one: Deployment, options: Sequence[Deployment], question: Question) -> tuple[Behind, str]:
    """What keeps a feasible size behind the options, and the same in words.

    It is behind the first option that beats it on the ordering goal or costs less; where none does, behind the
    option of its own chip, of which only one is shown.
    """
    twin = next((other for other in options if other.instance.chip == one.instance.chip), options[0])
    rival = next((other for other in options if _decides(other, one, question)), twin)
    first, second = standing_of(rival, question), standing_of(one, question)
    goal, than = question.order_by, rival.instance.name
    if not math.isfinite(second.metric.mid) and math.isfinite(first.metric.mid):
        apart = Behind(kind="support", value=None, unit=None, than=than)
        return apart, f"{_aside(one)}; not so {than}"
    if beats(first.metric, second.metric):
        kind, unit = "price" if goal in COST_GOALS else "slo", one.metric_unit(question)
        apart = Behind(kind=kind, value=second.metric.mid - first.metric.mid, unit=unit, than=than)
        return apart, f"{goal}: {second.metric.mid / first.metric.mid:.2f} times {than}"
    return _tied(first.usd, second.usd, than, question)


def _aside(one: Deployment) -> str:
    """By which rule a deployment stands behind whatever it costs."""
    rules = [rule.rule for rule in one.discouraged_by] if isinstance(one, TrainingDeployment) else []
    return f"discouraged ({', '.join(rules)})" if rules else "no price"


def _decides(leader: Deployment, one: Deployment, question: Question) -> bool:
    """Whether the goal or the cost tells the two apart."""
    first, second = standing_of(leader, question), standing_of(one, question)
    dearer = first.usd is not None and (second.usd is None or second.usd > first.usd)
    return beats(first.metric, second.metric) or dearer


def _tied(first: float | None, second: float | None, than: str, question: Question) -> tuple[Behind, str]:
    """Of what ties on the goal, the cheaper comes first."""
    unit = "USD/h" if question.kind == "inference" else "USD"
    goal = question.order_by
    if second is None or first is None:
        return Behind(kind="price", value=None, unit=unit, than=than), f"ties on {goal}; no price"
    apart = Behind(kind="price", value=second - first, unit=unit, than=than)
    if second > first:
        return apart, f"ties on {goal}; {show_usd(second - first)} dearer than {than}"
    return apart, f"same chip or a tie on {goal}; the options shown differ more"


def difference(row: Other) -> dict[str, Any]:
    """Why a size that the guide names is no option, as its own row in the answer says it.

    Returns:
        `kind`, `id` (the size), `value` in `unit`: by how much it is behind or what it lacks, where that is a
        number; else the rule it fails, or what is not known of it. `why` says it in words.
    """
    kind, value, unit, why = _REASONS[type(row)](row)
    return {"kind": kind, "id": row.instance, "value": value, "unit": unit, "why": why}


_Reason = tuple[str, float | str, str | None, str]


def _feasible(row: AlsoFeasible) -> _Reason:
    apart = row.behind
    value = row.behind_because if apart.value is None else apart.value
    unit = None if apart.value is None else apart.unit
    return apart.kind, value, unit, f"feasible, behind the options: {row.behind_because}"


def _rejected(row: Rejected) -> _Reason:
    kind = _KIND_OF_RULE.get(row.rule, "support")
    if row.shortfall is None:
        return kind, row.rule, None, row.reason
    return kind, row.shortfall["value"], str(row.shortfall["unit"]), row.reason


def _not_judged(row: NotJudged) -> _Reason:
    kind = "price" if row.lacks.startswith("a price") else "support"
    return kind, row.lacks, None, f"not judged: lacks {row.lacks}"


def _excluded(row: Excluded) -> _Reason:
    return "support", row.by, None, f"left out by the question: {row.by}"


_REASONS: dict[type[Other], Callable[[Any], _Reason]] = {
    AlsoFeasible: _feasible,
    Rejected: _rejected,
    NotJudged: _not_judged,
    Excluded: _excluded,
}
