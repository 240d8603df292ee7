"""Where questions wait, are computed a few at a time, and answers are kept: the only state of a server, and bounded."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread

from chipwise.interfaces.api.settings import Settings
from chipwise.interfaces.verbs import Reply, ask

Gone = Callable[[], Awaitable[bool]]
"""Whether the one who asked has left."""
Say = Callable[[str], None]
"""Hears, in the event loop, how far an answer is."""
LOOKS_S = 0.25
"""How often it is looked whether the one who asked is still there."""


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
    """The one who asked left before the answer."""


class Desk:
    """Asks verbs in worker threads; equal questions are computed once while the answer is kept."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._kept: OrderedDict[str, Answered] = OrderedDict()
        self._turns: anyio.CapacityLimiter | None = None
        self.waiting = 0

    async def answer(self, verb: str, body: Mapping[str, Any], gone: Gone, say: Say | None = None) -> Answered:
        """The answer, kept or computed; who follows it with `say` may wait longer.

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
            with anyio.fail_after(self._settings.followed_s if say else self._settings.wait_s):
                answered = await self._in_turn(_Asking(verb, body, say), gone)
        except TimeoutError as error:
            raise SlowError from error
        finally:
            self.waiting -= 1
        self._kept[key] = answered
        if len(self._kept) > self._settings.kept:
            self._kept.popitem(last=False)
        return answered

    async def _in_turn(self, asking: _Asking, gone: Gone) -> Answered:
        """The answer of a thread, given up once nobody waits for it; its turn is over when the thread is."""
        turns = self._turns = self._turns or anyio.CapacityLimiter(self._settings.at_once)
        await turns.acquire_on_behalf_of(asking)
        try:
            if await gone():
                raise LeftError
            return await self._watched(asking, gone, turns)
        finally:
            if asking.end():
                turns.release_on_behalf_of(asking)

    async def _watched(self, asking: _Asking, gone: Gone, turns: anyio.CapacityLimiter) -> Answered:
        async def look() -> None:
            while not await gone():  # noqa: ASYNC110 # a server tells it to those who ask, not by an event
                await anyio.sleep(LOOKS_S)
            group.cancel_scope.cancel()

        answered: Answered | None = None
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(look)
                answered = await anyio.to_thread.run_sync(self._work, asking, turns, abandon_on_cancel=True)
                group.cancel_scope.cancel()
        except ExceptionGroup as failed:  # the group wraps what the thread raised
            raise failed.exceptions[0] from None
        if answered is None:
            raise LeftError
        return answered

    def _work(self, asking: _Asking, turns: anyio.CapacityLimiter) -> Answered:
        asking.begin()
        try:
            reply = ask(asking.verb, asking.body, self._settings.leave, asking.hear)
            text = json.dumps(reply.content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            return Answered(reply=reply, body=text.encode())
        finally:
            anyio.from_thread.run_sync(turns.release_on_behalf_of, asking)


class _Asking:
    """A question in work. Once it is over nobody waits for it: what reports how far it is stops there."""

    def __init__(self, verb: str, body: Mapping[str, Any], say: Say | None) -> None:
        self.verb = verb
        self.body = body
        self._say = say
        self._lock = threading.Lock()
        self._begun = self._over = False

    def begin(self) -> None:
        """A thread takes it; its turn then lasts as long as the thread.

        Raises:
            LeftError: it was over before.
        """
        with self._lock:
            if self._over:
                raise LeftError
            self._begun = True

    def end(self) -> bool:
        """It is over; whether no thread ever took it."""
        with self._lock:
            self._over = True
            return not self._begun

    def hear(self, words: str) -> None:
        """Hand words of progress on, out of the thread.

        Raises:
            LeftError: nobody waits any more.
        """
        if self._over:
            raise LeftError
        if self._say is not None:
            anyio.from_thread.run_sync(self._say, words)


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
