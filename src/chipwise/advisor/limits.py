"""What a layout asked for by flag may not exceed: the model's context, its legal degrees, the engine's versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.engines import load_engine, parse_version
from chipwise.errors import InputError
from chipwise.parallelism import legal_tp, tp_problem

if TYPE_CHECKING:
    from chipwise.advisor.request import SplitRequest
    from chipwise.model import ModelSpec

LARGEST_TP = 64


def check_context(model: ModelSpec, tokens: int | None, said: str) -> None:
    """Refuse sequences longer than the model takes.

    Args:
        model: as read.
        tokens: the longest sequence; None where nothing was said.
        said: the flags that said it.

    Raises:
        InputError: longer than the model's longest context.
    """
    limit = model.max_context_tokens
    if tokens is not None and limit is not None and tokens > limit:
        raise InputError(
            f"{said}: {tokens:,} tokens are more than {model.name} takes",
            why=f"its longest context is {limit:,} tokens",
            fix=f"give at most {limit}, or another model",
        )


def check_split(model: ModelSpec, split: SplitRequest) -> None:
    """Refuse a tensor-parallel degree that is not legal for the model.

    Raises:
        InputError: names the legal degrees.
    """
    problem = None if split.tp is None else tp_problem(model, split.tp)
    if problem is not None:
        degrees = ", ".join(str(one) for one in legal_tp(model, max(LARGEST_TP, split.tp or 1)))
        raise InputError(
            f"not a legal split: {problem}",
            why=f"every device must hold whole pieces: tp of {model.name} may be {degrees}",
            fix=f"--tp {_nearest(model, split.tp or 1)}",
        )


def _nearest(model: ModelSpec, tp: int) -> int:
    """The largest legal degree below."""
    return max(legal_tp(model, max(tp, 1)))


def check_version(name: str, version: str | None) -> None:
    """Refuse a version that is no version, or of a later generation than any that was read.

    Any other takes the facts of the nearest one that was read, the older of two, and the answer says so.

    Args:
        name: the engine's.
        version: as asked; None where nothing was.

    Raises:
        UnknownNameError: no such engine.
        InputError: names the oldest and the newest version known; generations are told by the first number.
    """
    if version is None:
        return
    asked, newest, oldest = parse_version(version), load_engine(name), load_engine(name, "0")
    latest = parse_version(newest.version)
    if asked is None or latest is None or asked[0] > latest[0]:
        raise InputError(
            f"unknown version {version!r} of {newest.title}",
            why=f"versions {oldest.version} to {newest.version} are known",
            fix=f"--engine-version {newest.version}, or leave it out",
        )
