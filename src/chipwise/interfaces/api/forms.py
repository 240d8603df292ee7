"""In which form an answer is sent: JSON, events that say how far it is, or, of manifests, a zip of the files."""

from __future__ import annotations

import asyncio
import io
import json
import zipfile
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, StreamingResponse

from chipwise.errors import ChipwiseError
from chipwise.interfaces.api.desk import BusyError, LeftError, SlowError
from chipwise.interfaces.api.problems import busy, of_error, slow

if TYPE_CHECKING:
    from starlette.requests import Request

    from chipwise.interfaces.api.desk import Desk

JSON, EVENTS, ZIP = "application/json", "text/event-stream", "application/zip"
ZIPPED = frozenset({"deploy"})
"""Verbs whose answer is files."""
ALIVE_S = 10.0
"""Without news a comment is sent, so that nobody between takes the line for dead."""
_DATED = (1980, 1, 1, 0, 0, 0)
"""Of every file in a zip: equal answers are equal bytes."""


def form_of(request: Request, verb: str) -> str:
    """The form that was asked for by name in `Accept`; JSON for anything else."""
    wanted = [part.partition(";")[0].strip().lower() for part in request.headers.get("accept", "").split(",")]
    if EVENTS in wanted:
        return EVENTS
    return ZIP if ZIP in wanted and verb in ZIPPED else JSON


def zipped(content: Mapping[str, Any]) -> bytes:
    """The files of an answer of `deploy` as a zip.

    >>> data = zipped({"files": [{"path": "README.md", "text": "# chat"}]})
    >>> zipfile.ZipFile(io.BytesIO(data)).read("README.md")
    b'# chat'
    """
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as files:
        for file in content["files"]:
            files.writestr(zipfile.ZipInfo(file["path"], date_time=_DATED), file["text"], zipfile.ZIP_DEFLATED)
    return out.getvalue()


def followed(desk: Desk, verb: str, body: Mapping[str, Any]) -> StreamingResponse:
    """Events: `progress` with words, and at the end `answer`, or `problem` in the shape of every problem."""
    return StreamingResponse(_events(desk, verb, body), media_type=EVENTS, headers={"cache-control": "no-store"})


async def _events(desk: Desk, verb: str, body: Mapping[str, Any]) -> AsyncIterator[bytes]:
    """Who leaves ends this generator, and with it the question."""
    told: asyncio.Queue[bytes | None] = asyncio.Queue()
    task = asyncio.create_task(_asked(desk, verb, body, told))
    try:
        while True:
            try:
                event = await asyncio.wait_for(told.get(), ALIVE_S)
            except TimeoutError:
                yield b": still at it\n\n"
                continue
            if event is None:
                return
            yield event
    finally:
        task.cancel()


async def _asked(desk: Desk, verb: str, body: Mapping[str, Any], told: asyncio.Queue[bytes | None]) -> None:
    try:
        answered = await desk.answer(verb, body, _stays, lambda words: told.put_nowait(_event("progress", words)))
        told.put_nowait(b"event: answer\ndata: " + answered.body + b"\n\n")
    except ChipwiseError as error:
        told.put_nowait(_problem(of_error(error)))
    except BusyError:
        told.put_nowait(_problem(busy()))
    except (SlowError, LeftError):
        told.put_nowait(_problem(slow()))
    finally:
        told.put_nowait(None)


async def _stays() -> bool:
    return False


def _event(name: str, words: str) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'words': words})}\n\n".encode()


def _problem(response: JSONResponse) -> bytes:
    return b"event: problem\ndata: " + bytes(response.body) + b"\n\n"
