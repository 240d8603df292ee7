"""GPU or Neuron: the guide's signals for one question, each with its pull, its reason and its line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chipwise.guide.tables import cite, limit, table

TRANSFORMERS = frozenset({"dense-llm", "moe-llm", "encoder"})
BEYOND_TEXT = frozenset({"vision-language", "vision", "diffusion", "cnn", "audio"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuronQuestion:
    """What the signals look at.

    `architecture` is the model's class; `support` the best status of its Neuron stack on any chip on offer (ok,
    beta, unsupported, unknown), with `support_why` and `support_source`; `team` cuda, neuron or none; `goal` the
    first goal; `stability` exploring (models still change) or steady (one is to stay). None where it was not said:
    that signal is then silent.
    """

    architecture: str
    training: bool
    support: str
    support_why: str
    support_source: str
    custom_kernels: bool = False
    ttft_p99_s: float | None = None
    team: str | None = None
    timeline_weeks: float | None = None
    goal: str | None = None
    stability: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One signal: what it is, whom it favours (nvidia, neuron, either), why, and who says so."""

    signal: str
    points_to: str
    why: str
    source: str


def neuron_signals(question: NeuronQuestion) -> tuple[Signal, ...]:
    """The signals that speak for or against Neuron here.

    >>> asked = NeuronQuestion(architecture="dense-llm", training=False, support="ok", support_why="recipe",
    ...                        support_source="engines", team="cuda", timeline_weeks=1)
    >>> [(one.signal, one.points_to) for one in neuron_signals(asked)][-2:]
    [('team', 'nvidia'), ('timeline', 'nvidia')]
    """
    return tuple(_signal(name, case, question) for name, case in _cases(question))


def _signal(name: str, case: str, question: NeuronQuestion) -> Signal:
    row = next(row for row in table("signals") if (row["signal"], row["case"]) == (name, case))
    own = row["why"]
    return Signal(
        signal=name,
        points_to=row["points_to"],
        why=own or question.support_why,
        source=cite(row["where"]) if own else f"{question.support_source}; {cite(row['where'])}",
    )


def _cases(question: NeuronQuestion) -> Iterator[tuple[str, str]]:
    """The signals that speak, each with the case that holds."""
    yield "workload", _workload(question)
    yield "support today", question.support
    yield "custom kernels", "yes" if question.custom_kernels else "no"
    yield "multimodality", "yes" if question.architecture in BEYOND_TEXT else "no"
    if question.ttft_p99_s is not None and question.ttft_p99_s < limit("ttft_fast_s"):
        yield "TTFT below 100 ms", "yes"
    if question.team is not None:
        yield "team", question.team
    if question.timeline_weeks is not None:
        yield "timeline", "short" if question.timeline_weeks < limit("ramp_weeks") else "long"
    if question.goal in {"cost", "training-cost"}:
        yield "cost posture", "cost"
    if question.stability is not None:
        yield "stability", question.stability


def _workload(question: NeuronQuestion) -> str:
    if question.architecture not in TRANSFORMERS:
        return "other"
    return "training" if question.training else "transformer-serving"
