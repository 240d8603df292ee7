"""The OpenAPI description of every verb, read off its flags and the published schemas."""

from __future__ import annotations

import json
from typing import Any

from chipwise.interfaces.api.forms import EVENTS, ZIP, ZIPPED
from chipwise.interfaces.cli.flags import Flag
from chipwise.interfaces.sent import CONFIG
from chipwise.interfaces.verbs import ALWAYS, NAMES_MODELS, PUBLISHED, TOUCHES_FILES, command_of, sent_with
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
    "deploy/lint": {
        "manifests": {"service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: vllm}\n"},
    },
    "guide/check": {"only": ["8.1*"]},
    "guide/ask": {"answers": {"model": "llama-3.1-8b", "work": "serving"}},
    "explain": {"term": "ttft"},
    "schema": {"name": "plan"},
}
"""One question a verb; the tests ask them."""


def operation(verb: str) -> dict[str, Any]:
    """What OpenAPI says of a verb: its description, body and responses."""
    command = command_of(verb)
    return {
        "summary": verb,
        "description": command.help or "",
        "responses": {
            "200": {"description": "The answer, as the command prints it.", "content": _forms(verb)},
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


def _forms(verb: str) -> dict[str, Any]:
    """JSON; events for one who asks for them; a zip of the files of manifests."""
    named = [{"$ref": f"#/components/schemas/{name}"} for name in PUBLISHED[verb]]
    answer = {"anyOf": named} if named else {"type": "object"}
    events = {"type": "string", "description": "progress with words; then answer, or problem."}
    files = {ZIP: {"schema": {"type": "string", "format": "binary"}}} if verb in ZIPPED else {}
    return {"application/json": {"schema": answer}, EVENTS: {"schema": events}, **files}


def body_of(verb: str) -> dict[str, Any]:
    """The request body of a verb: its arguments and flags, each with its help."""
    asked = body_schema(verb)
    content: dict[str, Any] = {"schema": asked}
    if verb in EXAMPLES:
        content["example"] = EXAMPLES[verb]
    return {"required": bool(asked["required"]), "content": {"application/json": content}}


def parameters_of(verb: str) -> list[dict[str, Any]]:
    """The same as parameters of a query; what is sent along is a text there, as it stands or packed."""
    fields = body_schema(verb)
    example = EXAMPLES.get(verb, {})
    sent = sent_with(verb)
    words = f"{sent.about} As JSON, or deflated and in base64url." if sent else ""
    as_text = {sent.name: {"type": "string", "description": words}} if sent else {}
    return [
        {
            "name": name,
            "in": "query",
            "required": name in fields["required"],
            "schema": as_text.get(name, one),
            **({"example": example[name]} if name in example and name not in as_text else {}),
        }
        for name, one in fields["properties"].items()
    ]


def body_schema(verb: str) -> dict[str, Any]:
    """The JSON Schema of a body; what names a file of the server is left out, as most servers refuse it."""
    command, sent = command_of(verb), sent_with(verb)
    instead = {sent.field} if sent and sent is not CONFIG else set()
    hidden = TOUCHES_FILES | instead | ALWAYS.get(verb, {}).keys()
    places = {
        place.field: {"type": "string", "minLength": 1, "description": place.field.upper()}
        for place in command.places
        if place.field not in hidden
    }
    flags = {flag.name.lstrip("-"): _flag(flag) for flag in command.flags if flag.key not in hidden}
    required = [one.field for one in command.places if one.required and one.field in places.keys() - NAMES_MODELS]
    along = {sent.name: {"type": "object", "description": sent.about}} if sent else {}
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [*required, *(along if instead else ())],
        "properties": {**places, **flags, **along},
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
