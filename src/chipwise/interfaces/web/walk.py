"""The guide's flows walked in a browser: every step is an address that holds the answers given so far."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from urllib.parse import urlencode

from chipwise.errors import ChipwiseError
from chipwise.guide import Asked, flow_of, model_scale, next_question, plan_flags, section_list, way
from chipwise.guide.ask import Passed, questions
from chipwise.guide.flow import boxes
from chipwise.report.flowchart import svg


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One answer that can be chosen, and the address that it leads to."""

    label: str
    explains: str
    source: str
    query: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Where a walk stands. `asked` is None at its end, where `plan` is the question it has made.

    `flow` is the drawing of the flow that the question belongs to, empty for one that belongs to none; `answers`
    are carried along by the form of a text question; `problem` says what is wrong with the text given.
    """

    asked: Asked | None
    ways: tuple[Way, ...]
    flow: str
    passed: tuple[Passed, ...]
    back: str | None
    answers: Mapping[str, str]
    plan: str
    problem: str


def next_step(given: Mapping[str, str]) -> Step:
    """The step after the answers of an address; a wrong answer is asked again.

    >>> next_step({"model": "llama-3.1-8b"}).ways[0].query
    'model=llama-3.1-8b&8.1=training'
    """
    answers, problem = _taken(given)
    asked = next_question(answers)
    kept = {name: answers[name] for name in answers if not _is_scale(name)}
    ways = () if asked is None or asked.kind == "text" else _ways(asked, kept)
    return Step(
        asked=asked,
        ways=ways,
        flow=_flow(asked, answers, _links(asked, kept, ways)),
        passed=way(answers),
        back=urlencode(dict(list(kept.items())[:-1])) if kept else None,
        answers=kept,
        plan=urlencode({"model": answers.get("model", ""), **plan_flags(answers)}),
        problem=problem,
    )


def _taken(given: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """The answers that stand, in the order of the questions, and what is wrong with the first that does not."""
    answers: dict[str, str] = {}
    while (asked := next_question(answers)) is not None:
        if asked.kind != "scale" and asked.id not in given:
            break
        try:
            answers[asked.id] = _answer(asked, given, answers)
        except ChipwiseError as error:
            return answers, f"{error.what}: {error.fix}"
    return answers, ""


def _answer(asked: Asked, given: Mapping[str, str], answers: Mapping[str, str]) -> str:
    if asked.kind == "scale":
        return _scale(answers["model"])
    text = given[asked.id].strip()
    if asked.kind == "choice":
        return asked.choice(text).key
    if asked.id == "model":
        _scale(text or asked.default)
    return text or asked.default


def _scale(model: str) -> str:
    from chipwise.interfaces.verbs import Leave, check_model
    from chipwise.model import load_model

    check_model(model, Leave())
    return model_scale(float(load_model(model).params_total))


def _is_scale(name: str) -> bool:
    return next(one for one in questions() if one.id == name).kind == "scale"


def _ways(asked: Asked, kept: Mapping[str, str]) -> tuple[Way, ...]:
    return tuple(
        Way(
            label=one.label,
            explains=one.explains,
            source=one.source,
            query=urlencode({**kept, asked.id: one.key}),
        )
        for one in asked.choices
    )


def _links(asked: Asked | None, kept: Mapping[str, str], ways: tuple[Way, ...]) -> dict[str, str]:
    """Box to address: a box passed asks again, a box that an answer leads to gives that answer."""
    names = list(kept)
    links = {name: f"/walk?{urlencode(dict(list(kept.items())[:at]))}" for at, name in enumerate(names)}
    box = boxes().get(asked.id) if asked else None
    for choice, one in zip(asked.choices if asked else (), ways, strict=False):
        edge = box.answer(choice.key) if box else None
        if edge is not None:
            links.setdefault(edge.end, f"/walk?{one.query}")
    return links


def _flow(asked: Asked | None, answers: Mapping[str, str], links: Mapping[str, str]) -> str:
    """The drawing of the flow that the question stands in, the boxes passed and asked lit, with where boxes lead."""
    if asked is None or asked.id not in boxes():
        return ""
    return flow_drawn(boxes()[asked.id].flow, lit={*answers, asked.id}, links=links)


def flow_drawn(section: str, lit: Collection[str] = (), links: Mapping[str, str] | None = None) -> str:
    """The drawing of a section's flow; empty where it has none."""
    if section not in {one["section"] for one in section_list() if one["flow"]}:
        return ""
    return svg(flow_of(section), f"Section {section} of the guide", lit=lit, links=links)
