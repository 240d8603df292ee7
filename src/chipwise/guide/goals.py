"""The six goals: what each measures, costs and sets, and the sizes the guide names for it by model scale."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.guide.tables import cite, row_named, table


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalCard:
    """One goal of the guide."""

    goal: str
    number: int
    question: str
    scenarios: str
    metrics: str
    direction: str
    tradeoff: str
    nvidia: tuple[str, ...]
    neuron: tuple[str, ...]
    precision: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a goal sets: max_num_seqs, precision, spot, …; `erratum` is the claim that corrects the guide, if any."""

    goal: str
    setting: str
    value: str
    why: str
    source: str
    erratum: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalSizes:
    """The sizes the guide names for a goal at one scale of model."""

    goal: str
    scale: str
    nvidia: tuple[str, ...]
    neuron: tuple[str, ...]
    note: str
    source: str


def goal_card(goal: str) -> GoalCard:
    """The goal of that name.

    Raises:
        UnknownNameError: no such goal.

    >>> goal_card("latency").tradeoff
    'less throughput, higher cost, smaller batches'
    """
    row = row_named("goals", "goal", goal)
    return GoalCard(
        goal=goal,
        number=int(row["number"]),
        question=row["question"],
        scenarios=row["scenarios"],
        metrics=row["metrics"],
        direction=row["direction"],
        tradeoff=row["tradeoff"],
        nvidia=tuple(row["nvidia"].split()),
        neuron=tuple(row["neuron"].split()),
        precision=tuple(row["precision"].split()),
        source=cite(row["where"]),
    )


def goal_settings(goal: str) -> tuple[Setting, ...]:
    """What a goal sets, in the guide's order.

    >>> [one.value for one in goal_settings("latency") if one.setting == "spot"]
    ['no']
    """
    return tuple(
        Setting(
            goal=goal,
            setting=row["setting"],
            value=row["value"],
            why=row["why"],
            source=cite(row["where"]),
            erratum=row["erratum"] or None,
        )
        for row in table("goal_settings")
        if row["goal"] == goal
    )


def goal_sizes(goal: str, params: float) -> tuple[GoalSizes, ...]:
    """The sizes the guide names for a goal and a model of that many parameters; several rows may speak of it.

    >>> [one.nvidia for one in goal_sizes("latency", 70.6e9)]
    [('p5.48xlarge', 'p5e.48xlarge')]
    """
    return tuple(
        GoalSizes(
            goal=goal,
            scale=row["scale"],
            nvidia=tuple(row["nvidia"].split()),
            neuron=tuple(row["neuron"].split()),
            note=row["note"],
            source=cite(row["where"]),
        )
        for row in table("goal_instances")
        if row["goal"] == goal and float(row["from_params"]) <= params < float(row["below_params"] or "inf")
    )
