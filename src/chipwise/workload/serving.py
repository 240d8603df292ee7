"""Workloads that answer requests: token streams (`resolve_serving`) and single answers (`resolve_other`)."""

from __future__ import annotations

from typing import cast

from chipwise.errors import InputError
from chipwise.workload.lengths import read_lengths
from chipwise.workload.presets import Preset
from chipwise.workload.types import (
    Given,
    LengthTable,
    LoadKind,
    ModelHints,
    OtherWorkload,
    ServingWorkload,
    Unit,
    WorkloadRequest,
)
from chipwise.workload.values import flag, number, said, whole

_LOADS: tuple[tuple[str, LoadKind], ...] = (
    ("rate_per_s", "rate"), ("offline", "offline"), ("batch", "static"), ("users", "closed"),
    ("throughput_tokens_per_s", "throughput"),
)  # fmt: skip
_TOGETHER = frozenset({"users", "throughput_tokens_per_s"})
"""A number of users with a throughput to reach: the load is the users', the throughput a bar."""


def resolve_serving(
    request: WorkloadRequest, preset: Preset, hints: ModelHints, goals: Given[tuple[str, ...]]
) -> ServingWorkload:
    """The token stream that is asked for.

    `context` holds the longest prompt and answer; `isl` and `osl` are means. What the preset gives is clipped
    so that isl + osl <= context <= the model's limit; what the user gives is never changed, and refused where
    it does not fit.

    Raises:
        InputError: two loads at once, lengths that do not fit the context, a context beyond the model's.
    """
    load = _load(request, preset)
    table = read_lengths(request.lengths) if request.lengths else None
    context, notes = _context(request, preset, hints, table)
    isl, osl = _lengths(request, preset, table, context.value)
    return ServingWorkload(
        preset=_named(request, preset),
        goals=goals,
        load=load,
        isl=isl,
        osl=osl,
        context=context,
        users=number(request.users, preset, "users") if load.value == "closed" else None,
        think_s=_think(request, load),
        rate_per_s=number(request.rate_per_s, preset, "rate_per_s"),
        throughput_tokens_per_s=number(request.throughput_tokens_per_s, preset, "throughput_tokens_per_s"),
        batch=whole(request.batch, preset, "batch"),
        models=whole(None, preset, "models"),
        prefix_hit_fraction=number(request.prefix_hit_fraction, preset, "prefix_hit_fraction"),
        ttft_p99_s=number(request.ttft_p99_s, preset, "ttft_p99_s"),
        tpot_p99_s=number(request.tpot_p99_s, preset, "tpot_p99_s"),
        latency_p99_s=number(request.latency_p99_s, preset, "latency_p99_s"),
        budget_usd=number(request.budget_usd, preset, "budget_usd"),
        lengths=table,
        warnings=notes,
    )


def resolve_other(
    request: WorkloadRequest, preset: Preset, hints: ModelHints, goals: Given[tuple[str, ...]]
) -> OtherWorkload:
    """The single answers that are asked for. `--ttft-p99` bounds the answer: the first token is the last.

    `--throughput` counts units a second, whatever the model's are.

    Raises:
        InputError: two loads at once, an input longer than the model takes.
    """
    load = _load(request, preset)
    isl = whole(request.isl, preset, "isl")
    context = whole(request.context, preset, "context")
    limit = hints.max_context_tokens
    if isl and limit and isl.value > limit:
        if isl.origin == "user":
            raise _too_long(f"--isl {isl.value}", limit)
        isl = Given(value=limit, origin="model")
    latency = request.latency_p99_s if request.latency_p99_s is not None else request.ttft_p99_s
    bar = number(latency, preset, "latency_p99_s")
    wanted = request.throughput_tokens_per_s
    if wanted is not None and request.users is not None:
        raise InputError(
            "--users and --throughput state the load twice", why="each alone says how requests come", fix="leave one"
        )
    if wanted is not None and bar is not None and bar.origin == "preset":
        bar = None  # meant for people who wait: a throughput alone is reached by a queue that never empties
    return OtherWorkload(
        preset=_named(request, preset),
        goals=goals,
        unit=Given(value=cast("Unit", preset.text("unit")), origin="preset"),
        load=load,
        users=number(request.users, preset, "users") if load.value == "closed" else None,
        think_s=_think(request, load),
        rate_per_s=number(request.rate_per_s, preset, "rate_per_s"),
        batch=whole(request.batch, preset, "batch"),
        isl=isl,
        osl=whole(None, preset, "osl"),
        context=_capped(context, limit),
        image_size=whole(request.image_size, preset, "image_size"),
        steps=whole(request.steps, preset, "steps"),
        frames=whole(request.frames, preset, "frames"),
        audio_s=number(request.audio_s, preset, "audio_seconds"),
        latency_p99_s=bar,
        throughput_units_per_s=None if wanted is None else Given(value=wanted, origin="user"),
        budget_usd=number(request.budget_usd, preset, "budget_usd"),
    )


def _named(request: WorkloadRequest, preset: Preset) -> Given[str]:
    return Given(value=preset.name, origin="user" if request.preset else "model")


def _load(request: WorkloadRequest, preset: Preset) -> Given[LoadKind]:
    """How requests arrive; two statements of it at once are refused."""
    stated = [(field, kind) for field, kind in _LOADS if said(request, field)]
    if preset.kind == "other":
        stated = [(field, kind) for field, kind in stated if field != "batch"]  # a request's size, not a load
    names = {field for field, _ in stated}
    if len(stated) > 1 and names != _TOGETHER:
        flags = " and ".join(flag(field) for field, _ in stated)
        raise InputError(
            f"{flags} state the load twice",
            why="each alone says how requests arrive",
            fix=f"leave one of {flags} out",
        )
    if said(request, "think_s") and (names - {"users"}):
        raise InputError(
            f"--think does not go with {flag(next(iter(names)))}",
            why="it turns a number of people into requests in flight",
            fix="give --users with --think, or drop --think",
        )
    if said(request, "think_s"):
        return Given(value="closed", origin="user")
    if stated:
        return Given(value=stated[0][1], origin="user")
    return Given(value=cast("LoadKind", preset.text("load")), origin="preset")


def _think(request: WorkloadRequest, load: Given[LoadKind]) -> Given[float] | None:
    if request.think_s is None or load.value != "closed":
        return None
    return Given(value=request.think_s, origin="user")


def _too_long(what: str, limit: int) -> InputError:
    return InputError(
        f"{what} is beyond what the model takes",
        why=f"its longest context is {limit} tokens",
        fix=f"give at most {limit}, or another model",
    )


def _capped(context: Given[int] | None, limit: int | None) -> Given[int] | None:
    if context is None or limit is None or context.value <= limit:
        return context
    if context.origin == "user":
        raise _too_long(f"--context {context.value}", limit)
    return Given(value=limit, origin="model")


def _context(
    request: WorkloadRequest, preset: Preset, hints: ModelHints, table: LengthTable | None
) -> tuple[Given[int], tuple[str, ...]]:
    """The longest request served, and what had to be cut for it."""
    limit = hints.max_context_tokens
    asked = whole(request.context, preset, "context") or Given(value=1, origin="preset")
    if request.context is not None:
        return _capped(asked, limit) or asked, ()
    if table is not None:
        longest: Given[int] = Given(value=table.longest, origin="user")
        if limit is not None and longest.value > limit:
            over = sum(isl + osl > limit for isl, osl in zip(table.isl, table.osl, strict=True))
            cut = f"{over} of {table.requests} requests are longer than the model's {limit} tokens"
            return Given(value=limit, origin="model"), (cut,)
        return longest, ()
    wanted = (request.isl or 0) + (request.osl or 0)
    if wanted > asked.value:
        asked = Given(value=wanted, origin="user")
        if limit is not None and wanted > limit:
            raise _too_long(f"--isl and --osl together, {wanted} tokens,", limit)
    return _capped(asked, limit) or asked, ()


def _lengths(
    request: WorkloadRequest, preset: Preset, table: LengthTable | None, context: int
) -> tuple[Given[int], Given[int]]:
    """Mean lengths with isl + osl <= context. The user's are kept, the preset's give way."""
    if table is not None:
        isl = min(table.mean_isl, context - 1)
        osl: Given[int] = Given(value=max(1, min(table.mean_osl, context - isl)), origin="user")
        return Given(value=isl, origin="user"), osl
    stated = (request.isl or 0) + (request.osl or 0)
    room = 0 if request.isl is not None and request.osl is not None else 1
    if stated + room > context:
        raise InputError(
            f"lengths of {stated} tokens do not fit a context of {context}",
            why="--context holds the longest prompt with its answer",
            fix=f"raise --context to {stated + room} or more, or shorten --isl or --osl",
        )
    isl_wish, osl_wish = round(preset.number("isl") or 1), round(preset.number("osl") or 1)
    if request.isl is not None:
        osl_value = request.osl if request.osl is not None else min(osl_wish, context - request.isl)
        isl_value = request.isl
    else:
        osl_value = request.osl if request.osl is not None else max(1, min(osl_wish, context // 2))
        isl_value = max(1, min(isl_wish, context - osl_value))
    return (
        Given(value=isl_value, origin="preset" if request.isl is None else "user"),
        Given(value=osl_value, origin="preset" if request.osl is None else "user"),
    )
