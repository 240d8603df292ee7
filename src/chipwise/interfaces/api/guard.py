"""What every request passes before it is read: host, token, rate, size; and the headers every response carries.

One ASGI middleware, because a refusal must come before any body is read.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio

from chipwise.interfaces.api.problems import problem
from chipwise.interfaces.api.settings import NAMES_OF_LOOPBACK

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from chipwise.interfaces.api.settings import Settings

POLICY = "; ".join((
    "default-src 'none'",
    *(f"{kind}-src 'self'" for kind in ("script", "style", "img", "connect", "font")),
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
))  # fmt: skip
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
OPEN = frozenset({"/healthz"})
"""What needs no token: whether the server lives."""
MINUTE_S = 60.0
ADDRESSES = 4096
"""Addresses whose rate is remembered; the one longest silent is forgotten first."""


class Guard:
    """The middleware. `clock` gives seconds that only grow."""

    def __init__(self, app: ASGIApp, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._settings = settings
        self._rates = Rates(settings.rate_per_minute, clock)
        self._hosts = {*NAMES_OF_LOOPBACK, settings.host, *settings.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or hand on with the body bounded and the headers added."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, _with_headers(send))
            return
        body = _Bounded(receive, self._settings.most_bytes, self._settings.body_s)
        await self._app(scope, body.receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if _host(headers.get(b"host", "")) not in self._hosts:
            return problem(400, "access", "unknown host", why="this server has another name", fix="use its own name")
        wait_s = self._rates.wait_s(str((scope.get("client") or ("",))[0]))
        if wait_s > 0:  # before the token, so that none can be guessed at leisure
            again = {"retry-after": str(int(wait_s) + 1)}
            return problem(429, "limit", "too many requests", why="the rate is bounded", fix="wait", headers=again)
        if scope["path"] not in OPEN and not self._let_in(headers.get(b"authorization", "")):
            wanted = {"www-authenticate": 'Basic realm="chipwise", Bearer realm="chipwise"'}
            fix = "send Authorization: Bearer TOKEN"
            return problem(401, "access", "no token, or a wrong one", why="it is asked for", fix=fix, headers=wanted)
        return _too_long(headers.get(b"content-length"), self._settings.most_bytes)

    def _let_in(self, authorization: str) -> bool:
        token = self._settings.token
        return token is None or hmac.compare_digest(_token(authorization).encode(), token.encode())


def _host(text: str) -> str:
    """The name of a Host header without its port.

    >>> _host("localhost:8321"), _host("[::1]:8321")
    ('localhost', '[::1]')
    """
    name, colon, port = text.rpartition(":")
    return name.lower() if colon and port.isdigit() else text.lower()


def _token(authorization: str) -> str:
    """The token of a Bearer header, or the password of a Basic one: a browser asks a person for the latter.

    >>> _token("Bearer abc"), _token("Basic dTphYmM="), _token("")
    ('abc', 'abc', '')
    """
    kind, _, value = authorization.partition(" ")
    if kind.lower() == "bearer":
        return value.strip()
    if kind.lower() != "basic":
        return ""
    try:
        return base64.b64decode(value, validate=True).decode("utf-8").partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _too_long(stated: str | None, most: int) -> Response | None:
    if stated is None or (stated.isdigit() and int(stated) <= most):
        return None
    return problem(413, "limit", "the body is too long", why=f"at most {most} bytes are read", fix="send less")


class BodyTooLongError(Exception):
    """A body that stated no length went on beyond the bound."""


class BodyTooSlowError(Exception):
    """A body did not come whole within the seconds allowed."""


class _Bounded:
    """A body that may not go on for ever, neither in bytes nor in time."""

    def __init__(self, receive: Receive, most: int, most_s: float) -> None:
        self._receive = receive
        self._left = most
        self._until_s = anyio.current_time() + most_s
        self._whole = False

    async def receive(self) -> Message:
        """The next part of the body; once it is whole, that the one who asked has left."""
        if self._whole:
            return await self._receive()
        try:
            with anyio.fail_after(self._until_s - anyio.current_time()):
                message = await self._receive()
        except TimeoutError as error:
            raise BodyTooSlowError from error
        self._whole = not message.get("more_body", False)
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise BodyTooLongError
        return message


def _with_headers(send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            message["headers"] = [*message.get("headers", ()), *own]
        await send(message)

    return wrapped


class Rates:
    """A bucket an address: it holds a minute's requests and fills up evenly.

    >>> ticks = iter([0.0, 0.0, 0.0, 30.0])
    >>> rates = Rates(2, lambda: next(ticks))
    >>> [rates.wait_s("a") for _ in range(4)]
    [0.0, 0.0, 30.0, 0.0]
    """

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, address: str) -> float:
        """Seconds until the address may ask again; 0 where it may now, which is then counted."""
        now_s = self._clock()
        left, then_s = self._buckets.pop(address, (float(self._per_minute), now_s))
        left = min(self._per_minute, left + (now_s - then_s) * self._per_minute / MINUTE_S)
        may = left >= 1.0
        self._buckets[address] = (left - 1.0 if may else left, now_s)
        if len(self._buckets) > ADDRESSES:
            self._buckets.popitem(last=False)
        return 0.0 if may else (1.0 - left) * MINUTE_S / self._per_minute
