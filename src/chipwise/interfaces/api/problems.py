"""Errors as `application/problem+json` (RFC 9457) with what, why and fix beside the standard members."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse

from chipwise.errors import ChipwiseError

STATUS = {"input": 400, "knowledge": 404, "infeasible": 422}
"""HTTP status by the error's family."""
TITLES = {
    "input": "The question is wrong",
    "knowledge": "We lack the knowledge",
    "infeasible": "The answer is no",
    "limit": "Too much was asked",
    "access": "Not let in",
    "address": "No such address",
}


def problem(
    status: int, family: str, what: str, *, why: str, fix: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    """One problem; `error` is the object that the command line prints."""
    body: dict[str, Any] = {
        "type": f"urn:chipwise:problem:{family}",
        "title": TITLES[family],
        "status": status,
        "detail": f"{what}: {why}",
        "error": {"what": what, "why": why, "fix": fix, "family": family},
    }
    return JSONResponse(body, status_code=status, media_type="application/problem+json", headers=headers)


def of_error(error: ChipwiseError) -> JSONResponse:
    """An error of ours as a problem."""
    return problem(STATUS[error.family], error.family, error.what, why=error.why, fix=error.fix)


def limited(status: int, what: str, *, why: str, fix: str) -> JSONResponse:
    """A bound of the server was met; 503 and 429 say when to come again."""
    again = {"retry-after": "1"} if status != 413 else None
    return problem(status, "limit", what, why=why, fix=fix, headers=again)


def busy() -> JSONResponse:
    """So many questions wait that no more are taken."""
    return limited(503, "too many questions wait", why="they are bounded", fix="try again")


def slow() -> JSONResponse:
    """An answer took longer than is waited."""
    return limited(
        503, "the answer took too long", why="its time is bounded", fix="ask for less, or follow it by events"
    )
