"""The flows as one questionnaire: which question comes next, what an answer sets, and the way taken so far.

Pure: a door asks, collects answers by question id, and hands the flags of `chipwise plan` on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from chipwise.errors import InputError, UnknownNameError
from chipwise.guide.flow import box
from chipwise.guide.tables import Row, cite, table

Answers = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One answer to choose: `sets` is the flag it gives, `name=value`, or empty."""

    key: str
    keys: tuple[str, ...]
    label: str
    explains: str
    sets: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question. `name` is its key in an answers file; a `scale` is read from the model, not asked."""

    id: str
    name: str
    kind: Literal["text", "choice", "scale"]
    text: str
    help: str
    flag: str
    default: str
    when: str
    choices: tuple[Choice, ...]

    def choice(self, answer: str) -> Choice:
        """The choice of that key.

        Raises:
            UnknownNameError: no such answer; proposes near ones, or all.
        """
        found = next((one for one in self.choices if answer in one.keys), None)
        if found is None:
            keys = [one.key for one in self.choices]
            raise UnknownNameError(f"answer to {self.name}", answer, keys, listing=f"choose {', '.join(keys)}")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """One step of the way: the question, the answer in words, what it means, and its line."""

    id: str
    question: str
    answer: str
    explains: str
    source: str


@cache
def questions() -> tuple[Asked, ...]:
    """Every question, in the order asked."""
    return tuple(_asked(row) for row in table("ask"))


def _asked(row: Row) -> Asked:
    kind = row["kind"]
    flow_box = None if kind == "text" else box(row["id"])
    return Asked(
        id=row["id"],
        name=row["name"],
        kind="text" if kind == "text" else "choice" if kind == "choice" else "scale",
        text=flow_box.text if flow_box else row["text"],
        help=row["help"],
        flag=row["flag"],
        default=row["default"],
        when=row["when"],
        choices=_choices(row["id"]) if flow_box else (),
    )


def _choices(name: str) -> tuple[Choice, ...]:
    return tuple(
        Choice(
            key=edge.keys[0],
            keys=edge.keys,
            label=edge.label,
            explains=edge.explains,
            sets=edge.sets,
            source=cite(edge.where),
        )
        for edge in box(name).edges
    )


def next_question(answers: Answers) -> Asked | None:
    """The first question that applies and has no answer yet; None at the end.

    >>> next_question({}).id, next_question({"model": "m", "8.1": "training"}).id
    ('model', '1-training')
    """
    return next((one for one in questions() if one.id not in answers and _applies(one, answers)), None)


def _applies(asked: Asked, answers: Answers) -> bool:
    if not asked.when:
        return True
    pairs = (condition.strip().partition("=") for condition in asked.when.split(";"))
    return any(answers.get(name) in keys.split() for name, _, keys in pairs)


def without_last(answers: Answers) -> dict[str, str]:
    """The answers with the last one given by hand taken back, and what was read from the model after it.

    >>> without_last({"model": "m", "8.1": "serving", "8.3": "small"})
    {'model': 'm'}
    """
    kept = list(answers)
    scales = {one.id for one in questions() if one.kind == "scale"}
    while kept and kept[-1] in scales:
        kept.pop()
    return {name: answers[name] for name in kept[:-1]}


def plan_flags(answers: Answers) -> dict[str, str]:
    """The flags of `chipwise plan` that the answers give, without dashes; `model` aside. Later ones win.

    >>> plan_flags({"8.1": "serving", "ask-serving": "chat", "8.8": "latency", "ask-second": "cost", "users": "64"})
    {'for': 'chat', 'goal': 'latency,cost', 'users': '64'}
    """
    flags: dict[str, str] = {}
    for asked in questions():
        answer = answers.get(asked.id, "")
        if asked.kind == "text":
            if asked.flag and answer.strip():
                flags[asked.flag] = answer.strip()
        elif asked.kind == "choice" and answer and asked.choice(answer).sets:
            name, _, value = asked.choice(answer).sets.partition("=")
            flags[name] = value
    second = flags.pop("second", None)
    if second and second != flags.get("goal"):
        flags["goal"] = f"{flags['goal']},{second}" if "goal" in flags else second
    return flags


def way(answers: Answers) -> tuple[Passed, ...]:
    """The way taken, question by question."""
    return tuple(_passed(asked, answers[asked.id]) for asked in questions() if answers.get(asked.id))


def _passed(asked: Asked, answer: str) -> Passed:
    if asked.kind == "text":
        return Passed(id=asked.id, question=asked.text, answer=answer, explains="", source="")
    chosen = asked.choice(answer)
    explains = f"{asked.help}: {chosen.explains}" if asked.kind == "scale" else chosen.explains
    return Passed(id=asked.id, question=asked.text, answer=chosen.label, explains=explains, source=chosen.source)


def answer_from(asked: Asked, given: Mapping[str, str]) -> str:
    """The answer of an answers file to one question, or its default.

    Raises:
        UnknownNameError: a choice that is none.
    """
    text = given.get(asked.name, asked.default)
    return asked.choice(text).key if asked.kind == "choice" else text


def check_names(given: Mapping[str, str], answers: Answers) -> None:
    """That every name of an answers file is a question, and one that was asked on the way.

    Raises:
        UnknownNameError: no such question.
        InputError: a question that the other answers rule out.
    """
    known = {one.name for one in questions() if one.kind != "scale"}
    asked = {one.name for one in questions() if one.id in answers}
    for name in given:
        if name not in known:
            raise UnknownNameError("question", name, known, listing=f"known: {', '.join(sorted(known))}")
        if name not in asked:
            raise InputError(f"{name} is not asked here", why="the other answers rule it out", fix="leave it out")
