"""The published schemas describe what is printed, and refuse what is not."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from chipwise.decide.advice import Advice
from chipwise.errors import ChipwiseError, KnowledgeError, UnknownNameError
from chipwise.report.json import as_json
from chipwise.report.schema import PUBLISHED, schema


def validate(name: str, answer: Any) -> None:
    Draft202012Validator(schema(name)).validate(answer)


@pytest.mark.parametrize("name", PUBLISHED)
def test_it_is_a_schema_and_whole(name: str) -> None:
    body = schema(name)
    Draft202012Validator.check_schema(body)
    pointed = set(_pointers(body))
    assert pointed <= {f"#/$defs/{one}" for one in body.get("$defs", {})}


def _pointers(body: Any) -> list[str]:
    if isinstance(body, dict):
        own = [body["$ref"]] if isinstance(body.get("$ref"), str) else []
        return own + [one for part in body.values() for one in _pointers(part)]
    return [one for part in body for one in _pointers(part)] if isinstance(body, list) else []


@pytest.fixture
def answer(advice: Advice) -> Any:
    """The sample plan; its model is short, since the doors check a real one."""
    return copy.deepcopy(as_json(advice))


def plan_schema() -> dict[str, Any]:
    body = schema("plan")
    body["$defs"]["model"] = {"type": "object"}
    return body


def test_the_sample_plan_is_valid(answer: Any) -> None:
    Draft202012Validator(plan_schema()).validate(answer)


def test_memory_and_estimate_are_valid_alone(answer: Any) -> None:
    validate("memory", answer["options"][0]["memory"])
    validate("estimate", answer["options"][0]["performance"])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("options", 0, "cost", "usd_per_hour"), 55.04),  # a cost that is a bare number
        (("options", 0, "memory", "per_chip", "surprise_bytes"), 1),  # per_chip holds additive terms only
        (("options", 0, "infrastructure", 0, "has"), "yes"),
        (("options", 0, "performance", "serving", "bound_by"), "magic"),
        (("rejected", 0, "shortfall"), 14.2),
        (("workload", "users"), 64),
        (("gpu_or_neuron", "verdict"), "amd"),
    ],
)
def test_a_wrong_plan_is_refused(answer: Any, path: tuple[Any, ...], value: Any) -> None:
    place = answer
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(ValidationError):
        Draft202012Validator(plan_schema()).validate(answer)


def test_a_missing_field_is_refused(answer: Any) -> None:
    del answer["not_judged"]
    with pytest.raises(ValidationError):
        Draft202012Validator(plan_schema()).validate(answer)


@pytest.mark.parametrize(
    "error",
    [
        UnknownNameError("chip", "h1000", ["h100-sxm"]),
        KnowledgeError("no bandwidth", why="none is printed", fix="wait"),
    ],
)
def test_an_error_is_valid(error: ChipwiseError) -> None:
    validate("error", error.as_json())


def test_an_unknown_schema_is_refused_with_near_names() -> None:
    with pytest.raises(UnknownNameError) as caught:
        schema("plans")
    assert caught.value.fix == "did you mean plan?"
