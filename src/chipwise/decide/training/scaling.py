"""How far a fleet of one size may grow, and which of its fleets meet the bars on time and money."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.decide.failures import Failure
from chipwise.decide.training.facts import scaling_floor_fraction
from chipwise.units import show_seconds, show_usd
from chipwise.workload import load_preset

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from chipwise.decide.question import Question
    from chipwise.decide.training.deployment import TrainingDeployment


LOOSER = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """What a run must not take longer or cost more than; `whose` says who set it."""

    deadline_s: float | None
    budget_usd: float | None = None
    whose: str = ""

    def excess(self, fleet: TrainingDeployment) -> float:
        """How many times over the nearer of the bars a run is; at most 1 where it meets them."""
        usd = fleet.bar_usd()
        late = 0.0 if self.deadline_s is None else fleet.duration_s.mid / self.deadline_s
        dear = 0.0 if self.budget_usd is None or usd is None else usd / self.budget_usd
        return max(late, dear)


def parallel_efficiency_fraction(*, smallest_s: float, smallest: int, larger_s: float, larger: int) -> float:
    """Instance-seconds of the smallest fleet over those of a larger one: 1 where twice as many take half as long.

    >>> parallel_efficiency_fraction(smallest_s=1000.0, smallest=2, larger_s=500.0, larger=8)
    0.5
    """
    return smallest_s * smallest / (larger_s * larger)


def user_bars(question: Question) -> Bars:
    """The deadline that the user set; a budget of the user's is held against every option later."""
    origin = question.workload.get("deadline_s", {}).get("from")
    return Bars(deadline_s=None if origin == "preset" else question.training.deadline_s)


def default_bars(question: Question) -> Bars | None:
    """The preset's own deadline or budget: a bar only where the goal of that bar comes first of two, and unset.

    A preset rejects nothing by itself: one goal alone orders and does not filter.
    """
    if len(question.policy.goals) < 2 or question.purpose == "estimate":
        return None
    preset, first = load_preset(question.purpose), question.policy.goals[0]
    whose = f"of the preset {preset.name}, as {first} comes first"
    if first == "time-to-train" and user_bars(question).deadline_s is None and question.training.deadline_s:
        return Bars(deadline_s=question.training.deadline_s, whose=whose)
    baseline_usd = preset.number("baseline_budget_usd")
    if first == "training-cost" and question.budget_usd is None and baseline_usd:
        return Bars(deadline_s=None, budget_usd=baseline_usd, whose=whose)
    return None


def loosened(bars: Bars, fleets: Iterable[TrainingDeployment], question: Question) -> Bars:
    """A preset's bars, twice what the nearest run needs where none meets them: nobody asked for them.

    Only runs that the user's own bars allow are looked at.
    """
    own, budget = user_bars(question), question.budget_usd
    allowed = [one for one in fleets if own.excess(one) <= 1 and not _over(one, budget)]
    nearest = min((bars.excess(one) for one in allowed), default=1.0)
    if nearest <= 1:
        return bars
    times = LOOSER * nearest
    return Bars(
        deadline_s=bars.deadline_s and bars.deadline_s * times,
        budget_usd=bars.budget_usd and bars.budget_usd * times,
        whose=f"{bars.whose}, {times:.3g} times as loose: no run meets it",
    )


def _over(fleet: TrainingDeployment, budget_usd: float | None) -> bool:
    usd = fleet.bar_usd()
    return budget_usd is not None and usd is not None and usd > budget_usd


def pays(fleet: TrainingDeployment) -> bool:
    """Whether a fleet is worth its size: it keeps the least efficiency, the start of the run counted.

    A decision of ours: beyond it each instance more costs more than twice what the first ones did for the same work.
    """
    return fleet.efficiency_fraction >= scaling_floor_fraction()


def chosen(fleets: Sequence[TrainingDeployment], bars: Sequence[Bars]) -> list[TrainingDeployment]:
    """The fleets of one size that pay and meet the bars; where none that pays does, the smallest that meets them."""
    met = [one for one in fleets if all(bar.excess(one) <= 1 for bar in bars)]
    return [one for one in met if pays(one)] or met[:1]


def bar_failure(fleets: Sequence[TrainingDeployment], bars: Sequence[Bars]) -> Failure:
    """How far the fleet that comes nearest to the bars is from them."""
    nearest = min(fleets, key=lambda one: max(bar.excess(one) for bar in bars))
    worst = max(bars, key=lambda bar: bar.excess(nearest))
    times, took, usd = worst.excess(nearest), nearest.duration_s.mid, nearest.bar_usd()
    on, whose = f"on {nearest.instances}", f" {worst.whose}" if worst.whose else ""
    place = {"instances": nearest.instances, "days": took / 86400}
    if worst.deadline_s is not None:
        return Failure(
            stage="slo", distance=times, source="training prediction", nearest=place,
            reason=f"takes {show_seconds(took)} {on} (deadline {show_seconds(worst.deadline_s)}{whose})",
            change=f"a deadline {times:.2f} times as long, a larger --global-batch (what a step can be shared by), "
            "or a faster size",
            shortfall={"value": took - worst.deadline_s, "unit": "s"},
        )  # fmt: skip
    over = (usd or 0.0) - (worst.budget_usd or 0.0)
    return Failure(
        stage="slo", distance=times, source="price list", nearest=place,
        reason=f"costs {show_usd(usd or 0.0)} {on} (budget {show_usd(worst.budget_usd or 0.0)}{whose})",
        change=f"--budget {times:.2f} times as large", shortfall={"value": over, "unit": "usd"},
    )  # fmt: skip
