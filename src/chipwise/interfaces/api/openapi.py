"""The OpenAPI description of every verb, read off its flags and the published schemas."""

from __future__ import annotations

import json
from typing import Any

from chipwise.interfaces.cli.flags import Flag
from chipwise.interfaces.verbs import CONFIG, NAMES_MODELS, PUBLISHED, TOUCHES_FILES, command_of
from chipwise.report.schema import schema

EXAMPLES: dict[str, dict[str, Any]] = {
    "plan": {"model": "llama-3.3-70b", "for": "chat", "users": 64, "context": "8k", "ttft-p99": "1s"},
    "model": {"model": "llama-3.3-70b"},
    "memory": {"model": "llama-3.1-8b", "chip": "l40s", "context": "8k", "concurrency": 16},
    "estimate": {"model": "llama-3.1-8b", "chip": "l40s", "isl": 1000, "osl": 200, "concurrency": 8},
    "why": {"instance": "g6e.xlarge", "model": "llama-3.3-70b", "users": 8},
    "compare": {"first": "p5.48xlarge", "second": "trn2.48xlarge"},
    "plot": {"kind": "latency", "model": "llama-3.1-8b", "users": 8, "only": "g6e.xlarge"},
    "catalog/show": {"name": "p5en.48xlarge"},
    "guide/show": {"section": "8.1"},
    "explain": {"term": "ttft"},
}
"""One question a verb; the tests ask them."""


def operation(verb: str) -> dict[str, Any]:
    """What OpenAPI says of a verb: its description, body and responses."""
    command = command_of(verb)
    return {
        "summary": verb,
        "description": command.help or "",
        "responses": {
            "200": {"description": "The answer, as the command prints it.", "content": _json(_answer(verb))},
            "304": {"description": "The facts and the question are those of the entity tag sent."},
            "default": {"description": "No answer.", "content": {"application/problem+json": {"schema": _PROBLEM}}},
        },
    }


_ERROR = {
    "type": "object",
    "required": ["what", "why", "fix", "family"],
    "properties": {name: {"type": "string"} for name in ("what", "why", "fix", "family")},
}
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "error"],
    "properties": {
        **{name: {"type": "string"} for name in ("type", "title", "detail")},
        "status": {"type": "integer"},
        "error": _ERROR,
    },
}


def _json(content: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": content}}


def _answer(verb: str) -> dict[str, Any]:
    named = [{"$ref": f"#/components/schemas/{name}"} for name in PUBLISHED[verb]]
    return {"anyOf": named} if named else {"type": "object"}


def body_of(verb: str) -> dict[str, Any]:
    """The request body of a verb: its arguments and flags, each with its help."""
    asked = body_schema(verb)
    content: dict[str, Any] = {"schema": asked}
    if verb in EXAMPLES:
        content["example"] = EXAMPLES[verb]
    return {"required": bool(asked["required"]), "content": {"application/json": content}}


def parameters_of(verb: str) -> list[dict[str, Any]]:
    """The same as parameters of a query."""
    fields = body_schema(verb)
    example = EXAMPLES.get(verb, {})
    return [
        {
            "name": name,
            "in": "query",
            "required": name in fields["required"],
            "schema": one,
            **({"example": example[name]} if name in example else {}),
        }
        for name, one in fields["properties"].items()
        if name != CONFIG
    ]


def body_schema(verb: str) -> dict[str, Any]:
    """The JSON Schema of a body; what names a file of the server is left out, as most servers refuse it."""
    command = command_of(verb)
    places = {place.field: {"type": "string", "minLength": 1, "description": "MODEL"} for place in command.places}
    flags = {flag.name.lstrip("-"): _flag(flag) for flag in command.flags if flag.key not in TOUCHES_FILES}
    required = [place.field for place in command.places if place.required and place.field not in NAMES_MODELS]
    named = NAMES_MODELS & {*places, *flags}
    config = {CONFIG: {"type": "object", "description": "The content of a config.json, in place of model."}}
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": {**places, **flags, **(config if named else {})},
    }


def _flag(flag: Flag) -> dict[str, Any]:
    if flag.parse is None:
        return {"type": "boolean", "description": flag.help}
    choices = flag.metavar.split("|")
    one: dict[str, Any] = {"type": ["string", "number"]}
    if len(choices) > 1 and all(part.islower() for part in choices):
        one = {"type": "string", "enum": choices}
    if flag.many is not None:
        one = {"type": "array", "items": {"type": "string"}}
    return {**one, "description": flag.help}


def components() -> dict[str, Any]:
    """Every published schema under its name, with its definitions beside it."""
    found: dict[str, Any] = {}
    for name in sorted({one for names in PUBLISHED.values() for one in names}):
        text = json.dumps(schema(name)).replace("#/$defs/", f"#/components/schemas/{name}.")
        body = json.loads(text)
        inner = body.pop("$defs", {})
        found[name] = {key: value for key, value in body.items() if not key.startswith("$")}
        found |= {f"{name}.{key}": value for key, value in inner.items()}
    return {"schemas": found}
