"""Where questions wait, are computed a few at a time, and answers are kept: the only state of a server, and bounded."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import anyio
import anyio.to_thread

from chipwise.interfaces.api.settings import Settings
from chipwise.interfaces.verbs import Reply, ask

Gone = Callable[[], Awaitable[bool]]
"""Whether the one who asked has left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer, and the bytes that are sent for it."""

    reply: Reply
    body: bytes


class BusyError(Exception):
    """So many questions wait already that no more are taken."""


class SlowError(Exception):
    """The answer took longer than the server waits."""


class LeftError(Exception):
    """The one who asked left before the question's turn came."""


class Desk:
    """Asks verbs in worker threads; equal questions are computed once while the answer is kept."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._kept: OrderedDict[str, Answered] = OrderedDict()
        self._turns: anyio.CapacityLimiter | None = None
        self.waiting = 0

    async def answer(self, verb: str, body: Mapping[str, Any], gone: Gone) -> Answered:
        """The answer, kept or computed.

        Raises:
            ChipwiseError: the verb's.
            BusyError, SlowError, LeftError: no answer was computed.
        """
        key = question_key(verb, body)
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
            return kept
        if self.waiting >= self._settings.waiting:
            raise BusyError
        self.waiting += 1
        try:
            answered = await self._computed(verb, body, gone)
        finally:
            self.waiting -= 1
        self._kept[key] = answered
        if len(self._kept) > self._settings.kept:
            self._kept.popitem(last=False)
        return answered

    async def _computed(self, verb: str, body: Mapping[str, Any], gone: Gone) -> Answered:
        if self._turns is None:
            self._turns = anyio.CapacityLimiter(self._settings.at_once)
        try:
            with anyio.fail_after(self._settings.wait_s):
                async with self._turns:
                    if await gone():
                        raise LeftError
                    return await anyio.to_thread.run_sync(self._asked, verb, body, abandon_on_cancel=True)
        except TimeoutError as error:
            raise SlowError from error

    def _asked(self, verb: str, body: Mapping[str, Any]) -> Answered:
        reply = ask(verb, body, self._settings.leave)
        text = json.dumps(reply.content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return Answered(reply=reply, body=text.encode())


def question_key(verb: str, body: Mapping[str, Any]) -> str:
    """One text for equal questions, whatever the order of their flags.

    >>> question_key("plan", {"a": 1, "b": 2}) == question_key("plan", {"b": 2, "a": 1})
    True
    """
    said = json.dumps([verb, body], sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(said.encode()).hexdigest()


@cache
def facts_version() -> str:
    """What an answer depends on besides the question: the product's version and the date of its facts."""
    from importlib.metadata import version

    from chipwise.catalog import load_catalog

    return f"{version('chipwise')}-{load_catalog().facts_as_of}"


def etag(verb: str, body: Mapping[str, Any]) -> str:
    """The entity tag of an answer, known before it is computed."""
    return f'W/"{facts_version()}-{question_key(verb, body)[:24]}"'
