"""Several models in one question: their names, what part of the load each takes, and the question as a whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.advisor.models import model_object
from chipwise.decide.infrastructure import SHARED_PRESET, isolation_of
from chipwise.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from chipwise.advisor.request import Request
    from chipwise.decide import Question

MOST_TENANTS = 10
"""Models for which every grouping is looked at."""
OWN = ("users", "rate_per_s", "isl_tokens", "osl_tokens", "context_tokens", "ttft_p99_s", "tpot_p99_s")
"""What a model may have of its own."""
_LOADS = ("users", "rate_per_s", "throughput_tokens_per_s")


def model_names(reference: str) -> tuple[str, ...]:
    """The models that a MODEL names: parted by commas, but for a path and for the settings of `params:`.

    >>> model_names("llama-3.1-8b,qwen3-0.6b")
    ('llama-3.1-8b', 'qwen3-0.6b')
    >>> model_names("params:8b,layers=32,qwen3-0.6b")
    ('params:8b,layers=32', 'qwen3-0.6b')
    """
    if "," not in reference or Path(reference).exists():
        return (reference,)
    names: list[str] = []
    for part in (text.strip() for text in reference.split(",")):
        if "=" in part and names:
            names[-1] = f"{names[-1]},{part}"
        elif part:
            names.append(part)
    return tuple(names) or (reference,)


def for_tenants(request: Request) -> Request:
    """The request for several models: its preset is that of tenants.

    Raises:
        InputError: another preset, a model named twice, more models than are grouped exactly, settings of a model
            that is not named, or settings that are no part of a model's load.
    """
    names = model_names(request.model)
    if request.purpose not in {None, SHARED_PRESET}:
        raise InputError(
            f"--for {request.purpose} does not go with {len(names)} models",
            why="models that share devices are planned together, each with its part of the load",
            fix=f"--for {SHARED_PRESET}, or one model at a time",
        )
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(
            f"{twice[0]} is named twice",
            why="copies of one model are its replicas",
            fix="name it once, with more users",
        )
    if len(names) > MOST_TENANTS:
        raise InputError(
            f"{len(names)} models are too many", why=f"every grouping of up to {MOST_TENANTS} is looked at",
            fix="plan them in groups",
        )  # fmt: skip
    for name, own in request.per_model.items():
        if name not in names:
            raise UnknownNameError("model of this question", name, names, listing=", ".join(names))
        wrong = [one for one in own if one not in OWN]
        if wrong:
            raise InputError(
                f"{wrong[0]} is no setting of {name} alone", why="it holds for all models", fix="write it once for all"
            )
    return replace(request, purpose=SHARED_PRESET)


def shares_of(request: Request, names: Sequence[str], whole: Question) -> Iterator[Request]:
    """One request a model: totals are shared equally, unless the model has figures of its own.

    At least one request is in flight to each.

    Args:
        request: for all.
        names: the models.
        whole: the question about one of them, with the preset's totals filled in.
    """
    totals = {name: getattr(request, name) for name in _LOADS}
    if all(total is None for total in totals.values()):
        totals["users"] = whole.serving.users
    parts = {name: None if total is None else total / len(names) for name, total in totals.items()}
    if parts["users"] is not None:
        parts["users"] = max(parts["users"], 1.0)
    for name in names:
        own = dict(request.per_model.get(name, {}))
        load = dict.fromkeys(_LOADS) if {"users", "rate_per_s"} & own.keys() else parts
        yield replace(request, model=name, per_model={}, **{**load, **own})


def joint_question(request: Request, whole: Question, tenants: Sequence[Question]) -> Question:
    """The question as a whole: the largest model speaks for all where one must."""
    largest = max(tenants, key=lambda one: one.model.params_total)
    loads = {one.model.name: _load(one) for one in tenants}
    entries: dict[str, dict[str, Any]] = {
        "models": {"value": [one.model.name for one in tenants], "from": "user"},
        "shares": {"value": loads, "from": "user" if request.per_model else "preset"},
        "isolation": {"value": isolation_of(whole), "from": "user" if request.isolation else "preset"},
    }
    if "users" in whole.workload:
        users = sum(one.serving.users for one in tenants)
        entries["users"] = {**whole.workload["users"], "value": users}
    return replace(largest, workload={**whole.workload, **entries}, tenants=tuple(tenants))


def _load(question: Question) -> dict[str, Any]:
    demand = question.serving
    load = {"rate_per_s": demand.rate_per_s} if demand.kind == "rate" else {"users": demand.users}
    return {
        **load, "isl": demand.isl_tokens, "osl": demand.osl_tokens, "context": demand.context_tokens,
        "ttft_p99_s": demand.ttft_p99_s, "tpot_p99_s": demand.tpot_p99_s,
    }  # fmt: skip


def split_words(request: Request, tenants: Sequence[Question]) -> str:
    """By which rule the load is shared among the models."""
    parts = []
    for one in tenants:
        rate = one.serving.kind == "rate"
        parts.append(
            f"{one.model.name} {one.serving.rate_per_s:.3g}/s" if rate else f"{one.model.name} {one.serving.users:.3g}"
        )
    rule = "as the workload file says" if request.per_model else "equally, at least one request in flight each"
    return f"the load is shared {rule}: {', '.join(parts)}"


def joint_model(question: Question) -> dict[str, Any]:
    """The model object of the largest, with the sums of all, and every one of them in `models`."""
    objects = [model_object(one.model) for one in question.tenants]
    sums = {name: sum(one[name] for one in objects) for name in ("params_total", "params_active", "weight_bytes")}
    names = {key: ",".join(one[key] for one in objects) for key in ("name", "checkpoint")}
    return {**model_object(question.model), **sums, **names, "models": objects}
